"""Mean attention kernels as operators: a forward average and its adjoint, each one scan per vector.

A kernel A is a lower-triangular matrix with rows that sum to 1; row i is the mean attention of query i. No kernel
is ever stored as a matrix: ``average`` applies A and ``adjoint`` applies A^T in O(size) operations, with additions
of the input's entries only (no cancellation on positive input).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Real

from catenary.architecture import Causal, Kernel
from catenary.errors import NotApplicable, invalid


@runtime_checkable
class Operator(Protocol):
    """What theory needs of a mean attention kernel A of shape (L, L)."""

    @property
    def length(self) -> int:
        """Number of positions L."""
        ...

    def average(self, x: Real[np.ndarray, " *shape"], axis: int = 0) -> Float64[np.ndarray, " *shape"]:
        """A applied along ``axis``: y_i = sum_j A_ij x_j."""
        ...

    def adjoint(self, x: Real[np.ndarray, " *shape"], axis: int = 0) -> Float64[np.ndarray, " *shape"]:
        """A^T applied along ``axis``: y_j = sum_i A_ij x_i."""
        ...

    def average_both(self, x: Float64[np.ndarray, "L L"]) -> Float64[np.ndarray, "L L"]:
        """A x A^T."""
        ...

    def adjoint_both(self, x: Float64[np.ndarray, "L L"]) -> Float64[np.ndarray, "L L"]:
        """A^T x A."""
        ...

    def dense(self) -> Float64[np.ndarray, "L L"]:
        """A as a matrix, for tests and for looking at it."""
        ...


@dataclass(frozen=True)
class Uniform:
    r"""The Cesàro matrix \(M_{ij} = 1/i\) for \(j \le i\) (1-based): uniform attention over all tokens so far.

    Source: arXiv 2603.10123, section 3.1. Exact at birth when all attention logits are equal.

    Attributes:
        length: number of positions L >= 1.

    Raises:
        InvalidInput: when ``length`` is not a whole number >= 1.
    """

    length: int

    def __post_init__(self) -> None:
        """Refuse a length that is no size."""
        if not isinstance(self.length, int | np.integer) or isinstance(self.length, bool) or self.length < 1:
            raise invalid("length", "must be a whole number >= 1", self.length)

    @cached_property
    def counts(self) -> Float64[np.ndarray, " L"]:
        """Tokens seen by each query, 1..L."""
        counts = np.arange(1.0, self.length + 1.0)
        counts.setflags(write=False)
        return counts

    def average(self, x: Real[np.ndarray, " *shape"], axis: int = 0) -> Float64[np.ndarray, " *shape"]:
        r"""Running mean along ``axis``: \(y_i = \frac1i \sum_{j \le i} x_j\). A new array of the shape of ``x``."""
        x = self._checked(x, axis)
        y: Float64[np.ndarray, " *shape"] = np.empty_like(x)
        if axis in (-1, x.ndim - 1):
            for rows in _blocks(x):
                np.cumsum(x[rows], axis=-1, out=y[rows])
                y[rows] /= self.counts
            return y
        total = np.zeros_like(np.take(x, 0, axis))
        for row, out, count in zip(np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0), self.counts, strict=True):
            total += row
            np.divide(total, count, out=out)
        return y

    def adjoint(self, x: Real[np.ndarray, " *shape"], axis: int = 0) -> Float64[np.ndarray, " *shape"]:
        r"""Diluted sum over later positions: \(y_j = \sum_{i \ge j} x_i / i\). A new array of the shape of ``x``."""
        x = self._checked(x, axis)
        y: Float64[np.ndarray, " *shape"] = np.empty_like(x)
        if axis in (-1, x.ndim - 1):
            for rows in _blocks(x):
                np.divide(x[rows], self.counts, out=y[rows])
                backwards = np.flip(y[rows], -1)
                np.cumsum(backwards, axis=-1, out=backwards)
            return y
        later: Float64[np.ndarray, " *row"] | None = None
        steps = zip(np.moveaxis(x, axis, 0)[::-1], np.moveaxis(y, axis, 0)[::-1], self.counts[::-1], strict=True)
        for row, out, count in steps:
            np.divide(row, count, out=out)
            if later is not None:
                out += later
            later = out
        return y

    def average_both(self, x: Float64[np.ndarray, "L L"]) -> Float64[np.ndarray, "L L"]:
        r"""\(M x M^\top\): mean of ``x`` over all pairs up to (i, k)."""
        return self.average(self.average(x, 0), 1)

    def adjoint_both(self, x: Float64[np.ndarray, "L L"]) -> Float64[np.ndarray, "L L"]:
        r"""\(M^\top x M\): diluted sum of ``x`` over all pairs from (j, k) on."""
        return self.adjoint(self.adjoint(x, 0), 1)

    def dense(self) -> Float64[np.ndarray, "L L"]:
        """M as an L x L matrix."""
        return np.asarray(np.tril(np.ones((self.length, self.length))) / self.counts[:, None])

    def _checked(self, x: Real[np.ndarray, " *shape"], axis: int) -> Float64[np.ndarray, " *shape"]:
        x = np.asarray(x, dtype=np.float64)
        if not -x.ndim <= axis < x.ndim or x.shape[axis] != self.length:
            raise invalid("x", f"must have {self.length} entries along axis {axis}", f"shape {x.shape}")
        return x


def _blocks(x: Float64[np.ndarray, " *shape"]) -> Iterator[slice | EllipsisType]:
    """Slices of the first axis that fit in the cache: sum and division then cost one walk through memory."""
    if x.ndim == 1:
        yield ...
        return
    rows = max(1, 16_384 * x.shape[0] // x.size)
    for start in range(0, x.shape[0], rows):
        yield slice(start, start + rows)


def operator(kernel: Kernel, length: int) -> Operator:
    """The operator of a head group's kernel at ``length`` positions; raises ``NotApplicable`` for an unknown one."""
    if isinstance(kernel, Causal):
        return Uniform(length)
    raise NotApplicable(f"no scan is known for the attention kernel {type(kernel).__name__}; known: Causal")
