r"""The scalar second-moment law: squared norms of paths, added in square because layers' matrices are independent.

With position-independent gains, \(g_l\) = attention branch over residual, and independent \(W_V^l W_O^l\),

\[ \frac1d E\|J_j\|_F^2 = \sum_{r=0}^{H} e_r(g_1^2, \dots, g_H^2)\, [(M^r)_{L,j}]^2, \]

\(e_r\) the elementary symmetric polynomial. It is what the first-moment law should have been for a linear network with
constant norms. A real network's norms depend on position and its feed-forward branches correlate positions, which this
law leaves out: for Qwen2-0.5B its shape is off by up to 1.6 dex at the first token. Theory "birth" has both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid
from catenary.theory.cesaro.first_moment import SMALLEST, checked_length, checked_position
from catenary.theory.cesaro.moments import log_moments
from catenary.theory.cesaro.row import STREAM_FROM
from catenary.theory.cesaro.scaled import Scaled, expanded_product
from catenary.theory.cesaro.stream import stream_squares
from catenary.theory.positions.kernels import Uniform

Gains = Sequence[float] | npt.NDArray[np.float64]
"""Squared gains \\(g_l^2 \\ge 0\\), one per layer, not 0 in every layer."""


def path_sum_row(length: int, squared_gains: Gains) -> Float64[np.ndarray, " L"]:
    r"""\(E\|J_j\|_F^2/d\) of the scalar law at every position, in O(HL).

    The row \(\sqrt{e_r}\,(M^r)_{L,\cdot}\) is the adjoint average of the one before, times \(\sqrt{e_r/e_{r-1}}\); all
    terms are positive. Relative error of order (H + sqrt L) times 1e-16. Source: derived here (docs/cesaro.md).

    Args:
        length: number of positions L >= 2.
        squared_gains: \(g_l^2\), one per layer.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a value leaves 1e-292..1e308; ``path_sum_log_point`` has its logarithm.

    >>> path_sum_row(4, [1.0, 2.0]).round(6).tolist()  # 841/1152, 385/1152, 265/1152, 153/128
    [0.730035, 0.334201, 0.230035, 1.195312]
    """
    symmetric = elementary_symmetric(squared_gains)
    with np.errstate(over="ignore"):
        factors = np.sqrt(symmetric[1:].over(symmetric[:-1]).values())
    factors = factors[factors > 0]
    shares = 1 / Uniform(checked_length(length)).counts
    with np.errstate(over="ignore", invalid="ignore"):
        if factors.size * length >= STREAM_FROM:
            row = stream_squares(shares, factors)
        else:
            row = _layerwise_squares(shares, factors)
    if not (row.min() >= SMALLEST and row.max() < np.inf):
        raise _out_of_range(float(row.min()), float(row.max()))
    return row


def path_sum_log_point(length: int, squared_gains: Gains, position: int) -> float:
    """Natural logarithm of one entry of ``path_sum_row``, in O(H^2) whatever L is, and without a limit of range.

    Absolute error of order 1e-16 times (H + the size of the logarithm). Source: derived here.

    Args:
        length: number of positions L >= 2.
        squared_gains: one per layer.
        position: 0-based, 0 <= position < L.

    Raises:
        InvalidInput: an argument is out of range.
    """
    symmetric = elementary_symmetric(squared_gains)
    position = checked_position("position", position, checked_length(length))
    power = log_moments(length, position, len(symmetric.mantissa) - 1).times(Scaled.of(1 / length))
    total = symmetric[1:].times(power.times(power)).total()
    return float((total.plus(symmetric[0]) if position == length - 1 else total).log())


def path_sum_density(x: Float64[np.ndarray, " *shape"] | float, squared_gains: Gains) -> Float64[np.ndarray, " *shape"]:
    r"""Continuous limit of \(L^2 E\|J_j\|_F^2/d\), x = j/L < 1: \(\sum_{r=1}^{H} e_r [t^{r-1}/(r-1)!]^2\), t = ln(1/x).

    The error falls as 1/L at fixed x. The last token has 1, the residual path, on top. Source: derived here.

    Raises:
        InvalidInput: x lies outside (0, 1], or the gains are out of range.
    """
    symmetric = elementary_symmetric(squared_gains).values()
    if not np.isfinite(symmetric).all():
        raise _out_of_range(float(symmetric.min()), float(symmetric.max()))
    x = np.asarray(x, dtype=np.float64)
    bad = ~((x > 0) & (x <= 1))
    if bad.any():
        raise invalid("x", "must be in (0, 1]", float(x[bad].flat[0]))
    square = np.log(x) ** 2
    total = np.full(x.shape, symmetric[-1])
    for r in range(len(symmetric) - 2, 0, -1):
        total = symmetric[r] + total * square / r**2
    return np.asarray(total)


def elementary_symmetric(squared_gains: Gains) -> Scaled:
    r"""\(e_0, \dots, e_H\) of the squared gains, the coefficients of \(\prod_l (1 + g_l^2 z)\), in O(H^2).

    Raises:
        InvalidInput: the gains are not a list of finite numbers >= 0 with one > 0 among them.
    """
    gains = np.asarray(squared_gains, dtype=np.float64)
    if gains.ndim != 1 or not gains.size:
        raise invalid("squared_gains", "must be one number per layer", squared_gains)
    bad = ~((gains >= 0) & (gains < np.inf))
    if bad.any() or not gains.any():
        raise invalid(
            "squared_gains", "must be finite and >= 0, and > 0 somewhere", float(gains[bad][0]) if bad.any() else 0.0
        )
    return expanded_product((1.0,) * gains.size, tuple(gains.tolist()))


def _layerwise_squares(
    shares: Float64[np.ndarray, " L"], factors: Float64[np.ndarray, " H"]
) -> Float64[np.ndarray, " L"]:
    """``stream_squares`` with one cumulative sum per power."""
    row = np.zeros(len(shares))
    row[-1] = 1.0
    total = row.copy()
    for factor in factors:
        row = factor * np.cumsum((row * shares)[::-1])[::-1]
        total += row**2
    return total


def _out_of_range(smallest: float, largest: float) -> NotApplicable:
    return NotApplicable(
        f"the path sum must stay between {SMALLEST:.1g} and 1e308 to be float64 numbers, got {smallest:.3g} to "
        f"{largest:.3g}; use path_sum_log_point, which returns logarithms"
    )
