r"""Symmetric functions of two positions, and their averages over what attention mixes.

The second-moment recursion needs a covariance of every pair of tokens. ``Pairs`` holds one; ``Positions`` is what a
set of positions can do with it. Every position by itself (``Singles``) gives the exact recursion; groups of alike
positions (``catenary.theory.coarse``) give a cheap one. The recursion is written once, for either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from catenary.theory.positions.scan import Averages
from catenary.theory.positions.uniform import Uniform

Matrix = Float64[np.ndarray, "n n"]
Vector = Float64[np.ndarray, " n"]


Near = Float64[np.ndarray, "m lags"]


def _nowhere() -> Near:
    return np.empty((1, 0))


@dataclass(frozen=True, eq=False)
class Pairs:
    """A symmetric function of two tokens, by group of positions.

    ``matrix[g, h]`` is its value for two different tokens of groups g and h; ``same[g]`` for a token with itself.
    A group of one token has no two different tokens: there ``matrix[g, g]`` must equal ``same[g]``. On positions that
    know distances, ``near[g, b]`` is the value for two tokens about group g at the b-th distance.
    """

    matrix: Matrix
    same: Vector
    near: Near = field(default_factory=_nowhere)

    def __add__(self, other: Pairs) -> Pairs:
        """The sum, pair by pair."""
        return Pairs(self.matrix + other.matrix, self.same + other.same, self.near + other.near)

    def __mul__(self, other: Pairs) -> Pairs:
        """The product, pair by pair."""
        return Pairs(self.matrix * other.matrix, self.same * other.same, self.near * other.near)

    def plus(self, other: Pairs) -> Pairs:
        """``self + other`` in the memory of ``self``, which must not be used again: large matrices cost walks."""
        matrix = np.add(self.matrix, other.matrix, out=self.matrix)
        return Pairs(matrix, self.same + other.same, self.near + other.near)

    def times(self, other: Pairs) -> Pairs:
        """``self * other`` in the memory of ``self``, which must not be used again."""
        matrix = np.multiply(self.matrix, other.matrix, out=self.matrix)
        return Pairs(matrix, self.same * other.same, self.near * other.near)

    def map(self, function: Callable[[Matrix], Matrix]) -> Pairs:
        """``function`` of every value."""
        near = function(self.near) if self.near.size else self.near
        return Pairs(function(self.matrix), function(self.same), near)

    def scaled(self, factor: Vector) -> Pairs:
        """Both tokens multiplied by their factor: f_g f_h x_gh."""
        matrix = self.matrix * factor
        matrix *= factor[:, None]
        return Pairs(matrix, self.same * factor**2, self.near * factor[:, None] ** 2)


def constant(value: float) -> Pairs:
    """One number for every pair, of a shape that broadcasts against any other."""
    return Pairs(np.full((1, 1), value), np.full(1, value), np.full((1, 1), value))


@dataclass(frozen=True, eq=False)
class Half:
    """A function of a token and a query, in this order.

    ``matrix[g, h]`` belongs to a token of group g and a query of group h. On positions that know distances,
    ``near[g, b]`` belongs to a token about group g and a query at the b-th distance behind it, negative ones included.
    """

    matrix: Matrix
    near: Near = field(default_factory=_nowhere)

    def __mul__(self, other: Half | Vector) -> Half:
        """The product with another one, or with a factor of the query."""
        if isinstance(other, Half):
            return Half(self.matrix * other.matrix, self.near * other.near)
        return Half(self.matrix * other, self.near * other[:, None])

    def __truediv__(self, factor: Vector) -> Half:
        """The quotient by a factor of the query."""
        return self * (1 / factor)


@dataclass(frozen=True, eq=False)
class Mean:
    """A function of pairs with one token (``half``) or both averaged by attention."""

    half: Half
    full: Pairs


@runtime_checkable
class Positions(Protocol):
    """What the recursion needs of a set of positions, A being the mean attention."""

    @property
    def counts(self) -> Vector:
        """How many tokens each query sees (ALiBi: the participation number of its row)."""
        ...

    @property
    def sizes(self) -> Vector:
        """How many positions each group holds."""
        ...

    def average(self, x: Pairs) -> Mean:
        """X A^T and A X A^T."""
        ...

    def adjoint(self, x: Pairs) -> Mean:
        """A^T X and A^T X A."""
        ...

    def average_centred(self, x: Pairs, b: Half) -> Pairs:
        """A X A^T - A b - (A b)^T."""
        ...

    def adjoint_centred(self, x: Pairs, b: Half) -> Pairs:
        """A^T X A - b A - (b A)^T."""
        ...


@dataclass(frozen=True)
class Singles:
    """Every position by itself: exact, O(L^2) per average (some positions, where the kernel sums over the others)."""

    kernel: Averages

    @classmethod
    def uniform(cls, length: int) -> Singles:
        """All positions up to ``length`` under uniform causal attention."""
        return cls(Uniform(length))

    @property
    def counts(self) -> Vector:
        """How many tokens each query sees (ALiBi: the participation number of its row)."""
        return self.kernel.counts

    @property
    def sizes(self) -> Vector:
        """One position per group."""
        return np.ones(self.kernel.length)

    def average(self, x: Pairs) -> Mean:
        """X A^T and A X A^T."""
        half = self.kernel.average(x.matrix, 1)
        full = self.kernel.average(half, 0)
        return Mean(Half(half), Pairs(full, full.diagonal().copy()))

    def adjoint(self, x: Pairs) -> Mean:
        """A^T X and A^T X A."""
        half = self.kernel.adjoint(x.matrix, 0)
        full = self.kernel.adjoint(half, 1)
        return Mean(Half(half), Pairs(full, full.diagonal().copy()))

    def average_centred(self, x: Pairs, b: Half) -> Pairs:
        """A X A^T - A b - (A b)^T."""
        # X is symmetric, so this is W + W^T with W = A (X A^T / 2 - b): two scans instead of three.
        half = self.kernel.average(x.matrix, 1)
        half *= 0.5
        half -= b.matrix
        return _symmetric(self.kernel.average(half, 0))

    def adjoint_centred(self, x: Pairs, b: Half) -> Pairs:
        """A^T X A - b A - (b A)^T."""
        half = self.kernel.adjoint(x.matrix, 0)
        half *= 0.5
        half -= b.matrix
        return _symmetric(self.kernel.adjoint(half, 1))


def _symmetric(w: Matrix) -> Pairs:
    """W + W^T."""
    matrix = w + w.T
    return Pairs(matrix, matrix.diagonal().copy())
