"""How positions are grouped: equal blocks of the body for a shape, regions of positions for an error."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid

SHORTEST = 5
"""Fewest positions with a shape: first, last and three blocks of one token, enough to tell a trough from a slope."""

ZERO = 1e-12
"""What a token out of reach counts as, relative to the maximum: below what float32 can measure, so always lowest."""


@dataclass(frozen=True)
class Span:
    """Positions start..stop-1 (0-based) under a name that counts from 1."""

    name: str
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of positions."""
        return self.stop - self.start


@dataclass(frozen=True)
class Blocks:
    r"""The body, positions 2..L-1 counted from 1, cut into K blocks of at least max(16, L/16) tokens.

    \(K=\lfloor (L-2)/\max(16,L/16)\rfloor\); the remainder is spread, so that sizes differ by at most one token.
    A body too short for three such blocks is cut into three anyway: fewer cannot show a trough. At L >= 256
    there are 15.

    Raises:
        InvalidInput: for fewer than 5 positions.
    """

    length: int

    def __post_init__(self) -> None:
        """Refuse a profile too short to have a shape."""
        if self.length < SHORTEST:
            raise invalid("length", f"must be >= {SHORTEST} to have a shape", self.length)

    @property
    def edges(self) -> np.ndarray:
        """The K + 1 block edges (0-based positions); block k holds edges[k] .. edges[k+1]-1."""
        body = self.length - 2
        count = max(3, int(body // max(16.0, self.length / 16)))
        return np.asarray(1 + (np.arange(count + 1) * body) // count)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The blocks in order, named by their positions counted from 1."""
        edges = [int(e) for e in self.edges]
        return tuple(_span(a, b) for a, b in pairwise(edges))

    @property
    def centres(self) -> Float64[np.ndarray, " K"]:
        """Mean position fraction x of each block's tokens."""
        edges = self.edges
        return np.asarray((edges[:-1] + edges[1:]) / (2 * self.length), dtype=np.float64)

    def means(self, values: Float64[np.ndarray, "*n L"]) -> Float64[np.ndarray, "*n K"]:
        """Mean of each block; given logs these are log-means."""
        edges = self.edges
        return np.asarray(np.add.reduceat(values[..., : edges[-1]], edges[:-1], axis=-1) / np.diff(edges))


    def log_means(self, curves: Float64[np.ndarray, "*n L"]) -> Float64[np.ndarray, "*n K"]:
        """Log-mean (log10) of each block of a profile; a token of exactly 0 counts as ``ZERO`` of the maximum."""
        lowest = ZERO * curves.max(axis=-1, keepdims=True)
        return self.means(np.log10(np.maximum(curves, lowest)))


def regions(length: int) -> tuple[Span, ...]:
    """Regions that errors are reported by: first, 2-8, 9-64, eighths of the rest, last (positions from 1).

    A region that a short profile does not reach is left out or cut. The rest is cut into eighths when each has
    at least 4 tokens, into fewer equal pieces otherwise: a median over fewer tokens is no region.
    """
    last = length - 1
    edges = [1, *(e for e in (8, 64) if e < last)]
    rest = last - edges[-1] if edges[-1] == 64 else 0
    pieces = min(8, max(1, rest // 4))
    edges += [64 + (rest * (k + 1)) // pieces for k in range(pieces)] if rest else [last]
    spans = [_span(a, b) for a, b in pairwise(edges) if b > a]
    return (Span("first", 0, 1), *spans, Span("last", last, length))


def _span(start: int, stop: int) -> Span:
    return Span(f"{start + 1}-{stop}" if stop - start > 1 else f"{stop}", start, stop)
