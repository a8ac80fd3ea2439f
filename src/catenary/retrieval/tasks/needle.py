"""Needle in a haystack: one sentence put at a chosen depth of a long text, and what it says is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from catenary.errors import InvalidInput, invalid
from catenary.retrieval.case import Case, Segment
from catenary.retrieval.tasks.haystack import Source, fit, places, read_source, whole_sentences
from catenary.retrieval.tasks.placed import checked
from catenary.retrieval.tasks.registry import TASKS, Kind, at_least, common
from catenary.retrieval.tasks.template import CLOSED, HAYSTACK, Template, read_template
from catenary.retrieval.tasks.words import QUALITIES, draw_words

# A word of English text has about 6 characters with its space, and is 1 to 2 tokens; where that is not enough text
# for the tokens asked for, twice as much is drawn.
CHARACTERS_PER_TOKEN = 8


@dataclass(frozen=True)
class Hidden:
    """One sample: the haystack, the places of its depths, and the fact."""

    name: str
    haystack: str
    places: tuple[int, ...]
    kind: str
    fact: str
    question: str
    answer: str


@dataclass(frozen=True)
class Needle:
    """A fact at one of several depths of a text; slot k is depth k / (depths - 1) of it, to the nearest sentence end.

    Only the fact's own slot has a segment: the text around it belongs to no slot.
    """

    samples: Sequence[Hidden]
    template: Template
    closed: Template | None
    settings: Mapping[str, Any]
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """``needle``."""
        return "needle"

    @property
    def slots(self) -> int:
        """How many depths there are."""
        return len(self.samples[0].places)

    def __len__(self) -> int:
        """How many samples there are."""
        return len(self.samples)

    def case(self, sample: int, slot: int) -> Case:
        """Sample ``sample`` with its fact at depth ``slot``."""
        hidden = self.samples[checked("sample", sample, len(self.samples))]
        at = hidden.places[checked("slot", slot, self.slots)]
        before, after = hidden.haystack[:at], hidden.haystack[at:]
        apart = " " if before and not before[-1].isspace() else ""
        inner = [Segment(before + apart), Segment(hidden.fact, slot), Segment(" " + after if after else "")]
        return self._prompt(hidden, inner, slot)

    def closed_book(self, sample: int) -> Case | None:
        """The question without the text; None where the answer is a random number."""
        hidden = self.samples[checked("sample", sample, len(self.samples))]
        if self.closed is None:
            return None
        segments = self.closed.segments((), {"question": hidden.question})
        lead = self.closed.lead_after("".join(segment.text for segment in segments))
        return Case(hidden.name, segments, (hidden.answer,), None, lead, hidden.question)

    def oracle(self, sample: int) -> Case | None:
        """The question with the fact alone."""
        hidden = self.samples[checked("sample", sample, len(self.samples))]
        return self._prompt(hidden, [Segment(hidden.fact, 0)], 0)

    def record(self) -> Mapping[str, Any]:
        """The options, the template, and how the haystacks were made."""
        closed = {"closed_template": self.closed.text} if self.closed else {}
        texts = {"template": self.template.text, **closed}
        return {"task": "needle", "options": dict(self.settings), "templates": texts, "data": dict(self.facts)}

    def _prompt(self, hidden: Hidden, inner: Sequence[Segment], slot: int) -> Case:
        first = bool(self.settings["query_first"])
        segments = self.template.around(inner, {"question": hidden.question}, query_first=first)
        lead = self.template.lead_after("".join(segment.text for segment in segments))
        return Case(hidden.name, segments, (hidden.answer,), slot, lead, hidden.question)


def needle(
    *,
    length: int = 4000,
    depths: int = 10,
    documents: str | None = None,
    tokens: Callable[[str], int] | None = None,
    cuts: Sequence[int] | None = None,
    digits: int = 6,
    fact: str | None = None,
    question: str | None = None,
    answer: str | None = None,
    count: int = 20,
    seed: int = 0,
    template: str = "built-in:needle",
    query_first: bool = False,
    closed_template: str = "built-in:closed-book",
) -> Needle:
    """``count`` haystacks of ``length`` characters, with a fact at ``depths`` equally spaced depths, ends included.

    The text comes from ``documents`` (a file or folder of texts) or is generated prose. With ``tokens``, a function
    that counts the tokens of a text, ``length`` is in tokens of the haystack; the record then holds the ``cuts`` in
    characters that came out of it, from which the task is rebuilt without a tokenizer. The fact is "The number of the
    WORD WORD is NUMBER." with ``digits`` digits that the haystack does not hold, or your own ``fact``, ``question``
    and ``answer``; documents that hold your answer are left out. A text ends with a sentence where that makes it at
    most a tenth shorter. The prompt is longer than ``length`` by the fact and
    the template.

    A haystack with too few sentence ends takes the fact at white space, and one written without white space at any
    character: ``record()["data"]["places"]`` counts which, and ``largest_shift`` is the largest distance between a
    place and its depth, as a fraction of the text.

    Raises ``InvalidInput`` for a text too short for its depths, ``MissingResource`` for a folder without documents.
    """
    at_least("length", length, 1), at_least("depths", depths, 1), at_least("count", count, 1), at_least("seed", seed, 0)
    if not 1 <= at_least("digits", digits, 1) <= 18:
        raise invalid("digits", "must be in 1..18", digits)
    own = [fact, question, answer]
    if any(own) and not all(own):
        raise invalid("fact", "question and answer must be given together", own)
    if fact and answer and answer not in fact:
        raise invalid("answer", "must be a part of the fact", answer)
    if cuts is not None and len(cuts) != count:
        raise invalid("cuts", f"must hold one length for each of {count} samples", len(cuts))
    in_tokens = tokens is not None or cuts is not None
    # The same reading for a task rebuilt from its cuts as for the one they came from.
    reading = length * CHARACTERS_PER_TOKEN if in_tokens else length
    source = read_source(documents, reading, 1 if in_tokens else length, [answer] if answer else [])
    samples = []
    for sample in range(count):
        generator = np.random.default_rng([seed, sample])
        thing = f"{QUALITIES[int(generator.integers(len(QUALITIES)))]} {draw_words(1, generator)[0]}"
        drawn = int(generator.integers(10 ** (digits - 1), 10**digits))
        text = _haystack(source.draw, generator, length, cuts[sample] if cuts is not None else None, tokens)
        at, kind = places(text, depths)
        hidden = Hidden(
            f"needle-{sample}",
            text,
            at,
            kind,
            fact or f"The number of the {thing} is {(number := _absent(drawn, digits, text))}.",
            question or f"What is the number of the {thing}?",
            answer or number,
        )
        if hidden.answer in text:
            raise InvalidInput(f"answer: the haystack of sample {sample} holds {hidden.answer!a}; use other documents")
        samples.append(hidden)
    settings: dict[str, Any] = {"length": length, "depths": depths, "documents": documents, "digits": digits}
    settings |= {"cuts": [len(each.haystack) for each in samples] if tokens else list(cuts) if cuts else None}
    settings |= {"fact": fact, "question": question, "answer": answer, "count": count, "seed": seed}
    settings |= {"template": template, "query_first": query_first, "closed_template": closed_template}
    closed = read_template(closed_template, CLOSED) if fact else None
    return Needle(samples, read_template(template, HAYSTACK), closed, settings, _data(samples, source, in_tokens))


def _absent(number: int, digits: int, text: str) -> str:
    """The number as text, or the next one up that the text does not hold."""
    least, numbers = 10 ** (digits - 1), 9 * 10 ** (digits - 1)
    for step in range(min(numbers, 10**6)):
        found = str(least + (number - least + step) % numbers)
        if found not in text:
            return found
    raise InvalidInput(f"digits: the text holds every number of {digits} digits; ask for more digits")


def _haystack(
    draw: Callable[[int, np.random.Generator], str],
    generator: np.random.Generator,
    length: int,
    cut: int | None,
    tokens: Callable[[str], int] | None,
) -> str:
    """A text of the wanted length, from a generator of its own, so that a rebuilt task draws the same."""
    own = int(generator.integers(2**63))
    if cut is not None:
        return draw(cut, np.random.default_rng(own))[:cut]
    if tokens is None:
        return whole_sentences(fit(draw(length, np.random.default_rng(own)), length, None))
    wanted = length * CHARACTERS_PER_TOKEN
    text = draw(wanted, np.random.default_rng(own))
    while tokens(text) < length:
        wanted *= 2
        longer = draw(wanted, np.random.default_rng(own))
        if len(longer) <= len(text):
            held = tokens(text)
            raise InvalidInput(f"length: {length} tokens were asked for and all documents together have {held}")
        text = longer
    return whole_sentences(fit(text, length, tokens))


def _data(samples: Sequence[Hidden], source: Source, in_tokens: bool) -> dict[str, Any]:
    kinds = [each.kind for each in samples]
    shifts = [
        abs(at / max(len(each.haystack), 1) - (step / (len(each.places) - 1) if step else 0))
        for each in samples
        for step, at in enumerate(each.places)
    ]
    return {
        "places": {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        "largest_shift": round(max(shifts), 6),
        "characters": [len(each.haystack) for each in samples],
        "length_in": "tokens" if in_tokens else "characters",
        "documents": len(source.texts),
        "documents_with_answer_left_out": source.passed_over,
        "sha256": source.digest(),
    }


TASKS.register(
    "needle",
    Kind(
        "A sentence somewhere in a long text: what does it say?",
        needle,
        {
            "length": "length of the text, in characters, or in tokens with `tokens`",
            "depths": "how many equally spaced depths, from the beginning to the end",
            "documents": "a file or folder of texts; generated prose without it",
            "tokens": "a function that counts the tokens of a text (Python only)",
            "cuts": "length of each sample's text in characters, as a record holds it",
            "digits": "how many digits the number has",
            "fact": "your own sentence, with `question` and `answer`",
            "question": "what is asked about it",
            "answer": "the part of it that answers",
            **common("count", "seed", "template", "query_first", "closed_template"),
        },
        data="documents",
    ),
)
