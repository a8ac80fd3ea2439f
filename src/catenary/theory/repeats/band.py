"""The tokens that chosen causal queries see, as packed vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Float64, Int64, Real

from catenary.architecture import Causal, Chunk, Kernel, Prefix, Window
from catenary.errors import NotApplicable

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
"""Longest row up to which every query is chosen: short rows change with each token."""


@dataclass(frozen=True, eq=False)
class Band:
    """The pairs (query i, token j) with first_i <= j < stop_i for chosen i, row after row; neither bound falls."""

    first: Int64[np.ndarray, " n"]
    stop: Int64[np.ndarray, " n"]
    queries: Int64[np.ndarray, " rows"]

    @classmethod
    def of(cls, kernel: Kernel, length: int, queries: Int64[np.ndarray, " rows"]) -> Band:
        """What queries see under a kernel that is uniform over what it sees; others are refused."""
        i = np.arange(length)
        match kernel:
            case Causal():
                return cls(np.zeros_like(i), i + 1, queries)
            case Window(width):
                return cls(np.maximum(i + 1 - width, 0), i + 1, queries)
            case Chunk(width):
                return cls(i - i % width, i + 1, queries)
            case Prefix(inside):
                return cls(np.zeros_like(i), np.maximum(i + 1, min(inside, length)), queries)
        raise NotApplicable(f"the law of repeated tokens does not cover {type(kernel).__name__} attention")

    @property
    def size(self) -> int:
        """Number of positions."""
        return self.first.size

    @property
    def length(self) -> int:
        """Number of rows."""
        return self.queries.size

    @property
    def reached(self) -> Int64[np.ndarray, " n"]:
        """How many tokens each position sees, chosen or not."""
        return np.asarray(self.stop - self.first)

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
        first = self.first[self.queries] - self.starts
        return np.asarray(np.arange(self.rows.size) + first[self.rows])

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
        starts, stops = self.first[self.queries], self.stop[self.queries]
        edges = np.union1d(stops, starts)
        total = np.zeros((edges.size, self.size))
        for row, before, start, stop in zip(total[1:], total, edges, edges[1:], strict=False):
            np.add(before, np.ones(stop - start, x.dtype) @ x[start:stop], out=row)
        found = total[np.searchsorted(edges, stops)]
        if starts.any():
            found -= total[np.searchsorted(edges, starts)]
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
def band(length: int, kernel: Kernel, every: bool = False) -> Band:
    """The band over so many queries that rows between them follow by interpolation, made once; or over all."""
    i = np.arange(length)
    whole = Band.of(kernel, length, i)
    if every or length <= EVERY or whole.reached.max() <= NARROW:
        return whole
    sparse = thinned(whole.progress, STEP, HEAD, TAIL)
    return Band.of(kernel, length, np.union1d(sparse, i[LONGEST - 1 :: LONGEST]))
