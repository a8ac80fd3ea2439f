r"""The continuous limit of the first-moment law: a density over x = j/L and a point mass at the last token.

It is a limit, not the law: use it for what it says in closed form, and ``cesaro_row`` for numbers. At fixed x the
error falls as 1/L. At the first tokens it does not: there the density is too small, and at j = 1 the error falls only
with the logarithm of L (24 layers, mixing 0.3: -54 % at L = 512, -35 % at L = 32768, -26 % at L = 10^6), because the
first token is never a sharp point on the scale of ln x. At position 10 it is -7 % and -3 % in the same case.
"""

from __future__ import annotations

from typing import overload

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid
from catenary.theory.cesaro.first_moment import (
    SMALLEST,
    FirstMomentTheory,
    Mixing,
    checked_length,
    layer_mixing,
    path_counts,
)
from catenary.theory.positions.kernels import Uniform
from catenary.theory.theories import THEORIES


@overload
def cesaro_density(x: float, layers: int, mixing: Mixing) -> np.float64: ...


@overload
def cesaro_density(
    x: Float64[np.ndarray, " *shape"], layers: int, mixing: Mixing
) -> Float64[np.ndarray, " *shape"]: ...


def cesaro_density(
    x: Float64[np.ndarray, " *shape"] | float, layers: int, mixing: Mixing
) -> Float64[np.ndarray, " *shape"] | np.float64:
    r"""Continuous part of the influence density at position fractions x in (0, 1].

    \[ \rho_H(x) = \sum_{r=1}^{H} c_r \frac{t^{r-1}}{(r-1)!}, \quad t = \ln\frac1x, \]

    with \(c_r\) of ``path_counts``. For constant mixing this is the generalised Laguerre polynomial
    \(\alpha (1-\alpha)^{H-1} L^{(1)}_{H-1}(-\alpha t/(1-\alpha))\); Horner's rule on the sum has positive terms only,
    holds for any mixing, 1 included, and keeps 1e-13 up to H = 128. A number gives a number, an array an array.
    The point mass at x = 1 is ``spike_mass``.
    Source: arXiv 2603.10123, Eq. 5 (mixing 1) and Eq. 6 (constant mixing); per layer, derived here.

    Raises:
        InvalidInput: x lies outside (0, 1], or ``layers`` or ``mixing`` is out of range.

    >>> cesaro_density(np.array([0.1, 0.5, 1.0]), layers=2, mixing=0.5).round(4).tolist()  # 1/2 + ln(1/x)/4
    [1.0756, 0.6733, 0.5]
    """
    counts = path_counts(layers, mixing)
    x = np.asarray(x, dtype=np.float64)
    bad = ~((x > 0) & (x <= 1))
    if bad.any():
        raise invalid("x", "must be in (0, 1]", float(x[bad].flat[0]), "the density diverges at 0, which is no token")
    t = -np.log(x)
    rho = np.full(x.shape, counts[-1])
    for r in range(layers - 1, 0, -1):
        rho = counts[r] + rho * t / r
    density: Float64[np.ndarray, " *shape"] | np.float64 = rho[()]
    return density


def spike_mass(layers: int, mixing: Mixing) -> float:
    r"""Point mass at x = 1, \(\prod_l (1-\alpha_l)\): the residual path alone. Source: arXiv 2603.10123, Eq. 6."""
    return float(np.prod(1 - layer_mixing(layers, mixing)))


def continuous_mass(layers: int, mixing: Mixing) -> float:
    r"""Integral of the density over (0, 1], \(1 - \prod_l (1-\alpha_l)\), without loss of digits at small mixing."""
    mixings = layer_mixing(layers, mixing)
    return 1.0 if (mixings == 1).any() else float(-np.expm1(np.log1p(-mixings).sum()))


def midpoints(length: int) -> Float64[np.ndarray, " L"]:
    r"""Where the density is read for position j: \(x_j = (j-\frac12)/(L+\frac12)\), j = 1..L.

    The discrete weight is the density averaged over a Beta(j, L-j+1) distribution of x, and ln of this point is the
    mean of ln x under it up to O(1/j^2). It is 2 to 5 times more accurate than j/L (measured, L = 64..32768).
    Source: derived here.
    """
    return (Uniform(length).counts - 0.5) / (length + 0.5)


def cesaro_density_row(length: int, layers: int, mixing: Mixing) -> Float64[np.ndarray, " L"]:
    r"""\(\rho(x_j)/L\) at the ``midpoints``, plus the point mass at the last: the continuous law read at L positions.

    Its sum is not 1: what the limit misses at the first tokens is missing from the sum (24 layers, mixing 0.3,
    L = 512: 0.66). Its first ten positions must not be used. Source: derived here.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the density at the last position is below 1e-292 (mixing close to 1 and many layers).
    """
    values = cesaro_density(midpoints(checked_length(length)), layers, mixing) / length
    values[-1] += spike_mass(layers, mixing)
    if values.min() < SMALLEST:
        raise NotApplicable(
            f"the density must stay above {SMALLEST:.1g}, got {values.min():.3g} at the last token; "
            "use a mixing further from 1"
        )
    return values


CESARO_DENSITY = THEORIES.register(
    "cesaro-density",
    FirstMomentTheory(
        "cesaro-density",
        "continuous limit of the first-moment law of arXiv 2603.10123; needs mixing=...; not for the first tokens",
        "paper's continuous law",
        cesaro_density_row,
        (
            "Continuous limit: do not use it for the first 10 tokens. It is too low there, and at the first token "
            "the error shrinks only with the logarithm of the length. Theory 'cesaro' is exact at every position.",
        ),
    ),
)
