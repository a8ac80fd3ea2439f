"""Excerpts: consecutive tokens of one document, and windows made by joining them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int64

from catenary.errors import invalid
from catenary.text.documents import Document
from catenary.text.tokenise import Opening, Tokens
from catenary.text.windows import Kind, Windows


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Tokens ``first``, ``first + 1``, ... of a document of ``characters`` characters; the text itself is not kept."""

    ids: Int64[np.ndarray, " n"]
    starts: Int64[np.ndarray, " n"]
    ends: Int64[np.ndarray, " n"]
    first: int
    document: str
    origin: str
    characters: int

    def cut(self, count: int) -> Excerpt:
        """The first ``count`` tokens."""
        return replace(self, ids=self.ids[:count], starts=self.starts[:count], ends=self.ends[:count])

    def record(self, position: int) -> dict[str, Any]:
        """Where the tokens come from, as plain JSON values; ``position`` is the place of the first in the window.

        All ranges are 0-based and half-open; ``fraction`` is ``characters`` divided by the document's length.
        """
        characters = [int(self.starts.min()), int(self.ends.max())]
        return {
            "document": self.document,
            "origin": self.origin,
            "positions": [position, position + len(self.ids)],
            "tokens": [self.first, self.first + len(self.ids)],
            "characters": characters,
            "fraction": [offset / self.characters for offset in characters],
        }


def take(document: Document, tokens: Tokens, first: int, count: int) -> Excerpt:
    """``count`` tokens of a document from token ``first`` on, copied so that nothing else is kept alive."""
    part = slice(first, first + count)
    return Excerpt(
        tokens.ids[part].copy(),
        tokens.starts[part].copy(),
        tokens.ends[part].copy(),
        first,
        document.name,
        document.origin,
        len(document.text),
    )


def join(
    groups: Sequence[Sequence[Excerpt]], start: Opening, kind: Kind, seed: int, report: Mapping[str, Any]
) -> Windows:
    """One window per group: the opening, then the group's excerpts with nothing between them."""
    front = np.array(start.ids, dtype=np.int64)
    rows, sources = [], []
    for group in groups:
        sizes = [len(excerpt.ids) for excerpt in group]
        places = len(front) + np.cumsum([0, *sizes[:-1]])
        rows.append(np.concatenate([front, *(excerpt.ids for excerpt in group)]))
        sources.append({"pieces": [e.record(int(place)) for e, place in zip(group, places, strict=True)]})
    return Windows(np.stack(rows), kind, "model", seed, {"bos": start.to_dict(), **report}, tuple(sources))


def check_request(length: int, count: int, seed: int) -> None:
    """Refuse a length, a number of windows or a seed that no set of windows can have."""
    if length < 2:
        raise invalid("length", "must be >= 2", length)
    if count < 1:
        raise invalid("count", "must be >= 1", count)
    if seed < 0:
        raise invalid("seed", "must be >= 0", seed)
