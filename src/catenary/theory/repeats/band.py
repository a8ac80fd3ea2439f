"""The tokens that causal queries see, as packed vectors, and products with the triangular matrices they fill."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Float64, Int64, Real

Square = Float[np.ndarray, "n n"]
"""A matrix over pairs of positions, in the precision of the work."""

Seen = Float[np.ndarray, " seen"]
"""One number per pair (query, token it sees), row after row."""

EachRow = Float64[np.ndarray, " n"]
"""One number per query."""

BLOCK = 64
"""Columns per block of a product with a triangular matrix: half of the products with zeros are skipped."""


@dataclass(frozen=True)
class Band:
    """The pairs (query i, token j) with i - width < j <= i, row after row; ``width`` None means all j <= i."""

    length: int
    width: int | None = None

    @cached_property
    def counts(self) -> Int64[np.ndarray, " n"]:
        """How many tokens each query sees."""
        i = np.arange(1, self.length + 1)
        return i if self.width is None else np.minimum(i, self.width)

    @cached_property
    def starts(self) -> Int64[np.ndarray, " n"]:
        """The first pair of each row."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def rows(self) -> Int64[np.ndarray, " seen"]:
        """The query of each pair."""
        return np.repeat(np.arange(self.length), self.counts)

    @cached_property
    def flat(self) -> Int64[np.ndarray, " seen"]:
        """Where each pair lies in a raveled matrix."""
        first = np.arange(self.length) + 1 - self.counts
        columns = np.arange(self.rows.size) - self.starts[self.rows] + first[self.rows]
        return np.asarray(self.rows * self.length + columns)

    @cached_property
    def progress(self) -> EachRow:
        r"""\(\sum_{k\le i}1/n_k\), about ln i and then i/w: what the make-up of a row varies with."""
        return np.asarray(np.cumsum(1 / self.counts))

    def pack(self, matrix: Square) -> Seen:
        """The entries of the band."""
        return np.asarray(matrix.ravel()[self.flat])

    def unpack(self, seen: Seen) -> Square:
        """A matrix with zeros outside the band."""
        matrix = np.zeros(self.length**2, seen.dtype)
        matrix[self.flat] = seen
        return matrix.reshape(self.length, self.length)

    def row(self, seen: Seen, i: int) -> Float[np.ndarray, " row"]:
        """The tokens of one query."""
        return seen[self.starts[i] : self.starts[i] + self.counts[i]]

    def tokens(self, i: int) -> None:
        """Every entry is one token."""

    def each(self, vector: Real[np.ndarray, " n"], dtype: type = np.float64) -> Seen:
        """A value per query, repeated for its tokens."""
        return np.repeat(vector.astype(dtype), self.counts)

    def total(self, seen: Seen) -> EachRow:
        """Sum over the tokens of each query."""
        return np.asarray(np.add.reduceat(seen, self.starts), dtype=np.float64)

    def running(self, x: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, "n n"]:
        """Sums along axis 0 over the tokens that each query sees."""
        total = np.empty_like(x)
        total[0] = x[0]
        for before, row, out in zip(total, x[1:], total[1:], strict=False):
            np.add(before, row, out=out)
        if self.width is not None and self.width < self.length:
            total[self.width :] -= total[: -self.width].copy()
        return total

    def pair_sums(self, x: Float64[np.ndarray, "n n"]) -> EachRow:
        """Sums of a symmetric x over all pairs of tokens that each query sees."""
        entering = self.total(self.pack(x))
        total = np.cumsum(2 * entering - x.diagonal())
        if self.width is not None and self.width < self.length:
            # What leaves is the token i - w with all that the last query to see it saw after it.
            leaving = np.bincount(self.flat % self.length, self.pack(x), self.length)
            total[self.width :] -= np.cumsum(2 * leaving - x.diagonal())[: -self.width]
        return np.asarray(total)

    def chosen(self, step: float, head: int, tail: int = 1) -> Int64[np.ndarray, " rows"]:
        """Queries (0-based) so dense that ``progress`` grows by at most ``step``; the first and last ones all."""
        part = np.floor(self.progress / step)
        ends = np.flatnonzero(np.diff(part, append=np.inf))
        i = np.arange(self.length)
        return np.union1d(ends, i[(i < head) | (i >= self.length - tail)])


@lru_cache(maxsize=8)
def band(length: int, width: int | None = None) -> Band:
    """The band, made once."""
    return Band(length, None if width is None or width >= length else width)


def lower_times(w: Square, x: Square) -> Square:
    """w x for a lower-triangular w."""
    out = np.empty_like(x)
    for start in range(0, len(w), BLOCK):
        stop = start + BLOCK
        out[start:stop] = w[start:stop, :stop] @ x[:stop]
    return out


def times_lower(x: Square, w: Square) -> Square:
    """x w for a lower-triangular w."""
    out = np.empty_like(x)
    for start in range(0, len(w), BLOCK):
        stop = start + BLOCK
        out[:, start:stop] = x[:, start:] @ w[start:, start:stop]
    return out


def transposed_times(w: Square, x: Square) -> Square:
    """w^T x for a lower-triangular w."""
    out = np.empty_like(x)
    for start in range(0, len(w), BLOCK):
        stop = start + BLOCK
        out[start:stop] = w[start:, start:stop].T @ x[start:]
    return out


def symmetric_product(w: Square, x: Square) -> Square:
    """w^T x for a lower-triangular w, where the result is symmetric: its lower half is made and mirrored."""
    out = np.empty_like(x)
    for start in range(0, len(w), BLOCK):
        stop = start + BLOCK
        part = w[start:, start:stop].T @ x[start:, :stop]
        out[start:stop, :stop] = part
        out[:start, start:stop] = part[:, :start].T
    return out


def sandwich(w: Square, x: Square) -> Square:
    """w^T x w for a lower-triangular w and a symmetric x."""
    return symmetric_product(w, times_lower(x, w))
