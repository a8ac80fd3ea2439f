r"""Limits of many layers with little attention each: the two profiles that depend on one number only.

First moment: with \(\alpha H \to c\) the number of branches a path takes is Poisson, and the density tends to
\(e^{-c} \psi_c(\ln\frac1x)\) with a point mass \(e^{-c}\) at x = 1. Second moment: with \(\sum_l g_l^2 \to s\) and
every \(g_l \to 0\), \(e_r \to s^r/r!\), and the path sum becomes a hypergeometric series.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid


def poisson_density(x: Float64[np.ndarray, " *shape"] | float, rate: float) -> Float64[np.ndarray, " *shape"]:
    r"""Limit of ``cesaro_density`` for H to infinity at \(\alpha H = c\) = ``rate``:

    \[ e^{-c} \psi_c(t), \quad \psi_c(t) = \sqrt{c/t}\, I_1(2\sqrt{ct}) = \sum_{r \ge 1} \frac{c^r}{r!}\,
       \frac{t^{r-1}}{(r-1)!}, \quad t = \ln\tfrac1x. \]

    \(I_1\) is a modified Bessel function. The law at depth H differs from the limit by O(1/H) (0.57/H at
    c = 1.7, x = 0.2; see ``poisson_error``). The point mass at x = 1 is ``poisson_spike``. Relative rounding
    error of order 1e-15.
    Source: derived here (docs/cesaro.md).

    Args:
        x: position fractions in (0, 1].
        rate: c > 0.

    Raises:
        InvalidInput: an argument is out of range.

    >>> poisson_density(np.array([0.1, 0.5, 1.0]), 2.0).round(6).tolist()
    [1.605377, 0.507005, 0.270671]
    """
    return _bessel(_log_ratio(x), _checked_rate("rate", rate), 0)


def poisson_spike(rate: float) -> float:
    r"""Point mass of the Poisson limit at x = 1, \(e^{-c}\): the residual path. Source: derived here."""
    return math.exp(-_checked_rate("rate", rate))


def poisson_slope(x: Float64[np.ndarray, " *shape"] | float, rate: float) -> Float64[np.ndarray, " *shape"]:
    r"""Local slope \(d\ln\rho/d\ln x = -\sqrt{c/t}\, I_2(2\sqrt{ct})/I_1(2\sqrt{ct})\) of ``poisson_density``.

    -c/2 at x = 1. Source: derived here.

    Raises:
        InvalidInput: an argument is out of range.
    """
    from scipy.special import ive

    c = _checked_rate("rate", rate)
    half = _half(_log_ratio(x), c)
    return np.asarray(-c * ive(2, 2 * half) / (half * ive(1, 2 * half)))


def poisson_error(x: Float64[np.ndarray, " *shape"] | float, rate: float) -> Float64[np.ndarray, " *shape"]:
    r"""H times the relative difference of ``cesaro_density`` from its Poisson limit, to leading order in 1/H.

    \[ -\frac{c^2}{2}\, \frac{\kappa_2 - 2\kappa_1 + \kappa_0}{\kappa_0}, \quad
       \kappa_m = \sum_{r + m \ge 1} \frac{c^r}{r!} \frac{t^{r+m-1}}{(r+m-1)!}: \]

    a binomial of mean c has \((1 - \alpha + \alpha z)^H = e^{c(z-1)} [1 - \frac{c^2}{2H}(z-1)^2 + O(H^{-2})]\), and
    each z raises the power of t by one. Source: derived here (docs/cesaro.md).

    Raises:
        InvalidInput: an argument is out of range.
    """
    t, c = _log_ratio(x), _checked_rate("rate", rate)
    k0, k1, k2 = (_bessel(t, c, order) for order in range(3))
    return np.asarray(-(c**2) / 2 * (k2 - 2 * k1 + k0) / k0)


def second_moment_density(x: Float64[np.ndarray, " *shape"] | float, strength: float) -> Float64[np.ndarray, " *shape"]:
    r"""Limit of the root of ``path_sum_density`` for many weak layers: L times the rms influence of position x < 1,

    \[ \sqrt{s\; {}_0F_2(;1,2;\, s t^2)}, \quad {}_0F_2(;1,2;z) = \sum_{k \ge 0} \frac{z^k}{k!^2\,(k+1)!}, \quad
       t = \ln\tfrac1x, \quad s = \sum_l g_l^2. \]

    At depth H and equal gains the relative error of the square is of order s/H. Relative rounding error about 1e-15.
    Source: derived here (docs/cesaro.md).

    Args:
        x: position fractions in (0, 1].
        strength: s > 0, the sum of squared gains.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the square leaves float64, from about s t^2 = 1e7 on.

    >>> second_moment_density(np.array([0.1, 0.5, 1.0]), 2.0).round(6).tolist()
    [5.012642, 1.743539, 1.414214]
    """
    s = _checked_rate("strength", strength)
    return np.asarray(np.sqrt(s * _series(np.asarray(s * _log_ratio(x) ** 2), 1)))


def second_moment_slope(x: Float64[np.ndarray, " *shape"] | float, strength: float) -> Float64[np.ndarray, " *shape"]:
    r"""Local slope \(d\ln\rho/d\ln x\) of ``second_moment_density``: \(-s t\, F'(st^2)/F(st^2)\), F = 0F2(;1,2;.).

    Source: derived here.

    Raises:
        InvalidInput, NotApplicable: as ``second_moment_density``.
    """
    s, t = _checked_rate("strength", strength), _log_ratio(x)
    z = np.asarray(s * t**2)
    return np.asarray(-s * t * _series(z, 2) / _series(z, 1))


def _series(z: Float64[np.ndarray, " *shape"], shift: int) -> Float64[np.ndarray, " *shape"]:
    r"""0F2(;1,2;z) for ``shift`` 1 and its derivative for 2: \(\sum_k z^k / (k!\,(k+m-1)!\,(k+m)!)\), m the shift."""
    term = np.full(z.shape, 1 / (math.factorial(shift - 1) * math.factorial(shift)))
    total = term.copy()
    k = 0
    with np.errstate(over="ignore"):
        while (term > np.finfo(np.float64).eps / 4 * total).any() and np.isfinite(total).all():
            k += 1
            term = term * z / (k * (k + shift - 1) * (k + shift))
            total = total + term
    if not np.isfinite(total).all():
        raise NotApplicable(
            f"the second-moment limit must stay below 1e308, got strength * ln(x)^2 up to {z.max():.3g}; "
            "stay below 1e7, or use path_sum_log_point at a finite length"
        )
    return np.asarray(total)


def _bessel(t: Float64[np.ndarray, " *shape"], c: float, order: int) -> Float64[np.ndarray, " *shape"]:
    r"""\(e^{-c} \kappa_m(t)\), where \(\kappa_m = (t/c)^{(m-1)/2} I_{|m-1|}(2\sqrt{ct})\) for m = ``order``."""
    from scipy.special import ive

    z = 2 * np.sqrt(c * t)
    if order == 0:
        half = _half(t, c)
        return np.asarray(c * ive(1, 2 * half) / half * np.exp(2 * half - c))
    return np.asarray((t / c) ** ((order - 1) / 2) * ive(order - 1, z) * np.exp(z - c))


def _half(t: Float64[np.ndarray, " *shape"], c: float) -> Float64[np.ndarray, " *shape"]:
    """Half of the Bessel functions' argument, kept from 0: below 1e-8 their first terms are exact in float64."""
    return np.asarray(np.maximum(np.sqrt(c * t), 1e-8))


def _log_ratio(x: Float64[np.ndarray, " *shape"] | float) -> Float64[np.ndarray, " *shape"]:
    """t = ln(1/x), for x in (0, 1]."""
    x = np.asarray(x, dtype=np.float64)
    bad = ~((x > 0) & (x <= 1))
    if bad.any():
        raise invalid("x", "must be in (0, 1]", float(x[bad].flat[0]))
    return np.asarray(-np.log(x))


def _checked_rate(name: str, value: float) -> float:
    if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not 0 < value < np.inf:
        raise invalid(name, "must be a finite number > 0", value)
    return float(value)
