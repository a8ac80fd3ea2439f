r"""The complete homogeneous symmetric polynomials of 1/j, ..., 1/L: what every single-point formula needs.

They are the powers of the Cesàro matrix, \((M^r)_{L,j} = \frac1L h_{r-1}(\frac1j, \dots, \frac1L)\), and the moments of
a Beta variable: with X ~ Beta(j, L-j+1) and T = ln(1/X), a sum of independent exponentials of means 1/j, ..., 1/L,
\(h_s = E[T^s]/s!\).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from catenary.errors import invalid
from catenary.theory.cesaro.powersums import power_sums
from catenary.theory.cesaro.scaled import FAR, Scaled


@lru_cache(maxsize=64)
def log_moments(length: int, position: int, count: int) -> Scaled:
    r"""\(h_s(\frac1j, \dots, \frac1L) = E[T^s]/s!\), s = 0..count-1, in O(count^2) whatever L is.

    Newton's identities \(s h_s = \sum_{k=1}^{s} p_k h_{s-k}\) build h from the power sums
    \(p_k = \sum_{m=j}^{L} m^{-k}\); every term is positive. Relative error of order count times 1e-16.
    Source: derived here (docs/cesaro.md).

    Args:
        length: number of positions L >= 1.
        position: j - 1, 0-based, 0 <= position <= L. At position = L no number is left: h = 1, 0, 0, ...
        count: how many, >= 1.
    """
    if not 0 <= position <= length:
        raise invalid("position", f"must be in 0..{length} (0-based)", position)
    mantissa, exponent = np.zeros(count), np.full(count, -FAR)
    mantissa[0], exponent[0] = 0.5, 1
    if position == length:
        return Scaled(mantissa, exponent)
    # Newton's identities for the variables j/m, of which the largest is 1; the power of j comes back at the end.
    powers = Scaled.of(power_sums(position + 1, length, max(count - 1, 1)))
    scale = Scaled.of(1 / (position + 1))
    scales = [Scaled.of(1.0)]
    for s in range(1, count):
        before = Scaled(mantissa[s - 1 :: -1], exponent[s - 1 :: -1])
        found = powers[:s].times(before).total().times(Scaled.of(1 / s))
        mantissa[s], exponent[s] = found.mantissa, found.exponent
        scales.append(scales[-1].times(scale))
    return Scaled(mantissa, exponent).times(
        Scaled(np.array([each.mantissa for each in scales]), np.array([each.exponent for each in scales]))
    )
