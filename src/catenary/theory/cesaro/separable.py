r"""Separable causal kernels \(A_{ij} = w_j/W_i\): uniform attention in a warped position, discrete and continuous.

The weight of a source does not depend on who looks at it; ALiBi with slope m, \(w_j = e^{mj}\), and any fixed bias of a
source are of this kind, a sliding window is not. With \(u = W(x)/W(1)\), \(W(x) = \int_0^x w\), the kernel is the
uniform one in u, so every result of the uniform law holds with x replaced by u:

\[ K_n(1, x) = \frac{w(x)}{W(1)} \frac{[\ln(W(1)/W(x))]^{n-1}}{(n-1)!}. \]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid
from catenary.theory.cesaro.density import cesaro_density
from catenary.theory.cesaro.first_moment import SMALLEST, Mixing, checked_length, layer_mixing
from catenary.theory.cesaro.row import mixed_row

Curve = Callable[[Float64[np.ndarray, " *shape"]], Float64[np.ndarray, " *shape"]]


def separable_log_row(
    log_weights: Float64[np.ndarray, " L"], layers: int, mixing: Mixing
) -> Float64[np.ndarray, " L"]:
    r"""Logarithm of the last row of \(\prod_l [(1-\alpha_l) I + \alpha_l A]\), \(A_{ij} = w_j/W_i\), in O(HL).

    The row is \(\frac{w_j}{w_L} y_j\), where \(y_j \leftarrow (1-\alpha_l) y_j + \alpha_l \sum_{i \ge j}
    \frac{w_i}{W_i} y_i\) from \(y = e_L\): ``cesaro_row``'s recursion with shares \(w_i/W_i\) for 1/i. The powers are
    \((A^r)_{L,j} = \frac{w_j}{W_L} h_{r-1}(\frac{w_j}{W_j}, \dots, \frac{w_L}{W_L})\). Source: derived here.

    Args:
        log_weights: \(\ln w_j\), first position first; a constant added to all changes nothing. ALiBi with slope m is
            ``m * np.arange(L)``, uniform attention zeros.
        layers: number of layers H >= 1.
        mixing: alpha in [0, 1], one number or one per layer, not 0 in every layer.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: \(y_j\) leaves 1e-292..1e308: mixing close to 1, or a last weight far below the others.
    """
    checked_length(log_weights.size)
    if not np.isfinite(log_weights).all():
        raise invalid("log_weights", "must be finite", float(log_weights[~np.isfinite(log_weights)][0]))
    shares = np.exp(log_weights - np.logaddexp.accumulate(log_weights))
    with np.errstate(over="ignore"):
        y = mixed_row(shares, layer_mixing(layers, mixing))
    if not (y.min() >= SMALLEST and y.max() < np.inf):
        raise NotApplicable(
            f"the row over its weights must stay between {SMALLEST:.1g} and 1e308, got {y.min():.3g} to {y.max():.3g}; "
            "use a mixing further from 1, or weights that fall less before the last position"
        )
    return np.asarray(log_weights - log_weights[-1] + np.log(y))


def separable_row(log_weights: Float64[np.ndarray, " L"], layers: int, mixing: Mixing) -> Float64[np.ndarray, " L"]:
    """The path weights themselves: positive, of sum 1. Arguments and source as ``separable_log_row``.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: as ``separable_log_row``, or a path weight is below 1e-292.

    >>> separable_row(np.log([1.0, 2.0, 3.0]), 1, 1.0).round(4).tolist()
    [0.1667, 0.3333, 0.5]
    """
    logs = separable_log_row(log_weights, layers, mixing)
    if logs.min() < np.log(SMALLEST):
        raise NotApplicable(
            f"the path weights must stay above {SMALLEST:.1g} to be float64 numbers, got e^{logs.min():.4g}; "
            "use separable_log_row"
        )
    return np.asarray(np.exp(logs))


@dataclass(frozen=True)
class Warp:
    r"""The position a separable kernel makes uniform: \(u(x) = W(x)/W(1)\) and its derivative \(w(x)/W(1)\).

    Attributes:
        fraction: u on arrays of x in (0, 1]; rises from 0 to 1.
        slope: du/dx.
    """

    fraction: Curve
    slope: Curve


def power_warp(exponent: float) -> Warp:
    r"""w = x^p: \(u = x^{p+1}\). p > -1; 0 is uniform attention. Raises ``InvalidInput`` for another p."""
    if not -1 < exponent < np.inf:
        raise invalid("exponent", "must be a finite number > -1", exponent)
    return Warp(lambda x: x ** (exponent + 1), lambda x: (exponent + 1) * x**exponent)


def exponential_warp(rate: float) -> Warp:
    r"""\(w = e^{\lambda x}\): \(u = (e^{\lambda x} - 1)/(e^\lambda - 1)\). ALiBi of slope m at length L: lambda = mL.

    Raises:
        InvalidInput: ``rate`` is 0 or not finite; 0 is ``power_warp(0)``.
    """
    if rate == 0 or not np.isfinite(rate):
        raise invalid("rate", "must be a finite number other than 0", rate, "power_warp(0) is the uniform kernel")
    # Written with exponents <= 0, for either sign of the rate.
    if rate > 0:
        scale = -np.expm1(-rate)
        return Warp(
            lambda x: np.exp(rate * (x - 1)) * -np.expm1(-rate * x) / scale,
            lambda x: rate * np.exp(rate * (x - 1)) / scale,
        )
    scale = np.expm1(rate)
    return Warp(lambda x: np.expm1(rate * x) / scale, lambda x: rate * np.exp(rate * x) / scale)


def separable_density(
    x: Float64[np.ndarray, " *shape"], layers: int, mixing: Mixing, warp: Warp
) -> Float64[np.ndarray, " *shape"]:
    r"""Continuous limit of L times ``separable_row`` at x = j/L < 1: \(\rho_H(u(x))\, u'(x)\).

    \(\rho_H\) is ``cesaro_density``. With mixing 1 it is \(K_H(1, x)\). The point mass at x = 1 is ``spike_mass``, as
    for uniform attention. The error falls as 1/L at fixed x. Source: derived here (docs/cesaro.md).

    Raises:
        InvalidInput: u(x) lies outside (0, 1], or ``layers`` or ``mixing`` is out of range.

    >>> separable_density(np.array([0.25, 1.0]), 1, 1.0, power_warp(1.0)).tolist()  # 2x
    [0.5, 2.0]
    """
    return np.asarray(cesaro_density(warp.fraction(x), layers, mixing) * warp.slope(x))
