"""A-B order: two options in both orders, and whether the one that is listed first is preferred."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from catenary.errors import invalid
from catenary.retrieval.tasks.placed import Item, Placed
from catenary.retrieval.tasks.questions import QUESTION
from catenary.retrieval.tasks.registry import TASKS, Kind, at_least, common
from catenary.retrieval.tasks.rows import Row, chosen, digest, read_rows
from catenary.retrieval.tasks.template import OPTIONS, read_template
from catenary.retrieval.tasks.words import draw_words

CHOOSE = "Choose one of the two options. Which one?"
GENERATED = 60


def ab_order(
    *,
    file: str | None = None,
    count: int = 0,
    seed: int = 0,
    template: str = "built-in:ab-order",
    document_format: str | None = None,
    query_first: bool = False,
) -> Placed:
    """Samples of two options, each in both orders.

    Without a file the options are words and nothing makes one of them right. Every pair gives two samples, one for
    each of its words as the answer: averaged over both, the score at slot 0 minus the score at slot 1 is the
    preference for what is listed first, and what the words are cancels. ``count`` is then the number of samples,
    an even number, 0 for 60. A ``.jsonl(.gz)`` file gives a ``question``, two ``options`` and perhaps the right one as
    ``answer``, by its text; with an answer a record is one sample, whose score at the two slots shows what its place
    does, without one it is two. ``count`` is then the number of records, 0 for all.

    Raises ``InvalidInput`` for an odd ``count`` without a file, and naming file and line.
    """
    at_least("count", count, 0), at_least("seed", seed, 0)
    settings: dict[str, Any] = {"file": file, "count": count, "seed": seed, "template": template}
    settings |= {"document_format": document_format, "query_first": query_first}
    found: dict[str, Any] = {}
    if file is None:
        if count % 2:
            raise invalid("count", "must be even: both words of a pair are answers in turn", count)
        drawn = (draw_words(2, np.random.default_rng([seed, pair])) for pair in range((count or GENERATED) // 2))
        items = [item for pair, words in enumerate(drawn) for item in _both(f"ab-order-{pair}", CHOOSE, words)]
    else:
        path = Path(file)
        rows = [_of(row) for row in read_rows(path)]
        items = [item for at in chosen(len(rows), count, seed, file) for item in rows[at]]
        found = {"sha256": digest([path])}
    shape = read_template(template, OPTIONS, document_format=document_format)
    return Placed("ab-order", items, shape, None, settings, query_first, found, alone=False)


def _both(name: str, question: str, words: list[str]) -> list[Item]:
    return [_item(f"{name}{'ab'[at]}", question, words[at], words[1 - at]) for at in (0, 1)]


def _item(name: str, question: str, own: str, other: str) -> Item:
    return Item(name, {"question": question}, question, (own,), {"option": own}, ({"option": other},))


def _of(row: Row) -> list[Item]:
    question, options = row.text(QUESTION), row.texts(("options",))
    if len(options) != 2:
        raise row.wrong(f"options must be two different texts, got {len(options)}")
    if row.first(("answer",)) is None:
        return _both(row.name, question, list(options))
    answer = row.text(("answer",)).strip()
    if answer not in options:
        raise row.wrong(f"answer must be one of the options, got {answer!a}")
    other = options[1 - options.index(answer)]
    return [_item(row.name, question, answer, other)]


TASKS.register(
    "ab-order",
    Kind(
        "Two options in both orders: is the one listed first preferred?",
        ab_order,
        {
            "file": "a .jsonl(.gz) of question, options and perhaps answer; words without it",
            **common("count", "seed", "template", "document_format", "query_first"),
        },
        data="file",
    ),
)
