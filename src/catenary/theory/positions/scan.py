"""What theory needs of a mean attention kernel, and the part of it that every kernel has in common.

A kernel A has rows that sum to 1; row i is the mean attention of query i. No kernel is ever stored as a matrix:
``average`` applies A and ``adjoint`` applies its transpose in O(size) operations, with additions of the input's
entries only (no cancellation on positive input).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Real

from catenary.errors import invalid


@runtime_checkable
class Averages(Protocol):
    """What the recursion needs of a mean attention kernel A on L positions."""

    @property
    def length(self) -> int:
        """Number of positions L."""
        ...

    @property
    def counts(self) -> Float64[np.ndarray, " L"]:
        r"""How many tokens each query sees: the participation number \(1/\sum_j A_{ij}^2\)."""
        ...

    def average(self, x: Real[np.ndarray, " *shape"], axis: int = 0) -> Float64[np.ndarray, " *shape"]:
        """A applied along ``axis``: y_i = sum_j A_ij x_j."""
        ...

    def adjoint(self, x: Real[np.ndarray, " *shape"], axis: int = 0) -> Float64[np.ndarray, " *shape"]:
        """A^T applied along ``axis``: y_j = sum_i A_ij x_i."""
        ...


@runtime_checkable
class Operator(Averages, Protocol):
    """What theory needs of a mean attention kernel A of shape (L, L)."""

    def dense(self) -> Float64[np.ndarray, "L L"]:
        """A as a matrix, for tests and for looking at it."""
        ...


@dataclass(frozen=True)
class Scan(ABC):
    """A kernel on ``length`` positions; a concrete one says its counts and its two sums.

    Attributes:
        length: number of positions L >= 1.

    Raises:
        InvalidInput: when ``length`` is not a whole number >= 1.
    """

    length: int

    def __post_init__(self) -> None:
        """Refuse a length that is no size."""
        check_whole("length", self.length)

    @property
    @abstractmethod
    def counts(self) -> Float64[np.ndarray, " L"]:
        r"""How many tokens each query sees: the participation number \(1/\sum_j A_{ij}^2\)."""

    @abstractmethod
    def _average(self, x: Float64[np.ndarray, " *shape"], axis: int) -> Float64[np.ndarray, " *shape"]: ...

    @abstractmethod
    def _adjoint(self, x: Float64[np.ndarray, " *shape"], axis: int) -> Float64[np.ndarray, " *shape"]: ...

    def average(self, x: Real[np.ndarray, " *shape"], axis: int = 0) -> Float64[np.ndarray, " *shape"]:
        r"""\(y_i = \sum_j A_{ij} x_j\) along ``axis``. A new array of the shape of ``x``."""
        return self._average(self._checked(x, axis), axis)

    def adjoint(self, x: Real[np.ndarray, " *shape"], axis: int = 0) -> Float64[np.ndarray, " *shape"]:
        r"""\(y_j = \sum_i A_{ij} x_i\) along ``axis``. A new array of the shape of ``x``."""
        return self._adjoint(self._checked(x, axis), axis)

    def dense(self) -> Float64[np.ndarray, "L L"]:
        """A as an L x L matrix."""
        return self.average(np.eye(self.length))

    def _checked(self, x: Real[np.ndarray, " *shape"], axis: int) -> Float64[np.ndarray, " *shape"]:
        x = np.asarray(x, dtype=np.float64)
        if not -x.ndim <= axis < x.ndim or x.shape[axis] != self.length:
            raise invalid("x", f"must have {self.length} entries along axis {axis}", f"shape {x.shape}")
        return x


def check_whole(name: str, value: object) -> None:
    """Refuse anything but a whole number >= 1."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise invalid(name, "must be a whole number >= 1", value)


def along(
    vector: Float64[np.ndarray, " L"], x: Float64[np.ndarray, " *shape"], axis: int
) -> Float64[np.ndarray, " *ones"]:
    """``vector`` shaped so that it broadcasts along ``axis`` of ``x``."""
    return vector.reshape([-1 if a == axis % x.ndim else 1 for a in range(x.ndim)])


def frozen(vector: Float64[np.ndarray, " L"]) -> Float64[np.ndarray, " L"]:
    """``vector``, made read-only so that it can be shared."""
    vector.setflags(write=False)
    return vector
