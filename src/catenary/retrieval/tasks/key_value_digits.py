"""Key-value retrieval with short numbers: keys and values of a few digits, for small models and short contexts."""

from __future__ import annotations

from typing import Any

import numpy as np

from catenary.errors import invalid
from catenary.retrieval.tasks.key_value import OPTIONS, random_pairs
from catenary.retrieval.tasks.placed import Placed
from catenary.retrieval.tasks.registry import TASKS, Kind


def key_value_digits(
    *,
    pairs: int = 20,
    digits: int = 6,
    count: int = 60,
    seed: int = 0,
    template: str = "built-in:key-value",
    document_format: str | None = None,
    query_first: bool = False,
) -> Placed:
    """``count`` samples of ``pairs`` pairs of numbers with ``digits`` digits, the first of them not 0.

    No two of a sample's 2 ``pairs`` numbers are equal. Raises ``InvalidInput`` if ``digits`` is not in 1..18 or there
    are fewer than 4 ``pairs`` such numbers (drawing different ones would take long).
    """
    if isinstance(digits, bool) or not isinstance(digits, int) or not 1 <= digits <= 18:
        raise invalid("digits", "must be in 1..18", digits)
    if 9 * 10 ** (digits - 1) < 4 * pairs:
        raise invalid("digits", f"must leave at least {4 * pairs} numbers for {pairs} pairs", digits, "try more digits")

    def draw(generator: np.random.Generator) -> str:
        return str(generator.integers(10 ** (digits - 1), 10**digits))

    settings: dict[str, Any] = {"pairs": pairs, "digits": digits, "count": count, "seed": seed, "template": template}
    settings |= {"document_format": document_format, "query_first": query_first}
    return random_pairs("key-value-digits", draw, settings)


TASKS.register(
    "key-value-digits",
    Kind(
        "A JSON object of numbers of a few digits: what is the value of this key?",
        key_value_digits,
        {"digits": "how many digits a key and a value have", **OPTIONS},
    ),
)
