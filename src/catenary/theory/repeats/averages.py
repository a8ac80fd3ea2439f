"""Sums over what two queries see, for weights that depend on the query and on the class of the token."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from catenary.theory.positions.pairs import Half, Matrix, Pairs, Positions, Vector
from catenary.theory.repeats.classes import TokenClasses
from catenary.theory.repeats.sorts import ByClass, Sorts


@dataclass(frozen=True, eq=False)
class Averages:
    """Averages of one function of tokens over what two queries see, its three sorts apart."""

    different: Pairs
    equal: Pairs
    itself: Pairs

    @classmethod
    def of(cls, x: Sorts, positions: Positions) -> Averages:
        """Sums over pairs of positions, weighted uniformly."""
        none = np.zeros_like(x.itself)
        return cls(
            positions.average(Pairs(x.different, none)).full,
            positions.average(Pairs(x.equal, none)).full,
            positions.average(Pairs(np.zeros_like(x.equal), x.itself)).full,
        )


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights f of tokens by row and class, times the row's length: 1 where attention is uniform."""

    f: ByClass
    classes: TokenClasses

    @cached_property
    def mean(self) -> Vector:
        """Average over classes."""
        return np.asarray(self.f @ self.classes.share)

    @cached_property
    def equal(self) -> Matrix:
        """Sum over classes of q p f f."""
        return np.asarray((self.f * (self.classes.share * self.classes.repeat)) @ self.f.T)

    @cached_property
    def itself(self) -> Matrix:
        """Sum over classes of q f f."""
        return np.asarray((self.f * self.classes.share) @ self.f.T)

    def total(self, x: Averages) -> Pairs:
        """The sum of f f x over all pairs of tokens."""
        parts = []
        for part in ("matrix", "same"):
            pick = (lambda m: m) if part == "matrix" else np.diagonal
            d, e, s = (getattr(a, part) for a in (x.different, x.equal, x.itself))
            parts.append(pick(np.outer(self.mean, self.mean)) * d + pick(self.equal) * (e - d) + pick(self.itself) * s)
        return Pairs(*parts)


@dataclass(frozen=True, eq=False)
class CoarseValues:
    """The values' covariance and its means over what queries see."""

    x: Sorts
    weights: Weights
    averages: Averages
    half: Half
    halves: list[Half]
    both: Pairs

    @classmethod
    def of(cls, x: Sorts, positions: Positions, weights: Weights) -> CoarseValues:
        """Means under the mean attention: ``half`` for a token of any class, ``halves`` for one of each."""
        averages = Averages.of(x, positions)
        none = np.zeros_like(x.itself)
        d, e, own = (
            positions.average(pairs).half.matrix
            for pairs in (Pairs(x.different, none), Pairs(x.equal, none), Pairs(np.zeros_like(x.equal), x.itself))
        )
        f, p = weights.f, weights.classes.repeat
        halves = [d + (p[m] * (e - d) + own) * f[:, m] for m in range(p.size)]
        mean = d + (e - d) * (f @ (p * weights.classes.share)) + own * weights.mean
        return cls(x, weights, averages, Half(mean), [Half(half) for half in halves], weights.total(averages))

    def by_class(self, m: int) -> Pairs:
        """Mean of ``halves[m]`` over what a second query sees."""
        a, f, p = self.averages, self.weights.f[:, m], self.weights.classes.repeat[m]
        matrix = a.different.matrix + f[:, None] * (p * (a.equal.matrix - a.different.matrix) + a.itself.matrix)
        same = a.different.same + f * (p * (a.equal.same - a.different.same) + a.itself.same)
        return Pairs(matrix, same)


def seen_by_two(o: Weights, h: Weights, b: Weights, x: Averages, alike: Averages) -> Pairs:
    """The numerator of the mean of x, ``alike`` being the averages of M x."""
    first, second = o.total(x), h.total(alike)
    matrix = first.matrix + second.matrix + b.itself * x.itself.matrix
    same = first.same + second.same + b.itself.diagonal() * x.itself.same
    return Pairs(matrix, same)


def times_each(x: Pairs, f: Vector) -> Pairs:
    """A function of two tokens or queries times a factor of each."""
    return Pairs(x.matrix * f * f[:, None], x.same * f**2)
