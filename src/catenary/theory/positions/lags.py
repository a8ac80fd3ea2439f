"""Pairs of near positions by their distance: what groups cannot hold of a kernel with a shorter memory than theirs.

Far from both ends pairs depend slowly on position and fast on distance. Within a group that is wider than a share of
a window or of ALiBi's memory, averages are then convolutions over distances. Functions of distance are straight
between nodes that are dense near 0, and constant beyond the last one.
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
Ramped = Float64[np.ndarray, "targets nodes"]


@final
@dataclass(frozen=True, eq=False)
class Measure:
    """Weights of whole numbers d, as the sum of weight * max(d - z, 0) for any z, and their total."""

    ramp: Callable[[Ramped], Ramped]
    total: float = 1.0


ABOVE_DECAY, ABOVE_WINDOW = 0.1, 0.045
"""Size of a group, in ALiBi's memories or in windows, above which its pairs are taken by distance."""

FROM_ENDS = 8.0
"""ALiBi's memories from both ends within which pairs change too fast with position: at 5 the norm errs by .5 %."""

PER_OCTAVE = 8
"""Nodes per doubling of the distance; up to 8 every distance is one."""


def lags_up_to(longest: float, per_octave: int = PER_OCTAVE) -> Lags:
    """Nodes 1, 2, ..., 8 and then ``PER_OCTAVE`` per octave, until ``longest``; none below 1."""
    nodes = [1.0]
    while nodes[-1] < longest:
        nodes.append(max(nodes[-1] + 1, round(nodes[-1] * 2 ** (1 / per_octave))))
    return np.array(nodes if longest >= 1 else [], dtype=np.float64)


@final
@dataclass(frozen=True, eq=False)
class Convolution:
    r"""An attention's average far from both ends, on distances: weights \(a_v\), \(v \ge 0\), that sum to 1.

    Two tokens at u and v behind their queries stand \((u+v)/2\) behind the queries' middle. Given \(d = u - v\) that is
    \((w-1)/2\) on average for a window, and for a decay \(|d|/2\) and a number of slope 2m more: the part that depends
    on d is taken to first order in how pairs change with position (``both_moved``), the other as an average over
    groups. Derived here.

    Attributes:
        lags: the nodes, without 0.
        above: size of groups above which their pairs are taken by distance.
        one: measure \(a_v\).
        two: measure of \(u - v\), u and v independent.
        one_moved: measure \(a_v v/2\).
        two_moved: measure of \(u - v\) times \(|u-v|/2\), where the middle moves by that.
        unit: how far the average over groups moves a middle.
        slope: of a decay, as it is known.
    """

    lags: Lags
    above: float
    one: Measure
    two: Measure
    one_moved: Measure
    two_moved: Measure | None
    unit: float
    slope: float | None = None

    @cached_property
    def both(self) -> Float64[np.ndarray, "m m"]:
        r"""From x at 0 and the lags to \(\sum_{uv} a_u a_v x(|\ell+u-v|)\) there."""
        return self._folded(expected(self._even, self._signed, self.two))

    @cached_property
    def both_moved(self) -> Float64[np.ndarray, "m m"] | None:
        r"""The same with weights \(a_u a_v|u-v|/2\); None where the middle does not move with u - v."""
        return None if self.two_moved is None else self._folded(expected(self._even, self._signed, self.two_moved))

    @cached_property
    def half(self) -> Float64[np.ndarray, "signed m"]:
        r"""From x at 0 and the lags to \(\sum_v a_v x(|\delta-v|)\) at distances \(\delta\) of both signs."""
        return self._folded(expected(-self._signed, self._signed, self.one))

    @cached_property
    def half_moved(self) -> Float64[np.ndarray, "signed m"]:
        r"""The same with weights \(a_v v/2\)."""
        return self._folded(expected(-self._signed, self._signed, self.one_moved))

    @cached_property
    def back(self) -> Float64[np.ndarray, "m signed"]:
        r"""From b of both signs to \(\sum_u a_u[b(\ell+u)+b(-\ell+u)]\) at 0 and the lags."""
        return self._both_ways(self.one)

    @cached_property
    def back_moved(self) -> Float64[np.ndarray, "m signed"]:
        r"""The same with weights \(a_u u/2\)."""
        return self._both_ways(self.one_moved)

    def _both_ways(self, measure: Measure) -> Float64[np.ndarray, "m signed"]:
        ahead, behind = (expected(at, self._signed, measure) for at in (self._even, -self._even))
        return np.asarray(ahead + behind)

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


