"""Products with the attention between groups, at the cost that its structure allows: a band, or one recursion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final, no_type_check, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64

from catenary.compiled import run_compiled

Vector = Float64[np.ndarray, " n"]
Matrix = Float64[np.ndarray, "n n"]

FEW = 300
"""Groups up to which a triangle is multiplied as a matrix: loading the compiler costs more than it saves."""

ROWS = 48
"""Rows per block: fewer waste the processor's registers, more hold more zeros."""


@runtime_checkable
class Product(Protocol):
    """A matrix that is only ever multiplied."""

    def times(self, x: Float64[np.ndarray, "n k"]) -> Float64[np.ndarray, "n k"]:
        """The product with x, this matrix on the left."""
        ...


@final
@dataclass(frozen=True, eq=False)
class Blocked:
    """A matrix whose zeros surround a band, taken in blocks of rows, each with the columns that hold something."""

    matrix: Matrix

    @cached_property
    def _blocks(self) -> tuple[tuple[slice, slice, slice], ...]:
        """Rows, the columns between their outermost entries, and the rows that share any of these columns."""
        return tuple(self._found())

    def _found(self) -> Iterator[tuple[slice, slice, slice]]:
        held = self.matrix != 0
        for start in range(0, len(self.matrix), ROWS):
            rows = slice(start, start + ROWS)
            columns = _extent(held[rows].any(axis=0))
            yield rows, columns, _extent(held[:, columns].any(axis=1))

    def times(self, x: Float64[np.ndarray, "n k"]) -> Float64[np.ndarray, "n k"]:
        """The product with x, this matrix on the left."""
        out = np.empty((len(self.matrix), x.shape[1]))
        for rows, columns, _ in self._blocks:
            np.matmul(self.matrix[rows, columns], x[columns], out=out[rows])
        return out

    def between(self, weights: Vector) -> Matrix:
        """The product of this matrix, ``weights`` on the diagonal, and its transpose."""
        out = np.zeros((len(self.matrix),) * 2)
        for rows, columns, others in self._blocks:
            out[rows, others] = (self.matrix[rows, columns] * weights[columns]) @ self.matrix[others, columns].T
        return out


@final
@dataclass(frozen=True, eq=False)
class Recursion:
    r"""\(y_g = out_g s_g + own_g x_g\) with \(s_{g+1} = keep_g s_g + into_g x_g\), \(s_1 = 0\), or from the last on.

    Additions of the input's entries only.
    """

    out: Vector
    own: Vector
    keep: Vector
    into: Vector
    backward: bool = False

    def times(self, x: Float64[np.ndarray, "n k"]) -> Float64[np.ndarray, "n k"]:
        """The product with x, this matrix on the left."""
        x = np.ascontiguousarray(x)
        y = np.empty_like(x)
        step = -1 if self.backward else 1
        run_compiled(_recur, x[::step], y[::step], *(v[::step] for v in (self.out, self.own, self.keep, self.into)))
        return y

    def turned(self, sizes: Vector) -> Recursion:
        """From the attention that queries pay to groups, that which a token gets from the queries of each group."""
        return Recursion(self.into / sizes, self.own, self.keep, self.out * sizes, not self.backward)


@no_type_check
def _recur(x, y, out, own, keep, into):  # arrays: (n, k) twice, (n) four times
    total = np.zeros(x.shape[1])
    for g in range(x.shape[0]):
        for k in range(x.shape[1]):
            y[g, k] = out[g] * total[k] + own[g] * x[g, k]
            total[k] = keep[g] * total[k] + into[g] * x[g, k]


def _extent(held: Bool[np.ndarray, " n"]) -> slice:
    """From the first to the last one that is true."""
    where = np.flatnonzero(held)
    return slice(int(where[0]), int(where[-1]) + 1) if where.size else slice(0, 0)
