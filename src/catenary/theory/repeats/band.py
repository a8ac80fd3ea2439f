"""The tokens that chosen causal queries see, as packed vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Float64, Int64, Real

Square = Float[np.ndarray, "n n"]
"""A matrix over pairs of positions, in the precision of the work."""

Rows = Float[np.ndarray, "rows n"]
"""Chosen queries by tokens."""

Seen = Float[np.ndarray, " seen"]
"""One number per pair (chosen query, token it sees), row after row."""

EachRow = Float64[np.ndarray, " rows"]
"""One number per chosen query."""

STEP = 0.06
"""Largest growth of ``progress`` between chosen queries, about the relative growth of what they see."""

LONGEST = 64
"""Most positions between two chosen queries: products with the blocks between them stay cheaper than those with the
chosen rows."""

HEAD, TAIL = 32, 8
"""First and last queries that are all chosen: rows change fast in front, and the last query weighs most."""

EVERY = 128
"""Length up to which every query is chosen."""

NARROW = 48
"""Width of a window up to which every query is chosen: its rows are short, and change with each token."""


@dataclass(frozen=True, eq=False)
class Band:
    """The pairs (query i, token j) with i - width < j <= i for chosen i, row after row; ``width`` None: all j <= i."""

    size: int
    width: int | None
    queries: Int64[np.ndarray, " rows"]

    @property
    def length(self) -> int:
        """Number of rows."""
        return self.queries.size

    @cached_property
    def reached(self) -> Int64[np.ndarray, " n"]:
        """How many tokens each position sees, chosen or not."""
        i = np.arange(1, self.size + 1)
        return i if self.width is None else np.minimum(i, self.width)

    @cached_property
    def counts(self) -> Int64[np.ndarray, " rows"]:
        """How many tokens each query sees."""
        return np.asarray(self.reached[self.queries])

    @cached_property
    def starts(self) -> Int64[np.ndarray, " rows"]:
        """The first pair of each row."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @cached_property
    def rows(self) -> Int64[np.ndarray, " seen"]:
        """The row of each pair."""
        return np.repeat(np.arange(self.length), self.counts)

    @cached_property
    def columns(self) -> Int64[np.ndarray, " seen"]:
        """The token of each pair."""
        first = self.queries + 1 - self.counts
        return np.asarray(np.arange(self.rows.size) - self.starts[self.rows] + first[self.rows])

    @cached_property
    def flat(self) -> Int64[np.ndarray, " seen"]:
        """Where each pair lies in a raveled matrix of rows and tokens."""
        return np.asarray(self.rows * self.size + self.columns)

    @cached_property
    def progress(self) -> EachRow:
        r"""\(\sum_{k\le i}1/n_k\), about ln i and then i/w: what the make-up of a row varies with."""
        return np.asarray(np.cumsum(1 / self.reached)[self.queries])

    def pack(self, matrix: Rows) -> Seen:
        """The entries of the band."""
        return np.asarray(matrix.ravel()[self.flat])

    def unpack(self, seen: Seen) -> Rows:
        """A matrix with zeros outside the band."""
        matrix = np.zeros(self.length * self.size, seen.dtype)
        matrix[self.flat] = seen
        return matrix.reshape(self.length, self.size)

    def row(self, seen: Seen, i: int) -> Float[np.ndarray, " row"]:
        """The tokens of one query."""
        return seen[self.starts[i] : self.starts[i] + self.counts[i]]

    def tokens(self, i: int) -> None:
        """Every entry is one token."""

    def each(self, vector: Real[np.ndarray, " rows"], dtype: type = np.float64) -> Seen:
        """A value per query, repeated for its tokens."""
        return np.repeat(vector.astype(dtype), self.counts)

    def total(self, seen: Seen) -> EachRow:
        """Sum over the tokens of each query."""
        return np.asarray(np.add.reduceat(seen, self.starts), dtype=np.float64)

    def running(self, x: Square) -> Float64[np.ndarray, "rows n"]:
        """Sums along axis 0 over the tokens that each query sees."""
        stops = self.queries + 1
        edges = np.union1d(stops, stops - self.counts)
        total = np.zeros((edges.size, self.size))
        for row, before, start, stop in zip(total[1:], total, edges, edges[1:], strict=False):
            np.add(before, np.ones(stop - start, x.dtype) @ x[start:stop], out=row)
        found = total[np.searchsorted(edges, stops)]
        if self.width is not None:
            found -= total[np.searchsorted(edges, stops - self.counts)]
        return np.asarray(found)

    def pair_sums(self, x: Square) -> EachRow:
        """Sums of a symmetric x over all pairs of tokens that each query sees."""
        return self.total(self.pack(self.running(x)))

    def chosen(self, step: float, head: int) -> Int64[np.ndarray, " rows"]:
        """Rows so dense that ``progress`` grows by at most ``step``; the first ones and the last."""
        return thinned(self.progress, step, head)


def thinned(progress: EachRow, step: float, head: int, tail: int = 1) -> Int64[np.ndarray, " chosen"]:
    """Entries so dense that ``progress`` grows by about ``step``; the first and last ones all."""
    ends = np.flatnonzero(np.diff(np.floor(progress / step), append=np.inf))
    i = np.arange(progress.size)
    return np.union1d(ends, i[(i < head) | (i >= progress.size - tail)])


@lru_cache(maxsize=8)
def band(length: int, width: int | None = None, every: bool = False) -> Band:
    """The band over so many queries that rows between them follow by interpolation, made once; or over all."""
    width = None if width is None or width >= length else width
    i = np.arange(length)
    if every or length <= EVERY or (width is not None and width <= NARROW):
        return Band(length, width, i)
    whole = Band(length, width, i)
    sparse = thinned(whole.progress, STEP, HEAD, TAIL)
    return Band(length, width, np.union1d(sparse, i[LONGEST - 1 :: LONGEST]))
