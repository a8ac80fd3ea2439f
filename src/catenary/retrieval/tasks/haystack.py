"""Haystacks: running text of a wanted length, and the places in it where a sentence can be put."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from catenary.errors import InvalidInput, MissingResource
from catenary.retrieval.tasks.words import prose
from catenary.text.documents import read_documents

# Places after the end of a sentence and its white space; the ideographic stop is followed by none.
SENTENCE = re.compile(r"[.!?…]['\"’”»)\]]*\s+|[。！？]['\"’”」』)\]]*\s*")
SPACE = re.compile(r"\s+")
CHARACTER = re.compile(r"\S")
ENDS = {"sentences": SENTENCE, "white space": SPACE, "characters": CHARACTER}
"""Kinds of places in the order they are tried, the last only for texts that are written without white space."""
# Enough different text for every sample to begin elsewhere, read from a folder of any size.
ENOUGH = 20
READ_AT_LEAST = 2_000_000


@dataclass(frozen=True)
class Source:
    """Documents to make haystacks from; none for generated prose."""

    texts: tuple[str, ...]
    passed_over: int = 0

    def digest(self) -> str:
        """sha256 of the texts, "" without any."""
        total = hashlib.sha256()
        for text in self.texts:
            total.update(text.encode() + b"\0")
        return total.hexdigest() if self.texts else ""

    def draw(self, length: int, generator: np.random.Generator) -> str:
        """At least ``length`` characters: documents in a seeded order, or generated prose."""
        if not self.texts:
            return prose(length, generator)
        parts: list[str] = []
        size = 0
        for at in generator.permutation(len(self.texts)):
            parts.append(self.texts[at])
            size += len(parts[-1]) + 2
            if size >= length + 2:
                break
        return "\n\n".join(parts)


def read_source(documents: str | None, length: int, least: int, without: Sequence[str]) -> Source:
    """The texts of a file or folder, those left out that hold a text of ``without``.

    Reading stops at 20 times ``length`` characters, at least 2 million. Raises ``MissingResource`` if there is no
    document at all, ``InvalidInput`` if all of them together have fewer than ``least`` characters.
    """
    if documents is None:
        return Source(())
    skipped: Counter[str] = Counter()
    texts: list[str] = []
    passed_over = size = 0
    for document in read_documents(documents).read(skipped):
        text = document.text.strip()
        if any(each in text for each in without):
            passed_over += 1
            continue
        texts.append(text)
        size += len(text) + 2
        if size >= max(ENOUGH * length, READ_AT_LEAST):
            break
    if not texts:
        why = ", ".join(f"{count} {reason}" for reason, count in skipped.items()) or "nothing in it"
        held = f", {passed_over} that hold the answer" if passed_over else ""
        raise MissingResource(
            f"documents: {documents!a} holds no text to use ({why}{held}); leave it out for generated prose"
        )
    if size - 2 < least:
        raise InvalidInput(
            f"length: {least} characters were asked for and {Path(documents).name!a} holds {size - 2}; "
            f"ask for at most {size - 2}, or add documents"
        )
    return Source(tuple(texts), passed_over)


def fit(text: str, length: int, count: Callable[[str], int] | None) -> str:
    """The beginning of the text, of at most ``length`` characters, or tokens as ``count`` counts them.

    It ends after a word where it holds more than one. With tokens the end is found by halving; a tokenizer whose
    count is not monotone in the text can leave it a few tokens short, never long.
    """
    if count is None:
        return _whole_words(text, length)
    low, high = 0, len(text)
    if count(text) <= length:
        return text
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(_whole_words(text, middle)) <= length else (low, middle)
    return _whole_words(text, low)


def whole_sentences(text: str) -> str:
    """The text up to its last sentence end, where that leaves out a tenth of it at most."""
    ends = [match.end() for match in SENTENCE.finditer(text + "\n")]
    return text[: ends[-1]].rstrip() if ends and ends[-1] >= 0.9 * len(text) else text


def places(text: str, depths: int) -> tuple[tuple[int, ...], str]:
    """``depths`` different places in the text, nearest to equal steps from its beginning to its end, and their kind.

    Sentence ends; where a text has too few of them, ends of white space; where it is written without, any character.
    Raises ``InvalidInput`` if the text is too short for that many.
    """
    for kind, pattern in ENDS.items():
        if kind == "characters" and len(SPACE.findall(text)) > len(text) / 20:
            break
        ends = sorted({0, len(text), *(match.end() for match in pattern.finditer(text))})
        found = _nearest(ends, len(text), depths)
        if len(set(found)) == depths:
            return found, kind
    raise InvalidInput(
        f"length: {len(text)} characters have no {depths} different places for a sentence; "
        "ask for fewer depths or a longer text"
    )


def _nearest(ends: Sequence[int], length: int, depths: int) -> tuple[int, ...]:
    goals = [round(length * step / (depths - 1)) for step in range(depths)] if depths > 1 else [0]
    table = np.asarray(ends)
    return tuple(int(table[np.argmin(np.abs(table - goal))]) for goal in goals)


def _whole_words(text: str, length: int) -> str:
    if length >= len(text):
        return text
    cut = text[:length]
    if text[length].isspace() or cut[-1:].isspace():
        return cut.rstrip()
    words = cut.rstrip().rsplit(None, 1)
    return words[0] if len(words) == 2 else cut
