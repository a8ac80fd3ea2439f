r"""The influence of a source as a function of its position, with its slope and curvature, for any sum over modes.

\[ P(\sigma_0) = k_\lambda(\sigma, \sigma_0)\, \Psi(Y(\sigma; \sigma_0)). \]

With \(k' = \lambda k\) and \(Y' = -1/B(\sigma_0)\), \(B(\sigma_0) = (1-e^{-\lambda\sigma_0})/\lambda\), so that
\(Y'' = Y'^2 + \lambda Y'\),

\[ P' = k\, [\lambda\Psi + Y'\Psi'], \qquad
   P'' = k\, [\lambda^2\Psi + (3\lambda Y' + Y'^2)\Psi' + Y'^2\Psi'']. \]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catenary.errors import NotApplicable
from catenary.kinetic.arguments import Array, Values
from catenary.kinetic.closed_form.primitives import kernel_mass, warp_distance
from catenary.kinetic.closed_form.series import Series, times_exponential


@dataclass(frozen=True)
class Scaled:
    """Numbers factor * exp(exponent)."""

    factor: Values
    exponent: Values

    def values(self, instead: str) -> Array:
        """As float64; below 1e-308 they round to 0, above 1e308 ``instead`` is what to use."""
        values = times_exponential(self.factor, self.exponent)
        if not np.isfinite(values).all():
            raise NotApplicable(f"values must stay below 1e308, got e^{self.exponent.max():.4g}; {instead}")
        return values

    def logs(self) -> Array:
        """Their logarithms."""
        with np.errstate(divide="ignore"):
            values = np.asarray(np.log(self.factor) + self.exponent)
        if not np.isfinite(values).all():
            raise NotApplicable("logarithms must stay within float64; use smaller rates, times or decays")
        return values


def profile_derivatives(
    series: Series,
    sigma: Values,
    sigma0: Values,
    lam: Values,
    order: int,
) -> Scaled:
    """P, P' or P'' (order 0, 1, 2) of checked arguments."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _scaled(series, sigma, sigma0, lam, order)


def _scaled(series: Series, sigma: Values, sigma0: Values, lam: Values, order: int) -> Scaled:
    scale, sums = series.derivatives(warp_distance(sigma, sigma0, lam), range(order + 1))
    turn = -1 / kernel_mass(sigma0, lam)
    if order == 0:
        factor = sums[0]
    elif order == 1:
        factor = lam * sums[0] + turn * sums[1]
    else:
        factor = lam**2 * sums[0] + turn * (3 * lam + turn) * sums[1] + turn**2 * sums[2]
    return Scaled(factor / kernel_mass(sigma, lam), scale - lam * (sigma - sigma0))
