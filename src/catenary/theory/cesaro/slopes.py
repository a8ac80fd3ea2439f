r"""How steep a first-moment profile is, and where primacy sets in.

The local slope d ln(rho)/d ln(x) is that of a log-log plot: -1 is the trivial null 1/j. The onset is where the profile,
seen from its end, has risen by a given factor over its lowest level before the last token's spike.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid
from catenary.theory.cesaro.density import cesaro_density
from catenary.theory.cesaro.first_moment import (
    Mixing,
    checked_length,
    checked_position,
    path_counts,
    scaled_path_counts,
)
from catenary.theory.cesaro.limits import second_moment_density
from catenary.theory.cesaro.moments import log_moments
from catenary.theory.cesaro.row import cesaro_log_point


def cesaro_slope(length: int, layers: int, mixing: Mixing, position: int) -> float:
    r"""Local slope of the discrete law at position j < L, exact and in O(H^2) whatever L is.

    \[ \frac{j (N_{j+1} - N_j)}{N_j} = -\frac{\sum_{r \ge 2} c_r\, h_{r-2}}{\sum_{r \ge 1} c_r\, h_{r-1}}, \]

    h of \(\frac1j, \dots, \frac1L\), since \(h_s(\frac1j, \dots) - h_s(\frac1{j+1}, \dots) = \frac1j h_{s-1}(\frac1j,
    \dots)\). At j = L-1 the spike of the residual path is left out of \(N_L\). 0 with one attention layer.
    Source: derived here.

    Args:
        length: number of positions L >= 2.
        layers: number of layers H >= 1.
        mixing: alpha in [0, 1], one number or one per layer, not 0 in every layer.
        position: j - 1, 0-based, 0 <= position < L - 1.

    Raises:
        InvalidInput: an argument is out of range.
    """
    counts = scaled_path_counts(layers, mixing)
    position = checked_position("position", position, checked_length(length) - 1)
    if layers == 1:
        return 0.0
    moments = log_moments(length, position, layers)
    steeper = counts[2:].times(moments[:-1]).total()
    return -float(steeper.over(counts[1:].times(moments).total()).values())


def density_slope(
    x: Float64[np.ndarray, " *shape"] | float, layers: int, mixing: Mixing
) -> Float64[np.ndarray, " *shape"]:
    r"""Local slope \(d\ln\rho_H/d\ln x\) of ``cesaro_density``; the same quotient with \(t^s/s!\) in place of \(h_s\).

    Source: derived here.

    Raises:
        InvalidInput: x lies outside (0, 1], or ``layers`` or ``mixing`` is out of range.
        NotApplicable: the density is 0 at some x (x = 1 and mixing 1 in two layers or more), where no slope exists.
    """
    density = np.asarray(cesaro_density(x, layers, mixing))
    if not density.all():
        raise NotApplicable(
            "a local slope needs a density > 0, got 0 at x = 1 with mixing 1 in two layers or more; use x < 1"
        )
    counts = path_counts(layers, mixing)
    t = -np.log(np.asarray(x, dtype=np.float64))
    steeper = np.full(t.shape, counts[-1] if layers > 1 else 0.0)
    for r in range(layers - 1, 1, -1):
        steeper = counts[r] + steeper * t / (r - 1)
    return np.asarray(-steeper / density)


def cesaro_onset(length: int, layers: int, mixing: Mixing, factor: float = 2.0) -> int:
    r"""Last position (0-based) whose path weight is ``factor`` times that of the lowest, position L-2, or more.

    The law falls with j up to there, so bisection finds it, in O(H^2 log L) whatever L is. Source: defined here.

    Args:
        length: number of positions L >= 3.
        layers: number of layers H >= 1.
        mixing: alpha in [0, 1], one number or one per layer, not 0 in every layer.
        factor: > 1.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the first token itself is below ``factor`` times the lowest: there is no primacy of that size.
    """
    if checked_length(length) < 3:
        raise invalid("length", "must be >= 3 for a first token apart from the lowest", length)
    level = cesaro_log_point(length, layers, mixing, length - 2) + math.log(_checked_factor(factor))
    low, high = 0, length - 2
    rise = cesaro_log_point(length, layers, mixing, 0) - level
    if rise < 0:
        raise _no_onset(factor, f"the first token has {factor * math.exp(rise):.4g}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cesaro_log_point(length, layers, mixing, middle) >= level else (low, middle)
    return low


def density_onset(layers: int, mixing: Mixing, factor: float = 2.0) -> float:
    r"""The position fraction x at which ``cesaro_density`` is ``factor`` times its value at x = 1.

    To first order in ln(1/x) it is \(e^{-(f-1) c_1/c_2}\), c of ``path_counts``. Source: defined here.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the density is flat (one attention layer), or 0 at x = 1 (two layers or more of mixing 1).
    """
    counts, factor = path_counts(layers, mixing), _checked_factor(factor)
    if counts[1] == 0:
        raise NotApplicable("an onset needs a density > 0 at x = 1, got 0: two layers or more have mixing 1")
    if not counts[2:].any():
        raise _no_onset(factor, "one attention layer alone gives a flat density")
    return _falls_to(lambda x: float(cesaro_density(x, layers, mixing)), factor * float(counts[1]))


def second_moment_onset(strength: float, factor: float = math.sqrt(2)) -> float:
    r"""The position fraction x at which ``second_moment_density`` is ``factor`` times its value at x = 1.

    With the default, where the influence in square has doubled, it is about \(x_0 = e^{-\sqrt{2/s}}\):
    \({}_0F_2(;1,2;z) = 1 + z/2 + z^2/24 + \dots\). Source: derived here.

    Args:
        strength: s > 0, the sum of squared gains.
        factor: > 1.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the onset lies below x = 1e-292, which is no position: s is too small.
    """
    floor = float(second_moment_density(1.0, strength))
    return _falls_to(lambda x: float(second_moment_density(x, strength)), _checked_factor(factor) * floor)


def _falls_to(falling: Callable[[float], float], level: float) -> float:
    """The x in (1e-292, 1) at which a function that falls with x is at ``level``, to 1e-12 in ln(1/x)."""
    from scipy.optimize import brentq

    def excess(t: float) -> float:
        return math.log(falling(math.exp(-t)) / level)

    far = 1.0
    while excess(far) < 0:
        far *= 2
        if far > 670:
            raise _no_onset(1.0, "it lies below x = 1e-292")
    return math.exp(-float(brentq(excess, 0.0, far, xtol=1e-13, rtol=1e-14)))


def _checked_factor(factor: float) -> float:
    if not isinstance(factor, int | float | np.number) or isinstance(factor, bool) or not 1 < factor < np.inf:
        raise invalid("factor", "must be a finite number > 1", factor)
    return float(factor)


def _no_onset(factor: float, why: str) -> NotApplicable:
    return NotApplicable(f"no position has {factor:.4g} times the lowest influence: {why}; use a smaller factor")
