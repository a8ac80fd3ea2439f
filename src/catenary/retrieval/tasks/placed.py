"""Placed facts: samples that stay the same while the document with the answer moves from slot to slot."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catenary.errors import invalid
from catenary.retrieval.case import Case
from catenary.retrieval.tasks.template import Template

Entry = Mapping[str, str]
"""One document by its fields, such as ``title`` and ``text``, or ``key`` and ``value``."""


@dataclass(frozen=True)
class Item:
    """One sample.

    Attributes:
        name: its name, the same at every slot.
        query: what the template's placeholders for the question are replaced by.
        question: the question alone, in words.
        answers: every text that counts as right.
        gold: the document that holds the answer.
        others: the other documents in their order.
    """

    name: str
    query: Mapping[str, str]
    question: str
    answers: tuple[str, ...]
    gold: Entry
    others: tuple[Entry, ...]


@dataclass(frozen=True)
class Placed:
    """A task whose prompts are documents of one template; gold at slot s stands before the others' number s.

    ``closed`` is the wording of the question without documents, None where it says nothing; ``alone`` whether the
    question can be asked of its own document alone; ``settings`` are the options it was made with, ``facts`` what was
    found in its data.
    """

    name: str
    items: Sequence[Item]
    template: Template
    closed: Template | None
    settings: Mapping[str, Any]
    query_first: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = True

    def __post_init__(self) -> None:
        """Refuse an empty task and samples with different numbers of documents."""
        counts = {len(item.others) + 1 for item in self.items}
        if len(counts) != 1:
            raise invalid(f"{self.name}: its samples", "must all have the same number of documents", sorted(counts))

    @property
    def slots(self) -> int:
        """How many documents a prompt holds."""
        return len(self.items[0].others) + 1

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self.items)

    def case(self, sample: int, slot: int) -> Case:
        """Sample ``sample`` with its fact at ``slot``."""
        item = self.items[checked("sample", sample, len(self.items))]
        checked("slot", slot, self.slots)
        return self.prompt(item, (*item.others[:slot], item.gold, *item.others[slot:]), slot)

    def closed_book(self, sample: int) -> Case | None:
        """The question alone, or None where there is no closed-book template."""
        item = self.items[checked("sample", sample, len(self.items))]
        if self.closed is None:
            return None
        segments = self.closed.segments((), item.query)
        lead = self.closed.lead_after("".join(segment.text for segment in segments))
        return Case(item.name, segments, item.answers, None, lead, item.question)

    def oracle(self, sample: int) -> Case | None:
        """The question with its own document alone; None where that says nothing."""
        item = self.items[checked("sample", sample, len(self.items))]
        if not self.alone:
            return None
        return self.prompt(item, (item.gold,), 0)

    def record(self) -> Mapping[str, Any]:
        """The task's name, its options, its templates as text, and what was found in its data."""
        closed = {"closed_template": self.closed.text} if self.closed else {}
        texts = {"template": self.template.text, **closed}
        return {"task": self.name, "options": dict(self.settings), "templates": texts, "data": dict(self.facts)}

    def prompt(self, item: Item, documents: Sequence[Entry], slot: int) -> Case:
        """The case of these documents in this order, the fact's own at ``slot``."""
        segments = self.template.segments(documents, item.query, query_first=self.query_first)
        lead = self.template.lead_after("".join(segment.text for segment in segments))
        return Case(item.name, segments, item.answers, slot, lead, item.question)


def checked(argument: str, value: int, below: int) -> int:
    """``value`` if it is in 0..below-1, else ``InvalidInput``: negative numbers do not count from the end."""
    if not 0 <= value < below:
        raise invalid(argument, f"must be in 0..{below - 1}", value)
    return value


def occurs(answer: str, text: str, *, whole: bool = True) -> bool:
    """Whether ``answer`` is in ``text``, whatever its case and white space.

    With ``whole`` an answer that begins or ends with a digit or a letter that has a case must not go on there: "5" is
    not in "15" and "art" not in "party". Letters without a case (Chinese, Thai, Arabic) have no such ends.
    """
    wanted, within = folded(answer), folded(text)
    at = within.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not whole or not (_joined(within[at - 1 : at], wanted[0]) or _joined(wanted[-1], within[end : end + 1])):
            return True
        at = within.find(wanted, at + 1)
    return False


def folded(text: str) -> str:
    """The text in compatibility form, without case, its white space single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _joined(left: str, right: str) -> bool:
    return bool(left) and bool(right) and all(unicodedata.category(each) in ("Lu", "Ll", "Nd") for each in left + right)
