r"""Sums over a line of whole numbers of a function that is known at some of them: polynomials between, on one side.

A function of two positions jumps where they are equal. Seen from one of them, the *pivot*, it is smooth on either
side; values between known ones are taken from the pivot's own side only, the pivot itself left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float64, Int64

Whole = Int64[np.ndarray, " n"]
Weight = Callable[[Float64[np.ndarray, " y"]], Float64[np.ndarray, " y"]]
"""What a term y of a sum is multiplied by."""

POINTS, BEYOND = 5, 4
"""Known values that a value between is taken from, and one next to the pivot, where the polynomial is carried on. With
6 and 5 errors grow where steps are wide (2 % with steps of .45); with 4 and 3 they are three times larger."""

STEEPEST = 0.5
"""Largest step near the end over what is left."""


@final
@dataclass(frozen=True, eq=False)
class Line:
    """The numbers 0, ..., length - 1, of which ``nodes`` are known.

    Attributes:
        nodes: the known ones, ascending, 0 and length - 1 among them.
        shift: functions are polynomials in ln(y + shift).
        alone: whether the last number stands alone: nothing is concluded from it.
    """

    nodes: Whole
    shift: float = 1.0
    alone: bool = False

    @property
    def size(self) -> int:
        """How many are known."""
        return self.nodes.size

    def up_to(self, weight: Weight) -> Float64[np.ndarray, "pivots n n"]:
        """From known values to the sums over y <= node; one matrix per pivot, and the last one without a pivot."""
        return np.cumsum(self._terms(weight), axis=1)

    def onward(self, weight: Weight) -> Float64[np.ndarray, "pivots n n"]:
        """The same for the sums over y >= node."""
        terms = self._terms(weight)
        own = np.zeros_like(terms)
        own[:, np.arange(self.size), np.arange(self.size)] = weight(self.nodes.astype(np.float64))
        between = terms - own
        later = np.cumsum(terms[:, ::-1], axis=1)[:, ::-1]
        return np.asarray(later - between)

    @cached_property
    def represented(self) -> Float64[np.ndarray, " n"]:
        """The weights of known values in the sum over all numbers."""
        at, weights = self._stencils
        total = np.zeros(self.size + POINTS)
        for point in range(POINTS):
            np.add.at(total, at + point, weights[:, point])
        return total[: self.size]

    def spread(self, values: Float64[np.ndarray, "n other"]) -> Float64[np.ndarray, "length other"]:
        """The function at every number."""
        at, weights = self._stencils
        spread = weights[:, 0, None] * values[at]
        for point in range(1, weights.shape[1]):
            spread += weights[:, point, None] * values[np.minimum(at + point, self.size - 1)]
        return np.asarray(spread)

    @cached_property
    def _stencils(self) -> tuple[Whole, Float64[np.ndarray, "length points"]]:
        length = int(self.nodes[-1]) + 1
        at, weights = np.zeros(length, dtype=np.int64), np.zeros((length, POINTS))
        at[self.nodes], weights[self.nodes, 0] = np.arange(self.size), 1.0
        for k in range(1, self.size):
            first, stop = self._side(k, None)
            inside = slice(int(self.nodes[k - 1]) + 1, int(self.nodes[k]))
            if inside.start < inside.stop:
                at[inside] = first
                weights[inside, : stop - first] = self._lagrange(k, first, stop)
        return at, weights

    def _terms(self, weight: Weight) -> Float64[np.ndarray, "pivots n n"]:
        """For each pivot and k: the known values' weights in the sum over the numbers behind node k - 1 up to k."""
        size = self.size
        terms = np.zeros((size + 1, size, size))
        terms[:, np.arange(size), np.arange(size)] = weight(self.nodes.astype(np.float64))
        for k in np.flatnonzero(np.diff(self.nodes) > 1) + 1:
            weights = weight(np.arange(self.nodes[k - 1] + 1.0, self.nodes[k]))
            found: dict[tuple[int, int], Float64[np.ndarray, " points"]] = {}
            for pivot in range(size + 1):
                first, stop = side = self._side(int(k), pivot)
                if side not in found:
                    found[side] = weights @ self._lagrange(int(k), first, stop)
                terms[pivot, k, first:stop] += found[side]
        return terms

    def _side(self, k: int, pivot: int | None) -> tuple[int, int]:
        """The known values that numbers between node k - 1 and node k are taken from."""
        low, high = 0, self.size - self.alone
        if pivot is not None and pivot < self.size:
            low, high = (pivot + 1, high) if pivot < k else (low, min(high, pivot))
        points = BEYOND if pivot in (k - 1, k) else POINTS
        first = min(max(k - (points + 1) // 2, low), max(high - points, low))
        return first, min(first + points, high)

    def _lagrange(self, k: int, first: int, stop: int) -> Float64[np.ndarray, "y points"]:
        """The polynomials that are 1 at one of the known values, at the numbers between node k - 1 and node k."""
        x = np.log(np.arange(self.nodes[k - 1] + 1.0, self.nodes[k]) + self.shift)
        at = np.log(self.nodes[first:stop] + self.shift)
        weights = np.ones((x.size, at.size))
        for i in range(at.size):
            for j in range(at.size):
                if i != j:
                    weights[:, i] *= (x - at[j]) / (at[i] - at[j])
        return weights


def graded(length: int, singles: int, growth: float, end: float) -> Whole:
    """Known numbers below ``length``: all of the first, then steps of a share of y, finer towards the end.

    Args:
        length: how many numbers there are.
        singles: how many at the start are all known.
        growth: step over y, and over the numbers left.
        end: smallest share of the length that a step near the end has.
    """
    known = [0]
    while known[-1] < length - 1:
        y = known[-1]
        step = min(growth * (y + 1), min(growth, STEEPEST) * (length - 1 - y) + end * length)
        step = 1 if y + 1 < singles else max(1, round(step))
        known.append(min(y + step, length - 1))
    return np.array(known, dtype=np.int64)