def decaying(slope: float, lags: Lags, tilt: float = 0.0) -> Convolution:
    r"""ALiBi: \(a_v = (1-r)r^v\), \(r = e^{-m}\); \((1-r)(re^t)^v\) for gradients with a ``tilt`` t < m."""
    whole, slope = slope, slope - tilt
    r, lost = math.exp(-slope), -math.expm1(-slope)
    gain = math.expm1(-whole) / math.expm1(-slope)
    one, two = gain / lost, gain**2 / (lost * (1 + r))
    first, second = r / lost**2, r * (1 + r) / lost**3

    def half(z: Ramped) -> Ramped:
        return np.asarray(one * np.exp(-slope * (np.maximum(z, 0) + 1)) + gain * np.maximum(-z, 0))

    def both(z: Ramped) -> Ramped:
        return np.asarray(two * np.exp(-slope * (np.abs(z) + 1)) + gain**2 * np.maximum(-z, 0))

    def half_moved(z: Ramped) -> Ramped:
        beyond = np.maximum(z, 0)
        past = np.exp(-slope * beyond) * (beyond * first + second)
        return np.asarray(gain * lost / 2 * (past + np.maximum(-z, 0) * first))

    def both_moved(z: Ramped) -> Ramped:
        beyond = np.abs(z)
        past = np.exp(-slope * beyond) * (beyond * first + second)
        return np.asarray(gain**2 * lost / (1 + r) / 2 * (past + 2 * np.maximum(-z, 0) * first))

    moved = Measure(half_moved, gain * r / lost / 2), Measure(both_moved, gain**2 * r / (lost * (1 + r)))
    measures = Measure(half, gain), Measure(both, gain**2), *moved
    return Convolution(lags, ABOVE_DECAY / slope, *measures, r**2 / (lost * (1 + r)), slope)


def sliding(width: int, lags: Lags) -> Convolution:
    r"""A window: \(a_v = 1/w\), v < w."""

    def half(z: Ramped) -> Ramped:
        left = np.clip(width - 1 - np.maximum(z, 0), 0, None)
        return np.asarray(left * (left + 1) / (2 * width) + np.maximum(-z, 0))

    def both(z: Ramped) -> Ramped:
        return np.asarray(tetrahedral(width - np.abs(z)) / width**2 + np.maximum(-z, 0))

    def half_moved(z: Ramped) -> Ramped:
        beyond = np.maximum(z, 0)
        left = np.clip(width - 1 - beyond, 0, None)
        past = left * (left + 1) * (3 * beyond + 2 * left + 1) / 6
        return np.asarray((past + np.maximum(-z, 0) * width * (width - 1) / 2) / (2 * width))

    mean = (width - 1) / 2
    measures = Measure(half), Measure(both), Measure(half_moved, mean / 2)
    return Convolution(lags, ABOVE_WINDOW * width, *measures, None, mean)


def tetrahedral(s: Float64[np.ndarray, " *shape"]) -> Float64[np.ndarray, " *shape"]:
    r"""\((s-1)s(s+1)/6\) for whole s >= 0, the double sum of ramps below s; 0 for others."""
    s = np.clip(s, 0, None)
    return np.asarray((s * s - 1) * s / 6)


def expected(
    targets: Float64[np.ndarray, " targets"], nodes: Float64[np.ndarray, " nodes"], measure: Measure
) -> Float64[np.ndarray, "targets nodes"]:
    """Weights of values at ``nodes`` in the sum of f(target + d), f straight between nodes and constant beyond."""
    above = measure.ramp(nodes - targets[:, None])
    steps = -np.diff(above, axis=1) / np.diff(nodes)
    return -np.diff(steps, axis=1, prepend=measure.total, append=0.0)
