r"""How much of the influence a stretch of positions holds, in closed form and with positive terms only.

Summing \((M^r)_{L,j}\) over the first k positions gives \(\frac kL \sum_{s<r} h_s(\frac1{k+1}, \dots, \frac1L)\)
(derived in docs/cesaro.md), and the integral of \(t^{r-1}/(r-1)!\) over (0, x] is \(x \sum_{s<r} t^s/s!\): the same
formula, with the moments h of the discrete law in place of those of the continuous one.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.theory.cesaro.first_moment import Mixing, checked_length, path_counts
from catenary.theory.cesaro.moments import log_moments


def cesaro_head_mass(length: int, layers: int, mixing: Mixing, tokens: int) -> float:
    r"""Path weight of the first k = ``tokens`` positions together, in O(H^2) whatever L is.

    \[ \sum_{j \le k} N_{L,j} = \frac kL \sum_{s=0}^{H-1} C_s\, h_s(\tfrac1{k+1}, \dots, \tfrac1L), \quad
       C_s = \sum_{r > s} c_r, \]

    plus the residual path's \(c_0\) where k = L. Relative error of order H times 1e-16. Source: derived here.

    Args:
        length: number of positions L >= 2.
        layers: number of layers H >= 1.
        mixing: alpha in [0, 1], one number or one per layer, not 0 in every layer.
        tokens: k, 0 <= k <= L.

    Raises:
        InvalidInput: an argument is out of range.

    >>> round(cesaro_head_mass(4, 2, 1.0, 2), 4)  # 25/48 + 13/48
    0.7917
    """
    counts = path_counts(layers, mixing)
    checked_length(length)
    if not isinstance(tokens, int | np.integer) or isinstance(tokens, bool) or not 0 <= tokens <= length:
        raise invalid("tokens", f"must be a whole number in 0..{length}", tokens)
    if tokens == 0:
        return 0.0
    mass = _above(counts) @ log_moments(length, int(tokens), layers).values() * (tokens / length)
    return float(mass + counts[0]) if tokens == length else float(mass)


def cesaro_mass(length: int, layers: int, mixing: Mixing, start: int, stop: int) -> float:
    """Path weight of the positions start..stop-1 (0-based) together: a difference of two head masses, O(H^2).

    Absolute error of order H times 1e-16; add ``cesaro_row`` over a stretch whose mass is that small.
    Source: derived here.

    Raises:
        InvalidInput: an argument is out of range, or ``start`` > ``stop``.
    """
    if start > stop:
        raise invalid("start", f"must be at most stop = {stop}", start)
    before, up_to = (cesaro_head_mass(length, layers, mixing, tokens) for tokens in (start, stop))
    return up_to - before


def density_head_mass(
    x: Float64[np.ndarray, " *shape"] | float, layers: int, mixing: Mixing
) -> Float64[np.ndarray, " *shape"]:
    r"""Integral of ``cesaro_density`` from 0 to x: \(x \sum_{s=0}^{H-1} (\sum_{r>s} c_r)\, t^s/s!\), t = ln(1/x).

    At x = 1 it is ``continuous_mass``; the point mass at x = 1 is not in it. The mass of an interval is the difference
    at its ends. Relative error of order H times 1e-16. Source: derived here.

    Raises:
        InvalidInput: x lies outside [0, 1], or ``layers`` or ``mixing`` is out of range.

    >>> density_head_mass(np.array([0.0, 0.5, 1.0]), layers=2, mixing=0.5).round(4).tolist()
    [0.0, 0.4616, 0.75]
    """
    above = _above(path_counts(layers, mixing))
    x = np.asarray(x, dtype=np.float64)
    bad = ~((x >= 0) & (x <= 1))
    if bad.any():
        raise invalid("x", "must be in [0, 1]", float(x[bad].flat[0]))
    t = -np.log(np.where(x > 0, x, 1.0))
    total = np.full(x.shape, above[-1])
    for s in range(layers - 1, 0, -1):
        total = above[s - 1] + total * t / s
    return np.asarray(x * total)


def _above(counts: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " m"]:
    """Sum of c_r over r > s, s = 0..H-1."""
    return np.cumsum(counts[:0:-1])[::-1]
