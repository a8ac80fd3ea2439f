"""Pairs of near positions by their distance: what groups cannot hold of a kernel with a shorter memory than theirs.

Far from both ends pairs depend slowly on position and fast on distance. Within a group that is wider than ALiBi's
memory, averages are then convolutions over distances. Functions of distance are straight between nodes that are dense
near 0, and constant beyond the last one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float64

Lags = Float64[np.ndarray, " lags"]
Ramp = Callable[[Float64[np.ndarray, "targets nodes"]], Float64[np.ndarray, "targets nodes"]]
"""From z to the mean of max(d - z, 0) over a distribution of whole numbers d."""

PER_OCTAVE = 8
"""Nodes per doubling of the distance; up to 8 every distance is one."""


def lags_up_to(longest: float) -> Lags:
    """Nodes 1, 2, ..., 8 and then ``PER_OCTAVE`` per octave, until ``longest``; none below 1."""
    nodes = [1.0]
    while nodes[-1] < longest:
        nodes.append(max(nodes[-1] + 1, round(nodes[-1] * 2 ** (1 / PER_OCTAVE))))
    return np.array(nodes if longest >= 1 else [], dtype=np.float64)


@final
@dataclass(frozen=True, eq=False)
class Convolution:
    r"""ALiBi's average far from both ends, on distances: weights \(a_v = (1-r)r^v\), \(v \ge 0\), \(r = e^{-m}\).

    Attributes:
        slope: m.
        lags: the nodes, without 0.
    """

    slope: float
    lags: Lags

    @cached_property
    def both(self) -> Float64[np.ndarray, "m m"]:
        r"""From x at 0 and the lags to \(\sum_{uv} a_u a_v x(|\ell+u-v|)\) there."""
        return self._folded(_expected(self._even, self._signed, self._ramp_of_difference))

    @cached_property
    def one(self) -> Float64[np.ndarray, "signed m"]:
        r"""From x at 0 and the lags to \(\sum_v a_v x(|\delta-v|)\) at distances \(\delta\) of both signs."""
        return self._folded(_expected(-self._signed, self._signed, self._ramp))

    @cached_property
    def back(self) -> Float64[np.ndarray, "m signed"]:
        r"""From b of both signs to \(\sum_u a_u[b(\ell+u)+b(-\ell+u)]\) at 0 and the lags."""
        ahead, behind = (_expected(at, self._signed, self._ramp) for at in (self._even, -self._even))
        return np.asarray(ahead + behind)

    def _ramp(self, z: Float64[np.ndarray, "targets nodes"]) -> Float64[np.ndarray, "targets nodes"]:
        """For v."""
        return np.asarray(np.exp(-self.slope * (np.maximum(z, 0) + 1)) / -math.expm1(-self.slope) + np.maximum(-z, 0))

    def _ramp_of_difference(self, z: Float64[np.ndarray, "targets nodes"]) -> Float64[np.ndarray, "targets nodes"]:
        """For u - v."""
        return np.asarray(np.exp(-self.slope * (np.abs(z) + 1)) / -math.expm1(-2 * self.slope) + np.maximum(-z, 0))

    @cached_property
    def _even(self) -> Float64[np.ndarray, " m"]:
        return np.concatenate(([0.0], self.lags))

    @cached_property
    def _signed(self) -> Float64[np.ndarray, " signed"]:
        return np.concatenate((-self.lags[::-1], [0.0], self.lags))

    def _folded(self, matrix: Float64[np.ndarray, "targets signed"]) -> Float64[np.ndarray, "targets m"]:
        """The same for functions of the distance without its sign."""
        size = self.lags.size
        folded = matrix[:, size:].copy()
        folded[:, 1:] += matrix[:, :size][:, ::-1]
        return folded


def _expected(
    targets: Float64[np.ndarray, " targets"], nodes: Float64[np.ndarray, " nodes"], ramp: Ramp
) -> Float64[np.ndarray, "targets nodes"]:
    """Weights of values at ``nodes`` in the mean of f(target + d), f straight between nodes and constant beyond."""
    above = ramp(nodes - targets[:, None])
    steps = -np.diff(above, axis=1) / np.diff(nodes)
    return -np.diff(steps, axis=1, prepend=1.0, append=0.0)
