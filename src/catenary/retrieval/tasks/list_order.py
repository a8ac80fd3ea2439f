"""List order: which word stands at a place of a list, or after another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from catenary.errors import invalid
from catenary.retrieval.case import Case
from catenary.retrieval.tasks.placed import Item, Placed, checked
from catenary.retrieval.tasks.registry import TASKS, Kind, at_least, common
from catenary.retrieval.tasks.template import ITEMS, read_template
from catenary.retrieval.tasks.words import NOUNS, draw_words


@dataclass(frozen=True)
class ListOrder:
    """Words in a list whose answer moves through it.

    ``number``: "Which word is number k?"; the answer stands at slot k - 1. The words and the answer are the same at
    every slot; the question can only differ in k. ``next``: "Which word comes directly after WORD?"; the two words
    move together, in one slot of two lines, and nothing else changes.
    """

    placed: Placed
    ask: str

    @property
    def name(self) -> str:
        """``list-order``."""
        return "list-order"

    @property
    def slots(self) -> int:
        """How many places there are."""
        return self.placed.slots

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self.placed)

    def case(self, sample: int, slot: int) -> Case:
        """Sample ``sample`` with its answer at ``slot``."""
        item = self.placed.items[checked("sample", sample, len(self))]
        checked("slot", slot, self.slots)
        if self.ask == "number":
            question = f"Which word is number {slot + 1}?"
            item = replace(item, question=question, query={"question": question})
            return self.placed.prompt(item, (*item.others[:slot], item.gold, *item.others[slot:]), slot)
        cue, answer = {"item": item.gold["cue"]}, {"item": item.gold["item"]}
        case = self.placed.prompt(item, (*item.others[:slot], cue, answer, *item.others[slot:]), slot)
        # The cue's line and the answer's are one document: the lines after them count one less.
        joined = [
            replace(each, slot=each.slot - 1) if each.slot is not None and each.slot > slot else each
            for each in case.segments
        ]
        return replace(case, segments=tuple(joined))

    def closed_book(self, sample: int) -> None:
        """None: without the list nothing is asked."""
        checked("sample", sample, len(self))

    def oracle(self, sample: int) -> None:
        """None: a list of one word asks nothing about order."""
        checked("sample", sample, len(self))

    def record(self) -> Mapping[str, Any]:
        """The options and the template."""
        return self.placed.record()


def list_order(
    *,
    items: int = 10,
    ask: str = "number",
    count: int = 60,
    seed: int = 0,
    template: str | None = None,
    document_format: str | None = None,
    query_first: bool = False,
) -> ListOrder:
    """``count`` lists of ``items`` words; ``ask`` is ``number`` ("Which word is number k?") or ``next``.

    With ``number`` the built-in template numbers the words; a ``document_format`` without ``{number}`` makes the
    model count. With ``next`` there are ``items`` - 1 slots, and the built-in template has no numbers.

    Raises ``InvalidInput`` if ``items`` is not in 2..95 or ``ask`` is another word.
    """
    if not 2 <= at_least("items", items, 2) <= len(NOUNS):
        raise invalid("items", f"must be in 2..{len(NOUNS)}", items)
    if ask not in ("number", "next"):
        raise invalid("ask", "must be 'number' or 'next'", ask)
    at_least("count", count, 1), at_least("seed", seed, 0)
    wording = template or f"built-in:list-order{'' if ask == 'number' else '-unnumbered'}"
    samples = []
    for sample in range(count):
        words = draw_words(items, np.random.default_rng([seed, sample]))
        question = "" if ask == "number" else f"Which word comes directly after {words[1]}?"
        gold = {"item": words[0], "cue": words[1]}
        others = tuple({"item": word} for word in words[1 if ask == "number" else 2 :])
        samples.append(Item(f"list-order-{sample}", {"question": question}, question, (words[0],), gold, others))
    settings: dict[str, Any] = {"items": items, "ask": ask, "count": count, "seed": seed, "template": template}
    settings |= {"document_format": document_format, "query_first": query_first}
    shape = read_template(wording, ITEMS, document_format=document_format)
    return ListOrder(Placed("list-order", samples, shape, None, settings, query_first), ask)


TASKS.register(
    "list-order",
    Kind(
        "A list of words: which one is number k, or comes after another?",
        list_order,
        {
            "items": "how many words a list holds",
            "ask": "number, or next for the word after another one",
            **common("count", "seed", "template", "document_format", "query_first"),
        },
    ),
)
