"""Case: one prompt of a retrieval task, in segments that know which slot they fill, and what answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from catenary.errors import invalid


@dataclass(frozen=True)
class Segment:
    """A stretch of prompt text; ``slot`` is the 0-based place of the document it is, None for the text around."""

    text: str
    slot: int | None = None


@dataclass(frozen=True)
class Case:
    """One prompt with its answers.

    Attributes:
        sample: name of the sample, the same at every position of its fact.
        segments: the prompt in order; its text is their concatenation.
        answers: every text that counts as right; the first is the one whose log-probability is scored. It begins
            with its own first character: white space between prompt and answer belongs to the prompt or ``lead``.
        gold: slot of the document that holds the answer; None where no document does (closed book).
        lead: text that the model is not scored on, between prompt and answer (such as a space).
        question: the question alone, for baselines and reports.
    """

    sample: str
    segments: tuple[Segment, ...]
    answers: tuple[str, ...]
    gold: int | None
    lead: str = ""
    question: str = ""

    def __post_init__(self) -> None:
        """Refuse a case without an answer, or whose fact stands in no segment."""
        if not self.answers or not all(answer.strip() for answer in self.answers):
            raise invalid("answers", "must hold at least one answer, none of them empty", self.answers)
        if self.gold is not None and self.gold not in {segment.slot for segment in self.segments}:
            raise invalid("gold", "must be the slot of one of the segments", self.gold)

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "".join(segment.text for segment in self.segments)

    def spans(self) -> dict[int, tuple[int, int]]:
        """First and one past the last character of each slot in the text; a slot in several parts spans all of them."""
        spans: dict[int, tuple[int, int]] = {}
        at = 0
        for segment in self.segments:
            end = at + len(segment.text)
            if segment.slot is not None:
                start = spans[segment.slot][0] if segment.slot in spans else at
                spans[segment.slot] = (start, end)
            at = end
        return spans


@runtime_checkable
class Task(Protocol):
    """Samples whose fact can stand at any of ``slots`` positions.

    ``case(n, slot)`` is sample n with its fact at ``slot``; the sample, its question and the other documents (in
    their order) are the same at every slot, so differences between slots are paired.
    """

    @property
    def name(self) -> str:
        """Short name, such as ``key-value``."""
        ...

    @property
    def slots(self) -> int:
        """How many documents a prompt holds, the fact's own among them."""
        ...

    def __len__(self) -> int:
        """How many samples there are."""
        ...

    def case(self, sample: int, slot: int) -> Case:
        """Sample ``sample`` with its fact at ``slot`` (both 0-based)."""
        ...

    def closed_book(self, sample: int) -> Case | None:
        """The question without any document; None where that says nothing (a random key)."""
        ...

    def oracle(self, sample: int) -> Case | None:
        """The question with the fact's document alone; None where a task has no such prompt."""
        ...

    def record(self) -> Mapping[str, Any]:
        """Everything that decides the prompts, as JSON values: a task can be rebuilt from it."""
        ...

