r"""Sums over angular modes of the function that solves the Volterra-Hardy equation, and of its derivatives.

For one mode with \(c = at\) and \(z = 2\sqrt{cy}\),

\[ \psi_c^{(m)}(y) = \left(\frac{2c}{z}\right)^{m+1} I_{m+1}(z)
   = \sum_{k \ge 0} \frac{c^{k+m+1}\, y^k}{k!\,(k+m+1)!}, \]

\(I\) modified Bessel functions. All terms are positive. Sums are kept as a number times an exponential, so that neither
large nor small ones leave float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.kinetic.arguments import Array, Values

SMALLEST_ARGUMENT = 1e-30
"""Bessel arguments below it are raised to it: this changes I_m(z)/z^m by 1e-60, and 0/0 does not arise."""


@dataclass(frozen=True)
class Series:
    r"""\(\Psi(y) = \sum_n \omega_n \psi_{c_n}(y)\): modes along the last axis, the axes before it broadcast with y."""

    log_weight: Float64[np.ndarray, "*shape modes"]
    rate: Float64[np.ndarray, "*shape modes"]

    def derivatives(
        self, y: Values, orders: Sequence[int]
    ) -> tuple[Values, list[Values]]:
        r"""A logarithm s and, for each order m, \(e^{-s}\, \Psi^{(m)}(y)\). s is the largest \(\log\omega_n + z_n\)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._derivatives(y, orders)

    def _derivatives(self, y: Values, orders: Sequence[int]) -> tuple[Values, list[Values]]:
        z = np.maximum(2 * np.sqrt(self.rate * np.asarray(y)[..., None]), SMALLEST_ARGUMENT)
        exponents = self.log_weight + z
        scale = exponents.max(axis=-1)
        growth = np.exp(exponents - scale[..., None])
        return scale, [(growth * self.rate ** (m + 1) * scaled_bessel(m + 1, z)).sum(axis=-1) for m in orders]


def scaled_bessel(order: int, z: Array) -> Array:
    r"""\((2/z)^m I_m(z)\, e^{-z}\) for z > 0, m = 0..3; to 1e-15 for m < 2, 1e-14 above."""
    from scipy.special import i0e, i1e, ive

    if order == 0:
        return np.asarray(i0e(z))
    return np.asarray((2 / z) ** order * (i1e(z) if order == 1 else ive(order, z)))


def times_exponential(
    factor: Values, exponent: Values
) -> Array:
    """factor * exp(exponent) in two halves: the product may be representable where the exponential is not."""
    with np.errstate(over="ignore", under="ignore"):
        half = np.exp(exponent / 2)
        return np.asarray(factor * half * half)
