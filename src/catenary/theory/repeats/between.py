r"""Matrices of causal queries and tokens from their rows at chosen queries: products in O(L^2 log L).

With n tokens seen by a query, \(n_iW_{ij}\) hardly changes with i while j is seen: between two chosen queries it is
linear in ``progress``. A token that enters between them keeps the value it has at the second, one that leaves that at
the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from catenary.theory.repeats.band import Band, Rows, Square

BLOCK = 16
"""Chosen rows per product: their zeros are left out block by block."""

Columns = Float[np.ndarray, "n columns"]

Between = Float[np.ndarray, "*rows"]
"""One number per pair of chosen queries, or per chosen query."""

Over = Callable[[Rows, Rows], Between]
"""From two functions of (query, token) to their product summed over tokens, for two queries or for one."""


def pairs(u: Rows, w: Rows) -> Between:
    """For every pair of queries."""
    return np.asarray(u @ w.T)


def single(u: Rows, w: Rows) -> Between:
    """For every query with itself."""
    return np.asarray((u * w).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Span:
    """The queries between two neighbouring chosen ones, ``row`` and the next.

    ``linear`` interpolates a smooth function, ``ends`` a row of weights; ``entering`` corrects them at the tokens
    ``came``, ``leaving`` at ``went``, in units of the second and of the first row.
    """

    row: int
    inside: slice
    came: slice
    went: slice
    linear: Float[np.ndarray, "inside 2"]
    ends: Float[np.ndarray, "inside 2"]
    entering: Float[np.ndarray, "inside came"]
    leaving: Float[np.ndarray, "inside went"]


@lru_cache(maxsize=16)
def spans(seen: Band, dtype: np.dtype[Any]) -> tuple[Span, ...]:
    """All spans of a band that hold a query."""
    found = []
    whole = np.cumsum(1 / seen.reached)
    for row, (r0, r1) in enumerate(zip(seen.queries, seen.queries[1:], strict=False)):
        if r1 - r0 < 2:
            continue
        i = np.arange(r0 + 1, r1)
        n = seen.reached[i]
        part = (whole[i] - whole[r0]) / (whole[r1] - whole[r0])
        first, second = seen.reached[r0] / n, seen.reached[r1] / n
        came, went = np.arange(seen.stop[r0], seen.stop[r1]), np.arange(seen.first[r0], seen.first[r1])
        entering = second[:, None] * ((came < seen.stop[i, None]) - part[:, None])
        leaving = first[:, None] * ((went >= seen.first[i, None]) - 1 + part[:, None])
        linear = np.stack([1 - part, part], axis=1)
        arrays = linear, linear * np.stack([first, second], axis=1), entering, leaving
        moved = slice(seen.stop[r0], seen.stop[r1]), slice(seen.first[r0], seen.first[r1])
        found.append(Span(row, slice(r0 + 1, r1), *moved, *(a.astype(dtype) for a in arrays)))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Corner:
    """A span, and what one matrix has at the tokens that enter and leave there."""

    span: Span
    entering: Float[np.ndarray, "inside came"]
    leaving: Float[np.ndarray, "inside went"]


def each_query(values: Float[np.ndarray, "rows ..."], seen: Band) -> Float[np.ndarray, "n ..."]:
    """A smooth function of the query, from the chosen ones to all."""
    if seen.length == seen.size:
        return values
    out = np.empty((seen.size, *values.shape[1:]), values.dtype)
    out[seen.queries] = values
    for span in spans(seen, values.dtype):
        out[span.inside] = span.linear @ values[span.row : span.row + 2]
    return out


def both_queries(values: Float[np.ndarray, "rows rows"], seen: Band) -> Square:
    """A smooth function of two queries, from pairs of chosen ones to all pairs."""
    return each_query(np.ascontiguousarray(each_query(values.T, seen).T), seen)


@dataclass(frozen=True, eq=False)
class Interpolated:
    """A matrix W of queries and the tokens they see, ``values`` being its rows at chosen queries."""

    values: Rows
    seen: Band

    @cached_property
    def corners(self) -> list[Corner]:
        """Per span what interpolation lacks at tokens that enter and leave."""
        found, values = [], self.values
        for span in spans(self.seen, values.dtype):
            came, went = values[span.row + 1, span.came], values[span.row, span.went]
            found.append(Corner(span, span.entering * came, span.leaving * went))
        return found

    def at(self, x: Columns) -> Float[np.ndarray, "rows columns"]:
        """W x at chosen queries."""
        out = np.empty((self.seen.length, x.shape[1]), np.result_type(self.values, x))
        for rows, seen in self._blocks():
            np.matmul(self.values[rows, seen], x[seen], out=out[rows])
        return out

    def times(self, x: Columns) -> Columns:
        """W x."""
        chosen = self.at(x)
        if self.seen.length == self.seen.size:
            return chosen
        out = np.empty((self.seen.size, x.shape[1]), chosen.dtype)
        out[self.seen.queries] = chosen
        for corner in self.corners:
            span, entering, leaving = corner.span, corner.entering, corner.leaving
            part = entering @ x[span.came]
            part += span.ends @ chosen[span.row : span.row + 2]
            if leaving.size:
                part += leaving @ x[span.went]
            out[span.inside] = part
        return out

    def transposed(self, y: Columns) -> Columns:
        r"""\(W^\top y\)."""
        whole = self.seen.length == self.seen.size
        sent = y if whole else y[self.seen.queries]
        for corner in self.corners:
            span = corner.span
            sent[span.row : span.row + 2] += span.ends.T @ y[span.inside]
        out = np.empty((self.seen.size, y.shape[1]), np.result_type(self.values, y))
        for tokens, rows in self._columns():
            np.matmul(self.values[rows, tokens].T, sent[rows], out=out[tokens])
        for corner in self.corners:
            span = corner.span
            out[span.came] += corner.entering.T @ y[span.inside]
            if corner.leaving.size:
                out[span.went] += corner.leaving.T @ y[span.inside]
        return out

    def sandwich(self, x: Square) -> Square:
        r"""\(W^\top xW\) for a symmetric x."""
        return self.transposed(self.transposed(x).T)

    def dense(self) -> Square:
        """W itself."""
        if self.seen.length == self.seen.size:
            return self.values
        out = np.zeros((self.seen.size, self.seen.size), self.values.dtype)
        out[self.seen.queries] = self.values
        for corner in self.corners:
            span = corner.span
            np.matmul(span.ends, self.values[span.row : span.row + 2], out=out[span.inside])
            out[span.inside, span.came] += corner.entering
            if corner.leaving.size:
                out[span.inside, span.went] += corner.leaving
        return out

    def _blocks(self) -> Iterator[tuple[slice, slice]]:
        """Blocks of rows, and the tokens that one of them sees."""
        starts, stops = self._bounds()
        for first in range(0, self.seen.length, BLOCK):
            rows = slice(first, first + BLOCK)
            yield rows, slice(int(starts[first]), int(stops[rows][-1]))

    def _columns(self) -> Iterator[tuple[slice, slice]]:
        """Blocks of tokens, and the rows that see one of them."""
        (starts, stops), start = self._bounds(), 0
        for stop in map(int, [*stops[BLOCK - 1 : -1 : BLOCK], stops[-1]]):
            rows = slice(int(np.searchsorted(stops, start, "right")), int(np.searchsorted(starts, stop)))
            yield slice(start, stop), rows
            start = stop

    def _bounds(self) -> tuple[Int64[np.ndarray, " rows"], Int64[np.ndarray, " rows"]]:
        """The first token each row sees, and the one after its last."""
        return self.seen.first[self.seen.queries], self.seen.stop[self.seen.queries]
