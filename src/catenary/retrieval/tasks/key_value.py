"""Key-value retrieval: a JSON object of random pairs, and the value of one key is asked for."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from catenary.errors import InvalidInput, invalid
from catenary.retrieval.tasks.placed import Item, Placed
from catenary.retrieval.tasks.registry import TASKS, Kind, at_least, common
from catenary.retrieval.tasks.template import PAIRS, read_template

# Of 2 p random texts out of M two are equal with probability below 2 p^2 / M; drawing again is rare where M is large.
TRIES = 1000


def key_value(
    *,
    pairs: int = 20,
    prefix: int = 36,
    count: int = 60,
    seed: int = 0,
    template: str = "built-in:key-value",
    document_format: str | None = None,
    query_first: bool = False,
) -> Placed:
    """``count`` samples of ``pairs`` pairs of random UUIDs (version 4), cut to their first ``prefix`` characters.

    No two of a sample's 2 ``pairs`` texts are equal, so no other pair holds the answer. There is no closed-book
    prompt: a random value cannot be known.

    Raises ``InvalidInput`` if ``pairs`` < 1, ``prefix`` is not in 1..36 or too short for that many different texts.
    """
    if isinstance(prefix, bool) or not isinstance(prefix, int) or not 1 <= prefix <= 36:
        raise invalid("prefix", "must be in 1..36", prefix)

    def draw(generator: np.random.Generator) -> str:
        return str(uuid.UUID(bytes=generator.bytes(16), version=4))[:prefix]

    settings: dict[str, Any] = {"pairs": pairs, "prefix": prefix, "count": count, "seed": seed, "template": template}
    settings |= {"document_format": document_format, "query_first": query_first}
    return random_pairs("key-value", draw, settings)


def random_pairs(name: str, draw: Callable[[np.random.Generator], str], settings: dict[str, Any]) -> Placed:
    """The task whose keys and values are texts from ``draw``, all different within a sample."""
    pairs, count = at_least("pairs", settings["pairs"], 1), at_least("count", settings["count"], 1)
    seed = at_least("seed", settings["seed"], 0)
    template = read_template(settings["template"], PAIRS, document_format=settings["document_format"])
    items = []
    for sample in range(count):
        texts = _different(draw, 2 * pairs, np.random.default_rng([seed, sample]))
        entries = [{"key": key, "value": value} for key, value in zip(texts[::2], texts[1::2], strict=True)]
        key, value = entries[0]["key"], entries[0]["value"]
        items.append(Item(f"{name}-{sample}", {"key": key}, key, (value,), entries[0], tuple(entries[1:])))
    return Placed(name, items, template, None, settings, settings["query_first"])


def _different(draw: Callable[[np.random.Generator], str], count: int, generator: np.random.Generator) -> list[str]:
    texts: dict[str, None] = {}
    for _ in range(TRIES + count):
        texts[draw(generator)] = None
        if len(texts) == count:
            return list(texts)
    raise InvalidInput(f"pairs: {count} different keys and values were not found; ask for fewer pairs or longer texts")


OPTIONS = {
    "pairs": "how many pairs the object holds",
    **common("count", "seed", "template", "document_format", "query_first"),
}

TASKS.register(
    "key-value",
    Kind(
        "A JSON object of random UUIDs: what is the value of this key?",
        key_value,
        {"prefix": "how many characters of each UUID are kept, 36 for all", **OPTIONS},
    ),
)
