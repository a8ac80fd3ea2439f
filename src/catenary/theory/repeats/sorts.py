"""Functions of two tokens that differ, are equal or are one, over classes of tokens and groups of positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.theory.positions.pairs import Matrix, Pairs, Vector
from catenary.theory.repeats.classes import TokenClasses

ByClass = Float64[np.ndarray, "n classes"]
"""One number per group of queries and class of tokens."""


@dataclass(frozen=True, eq=False)
class Sorts:
    """A function of two tokens: two different ones, two equal ones (at different positions), one with itself."""

    different: Matrix
    equal: Matrix
    itself: Vector

    def __add__(self, other: Sorts) -> Sorts:
        """The sum, sort by sort."""
        return Sorts(self.different + other.different, self.equal + other.equal, self.itself + other.itself)

    def __mul__(self, other: Sorts) -> Sorts:
        """The product, sort by sort."""
        return Sorts(self.different * other.different, self.equal * other.equal, self.itself * other.itself)

    def map(self, function: Callable[[Any], Any]) -> Sorts:
        """A function of every value."""
        return Sorts(function(self.different), function(self.equal), function(self.itself))


@dataclass(frozen=True, eq=False)
class States:
    """States (class, group) as one axis: equal tokens in the blocks of the diagonal, different ones beside them."""

    classes: int
    sizes: Vector

    def sorts(self, x: Pairs) -> Sorts:
        """A function that no class depends on; a single position takes its value of different tokens from beside it."""
        blocks = self._blocks(x)
        different, equal = blocks[0, :, 1].copy(), blocks[0, :, 0].copy()
        return Sorts(self._filled(different), self._filled(equal), x.same[: self.sizes.size])

    def weighted(self, x: Pairs, shares: ByClass, classes: TokenClasses) -> Gradients:
        """Gradients times the probability of their sort and class."""
        blocks, n = self._blocks(x), self.sizes.size
        one = np.diagonal(blocks, axis1=0, axis2=2).transpose(2, 0, 1).copy()
        within = classes.repeat / np.maximum(classes.share, 1e-300)
        alike = shares.T[:, :, None] * shares.T[:, None] * within[:, None, None]
        others = blocks[0, :, 1] * (1 - alike.sum(axis=0))
        equal = one * alike
        for matrix in (others, *equal):
            matrix[np.diag_indices(n)] *= self.sizes > 1
        itself = x.same.reshape(self.classes, n)
        return Gradients(others, equal.sum(axis=0), (itself * shares.T).sum(axis=0), blocks[0, :, 1], one, itself)

    def joined(self, different: Matrix, equal: list[Matrix], itself: list[Vector]) -> Pairs:
        """One function from its values per class."""
        n, m = self.sizes.size, self.classes
        blocks = np.empty((m, n, m, n))
        blocks[:] = different[None, :, None]
        for k in range(m):
            blocks[k, :, k] = equal[k]
            single = np.flatnonzero(self.sizes == 1)
            blocks[k, single, k, single] = itself[k][single]
        return Pairs(blocks.reshape(m * n, m * n), np.concatenate(itself))

    def _blocks(self, x: Pairs) -> Float64[np.ndarray, "m n k n"]:
        n = self.sizes.size
        return x.matrix.reshape(self.classes, n, self.classes, n)

    def _filled(self, matrix: Matrix) -> Matrix:
        single = np.flatnonzero(self.sizes == 1)
        beside = np.where(single > 0, single - 1, np.minimum(single + 1, self.sizes.size - 1))
        matrix[single, single] = matrix[single, beside]
        return matrix


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients by sort: summed with their probabilities, and as they are."""

    different: Matrix
    equal: Matrix
    itself: Vector
    plain_different: Matrix
    plain_equal: Float64[np.ndarray, "classes n n"]
    plain_itself: Float64[np.ndarray, "classes n"]


@dataclass(eq=False)
class Through:
    """Gradients at tokens: different ones, and per class equal ones and one with itself."""

    different: Matrix
    equal: Float64[np.ndarray, "classes n n"]
    itself: Float64[np.ndarray, "classes n"]

    @classmethod
    def zero(cls, classes: int, n: int) -> Through:
        """No gradient."""
        return cls(np.zeros((n, n)), np.zeros((classes, n, n)), np.zeros((classes, n)))
