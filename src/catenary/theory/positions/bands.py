"""Near groups that are wider than what tells their members apart: means of pairs by distance over the members."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Float64, Int64

from catenary.theory.positions.lags import Lags, Measure, expected, tetrahedral
from catenary.theory.positions.pairs import Half, Matrix, Near, Pairs, Vector

BAND = 2
"""Groups this far apart or less are near."""


@final
@dataclass(frozen=True, eq=False)
class Band:
    """Pairs of near wide groups of a grid.

    Attributes:
        sizes: how many positions each group holds.
        lags: distances at which pairs are known.
        wide: the groups that are.
    """

    sizes: Vector
    lags: Lags
    wide: Bool[np.ndarray, " n"]

    @cached_property
    def _diagonal(self) -> Int64[np.ndarray, " pairs"]:
        return np.flatnonzero(self.wide)

    @cached_property
    def _pairs(self) -> Int64[np.ndarray, "2 pairs"]:
        groups = np.arange(self.sizes.size)
        pairs = [(groups[:-d], groups[d:]) for d in range(1, BAND + 1)]
        kept = [np.array(pair)[:, self.wide[pair[0]] & self.wide[pair[1]]] for pair in pairs]
        return np.concatenate(kept, axis=1)

    @cached_property
    def _own(self) -> Float64[np.ndarray, "pairs signed"]:
        """Weights of distances between two different members of one group."""
        n = self.sizes[self._diagonal][:, None]
        weights = _between(n, n, np.zeros_like(n), np.concatenate((-self.lags[::-1], [0.0], self.lags)))
        weights[:, self.lags.size] -= 1 / n[:, 0]
        return np.asarray(weights * n / (n - 1))

    @cached_property
    def _other(self) -> Float64[np.ndarray, "pairs lags"]:
        """Weights of distances between members of two groups."""
        earlier, later = self._pairs
        centres = np.cumsum(self.sizes) - (self.sizes - 1) / 2
        n, m, apart = self.sizes[earlier, None], self.sizes[later, None], (centres[later] - centres[earlier])[:, None]
        return _between(n, m, apart, np.concatenate(([0.0], self.lags)))[:, 1:]

    def pairs(self, x: Pairs) -> Matrix:
        """The matrix of x with near wide groups replaced by means over distances."""
        if self._diagonal.size == 0:
            return x.matrix
        matrix = x.matrix.copy()
        own, middle = self._own, self.lags.size
        folded = own[:, middle + 1 :] + own[:, :middle][:, ::-1]
        at = self._diagonal
        matrix[at, at] = np.einsum("pb,pb->p", folded, x.near[at]) + own[:, middle] * x.same[at]
        g, h = self._pairs
        matrix[g, h] = matrix[h, g] = 0.5 * np.einsum("pb,pb->p", self._other, x.near[g] + x.near[h])
        return matrix

    def half(self, b: Half) -> Matrix:
        """The same for a function of a token and a query."""
        if self._diagonal.size == 0:
            return b.matrix
        matrix, at, middle = b.matrix.copy(), self._diagonal, self.lags.size
        matrix[at, at] = np.einsum("pb,pb->p", self._own, b.near[at])
        g, h = self._pairs
        behind, before = b.near[:, middle + 1 :], b.near[:, :middle][:, ::-1]
        matrix[g, h] = 0.5 * np.einsum("pb,pb->p", self._other, behind[g] + behind[h])
        matrix[h, g] = 0.5 * np.einsum("pb,pb->p", self._other, before[g] + before[h])
        return matrix


def _between(
    n: Float64[np.ndarray, "pairs 1"],
    m: Float64[np.ndarray, "pairs 1"],
    apart: Float64[np.ndarray, "pairs 1"],
    nodes: Float64[np.ndarray, " nodes"],
) -> Near:
    """Weights at ``nodes`` of the distance between a member of a group of n and one of m, ``apart`` between centres."""

    def ramp(z: Float64[np.ndarray, "pairs nodes"]) -> Float64[np.ndarray, "pairs nodes"]:
        s, wide, thin = apart - z, (m + n) / 2, (m - n) / 2
        parts = tetrahedral(s + wide) - tetrahedral(s + thin) - tetrahedral(s - thin) + tetrahedral(s - wide)
        return np.asarray(parts / (m * n))

    return expected(np.zeros(len(n)), nodes, Measure(ramp))
