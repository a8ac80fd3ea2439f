r"""From a density over x in (0, 1] to the profile of a chain of L positions: the exact link between the two.

\((M^r)_{L,j} = \frac1L E[T^{r-1}]/(r-1)!\) with \(T = \ln\frac1X\) and X ~ Beta(j, L-j+1), because
\(E[T^s]/s! = h_s(\frac1j, \dots, \frac1L)\). So every law made of powers of the Cesàro matrix is its own continuous
limit, smoothed by a Beta distribution of mean j/(L+1), and any density in x has one discrete counterpart at each L.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int64

from catenary.errors import invalid
from catenary.theory.cesaro.first_moment import checked_length

NODES = 400
"""Points of the quadrature; 200 give the same to 1e-13 (24 layers, any position of L = 10..4096)."""

HEAD, TAIL = 41.0, 690.0
"""How far the log density of ln T falls from its top to either end of the quadrature: to rounding below, where a
density in x is bounded, and to the end of float64 above, where it may be a high power of T (128 layers)."""


def beta_smoothed(
    density: Callable[[Float64[np.ndarray, " *points"]], Float64[np.ndarray, " *points"]],
    length: int,
    positions: Int64[np.ndarray, " n"],
) -> Float64[np.ndarray, " n"]:
    r"""The discrete weights that a density \(\rho\) stands for: \(\frac1L E[\rho(X)]\), X ~ Beta(j, L-j+1).

    With \(\rho\) = ``cesaro_density`` this is ``cesaro_row``, less the spike of the residual path at the last position,
    which has no density. The trapezium rule in \(\ln T\) converges geometrically for a density smooth in
    \(\ln\ln\frac1x\). Relative error about 1e-16 times (L + 1000). Source: derived here (docs/cesaro.md).

    Args:
        density: \(\rho\) on arrays of x in (0, 1).
        length: number of positions L >= 2.
        positions: 0-based.

    Raises:
        InvalidInput: an argument is out of range, or the density is not finite at a node.

    >>> from catenary.theory.cesaro.density import cesaro_density
    >>> beta_smoothed(lambda x: cesaro_density(x, 2, 1.0), 4, np.arange(4)).round(4).tolist()
    [0.5208, 0.2708, 0.1458, 0.0625]
    """
    checked_length(length)
    bad = (positions < 0) | (positions >= length)
    if bad.any():
        raise invalid("positions", f"must be in 0..{length - 1} (0-based)", int(positions[bad][0]))
    j = positions + 1.0

    def log_density(log_t: Float64[np.ndarray, " *points"]) -> Float64[np.ndarray, " *points"]:
        t = np.exp(log_t)
        return np.asarray(log_t - j * t + (length - j) * np.log(-np.expm1(-t)))

    def rise(log_t: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
        t = np.exp(log_t)
        return np.asarray(1 - j * t + (length - j) * t / np.expm1(t))

    top = _crossing(rise, np.full(j.shape, -np.log(length) - 1), np.full(j.shape, np.log(length + 2)))
    height = log_density(top)
    start = _crossing(lambda u: height - HEAD - log_density(u), top - HEAD - 1, top)
    stop = _crossing(lambda u: log_density(u) - height + TAIL, top, top + TAIL)
    log_t = start + (stop - start) * np.linspace(0, 1, NODES)[:, None]
    weights = np.exp(log_density(log_t) - height)
    values = density(np.exp(-np.exp(log_t)))
    if not np.isfinite(values).all():
        raise invalid("density", "must be finite on (0, 1)", float(values[~np.isfinite(values)][0]))
    return np.asarray((weights * values).sum(axis=0) / weights.sum(axis=0) / length)


def _crossing(
    falling: Callable[[Float64[np.ndarray, " n"]], Float64[np.ndarray, " n"]],
    low: Float64[np.ndarray, " n"],
    high: Float64[np.ndarray, " n"],
) -> Float64[np.ndarray, " n"]:
    """Where a function that falls through 0 between ``low`` and ``high`` does so, to 1e-9 of the interval."""
    for _ in range(30):
        middle = (low + high) / 2
        positive = falling(middle) > 0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    return low
