r"""Positional kernels: how the weight of a source falls with its distance, whatever the law.

A query at \(\sigma\) gives a source at \(\sigma_0\) the weight \(k_b = b(\sigma - \sigma_0)/B(\sigma)\), with
\(B(\sigma) = \int_0^\sigma b\). ALiBi is \(b(x) = e^{-\lambda x}\).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from catenary.errors import NotApplicable, invalid
from catenary.kinetic.arguments import (
    Array,
    Numbers,
    Values,
    at_least_zero,
    concentration,
    one_number,
    plain,
    positive,
    vocabulary,
)
from catenary.kinetic.closed_form.modes import profile_modes
from catenary.kinetic.closed_form.primitives import kernel_mass
from catenary.kinetic.positional.quadrature import fractions

CLOSER = 6
"""Steps of 16 towards a minimum of b, from 1e-3 down to where a quadratic stops changing in float64."""

HIDDEN = 1e-9
"""A minimum below this part of b one thousandth to both sides counts as a zero; the steps resolve 1e-12 of it."""


@runtime_checkable
class Weighted(Protocol):
    """What a system of finitely many tokens asks of a positional kernel."""

    def weight(self, distance: Values) -> Array:
        """b at distances in [0, 1]."""


class PositionalKernel(Weighted, Protocol):
    """What the theory asks of a positional kernel b > 0 on [0, 1]."""

    def mass(self, sigma: Values) -> Array:
        r"""\(B(\sigma) = \int_0^\sigma b\), to 1e-14 relative however small sigma is."""

    @property
    def slope(self) -> float:
        """b'(0)."""


def checked_kernel(kernel: PositionalKernel) -> PositionalKernel:
    """``kernel`` if it has a weight and a mass; its slope, which it may not know, is left alone."""
    if not (isinstance(kernel, Weighted) and callable(getattr(kernel, "mass", None))):
        rule = "must be Exponentials, PowerLaw, Weighting(function) or another PositionalKernel"
        raise invalid("kernel", rule, kernel)
    return kernel


@dataclass(frozen=True)
class Exponentials:
    r"""\(b(x) = \sum_p s_p e^{-\lambda_p x}\): ALiBi with one term, several slopes read as one head with more.

    Raises:
        InvalidInput: the two lists differ in length or are empty, a share is not > 0 or a decay is below 0.

    >>> Exponentials([0.75, 0.25], [1.0, 20.0]).slope
    -5.75
    """

    shares: Sequence[float]
    """s_p > 0."""
    decays: Sequence[float]
    """lambda_p >= 0."""

    def __post_init__(self) -> None:
        """Check the two lists."""
        shares, decays = positive("shares", self.shares), at_least_zero("decays", self.decays)
        if shares.ndim != 1 or shares.shape != decays.shape or shares.size == 0:
            raise invalid("shares", "must be a list as long as decays, with one entry or more", shares.tolist())

    def weight(self, distance: Values) -> Array:
        """b at distances in [0, 1]."""
        terms = zip(self.shares, self.decays, strict=True)
        return np.asarray(sum(share * np.exp(-decay * np.asarray(distance)) for share, decay in terms))

    def mass(self, sigma: Values) -> Array:
        r"""\(\sum_p s_p (1 - e^{-\lambda_p\sigma})/\lambda_p\)."""
        terms = zip(self.shares, self.decays, strict=True)
        return np.asarray(sum(share * kernel_mass(sigma, np.asarray(float(decay))) for share, decay in terms))

    @property
    def slope(self) -> float:
        r"""\(-\sum_p s_p \lambda_p\)."""
        return -float(np.dot(self.shares, self.decays))


@dataclass(frozen=True)
class PowerLaw:
    r"""\(b(x) = (1 + x/\ell)^{-p}\).

    Raises:
        InvalidInput: the length is not > 0 or the exponent below 0.
    """

    length: float
    r"""\(\ell > 0\), as a fraction of the prompt."""
    exponent: float
    """p >= 0."""

    def __post_init__(self) -> None:
        """Check both numbers."""
        one_number("length", positive("length", self.length))
        one_number("exponent", at_least_zero("exponent", self.exponent))

    def weight(self, distance: Values) -> Array:
        """b at distances in [0, 1]."""
        return np.asarray(np.exp(-self.exponent * np.log1p(np.asarray(distance) / self.length)))

    def mass(self, sigma: Values) -> Array:
        r"""\(\ell\,\frac{(1 + \sigma/\ell)^{1-p} - 1}{1-p}\), \(\ell\log(1 + \sigma/\ell)\) at p = 1."""
        from scipy.special import exprel

        growth = np.log1p(np.asarray(sigma) / self.length)
        return np.asarray(self.length * growth * exprel((1 - self.exponent) * growth))

    @property
    def slope(self) -> float:
        r"""\(-p/\ell\)."""
        return -self.exponent / self.length


@dataclass(frozen=True)
class Weighting:
    """Any smooth b > 0, given as a function of arrays of distances; its mass is integrated numerically.

    Raises:
        InvalidInput: b is not a positive finite number everywhere on [0, 1].
        NotApplicable: b is too rough for the integration (600 points), or its slope at 0 is asked for and not given.

    >>> float(Weighting(lambda x: np.exp(-x)).mass(np.float64(1.0)).round(12))  # 1 - 1/e
    0.632120558829
    """

    function: Callable[[Array], Array]
    """b."""
    slope_at_0: float | None = None
    """b'(0); only ``critical_rate`` needs it."""

    def __post_init__(self) -> None:
        """Look at b on a grid with both ends, and closer at every minimum between them."""
        grid = np.linspace(0.0, 1.0, 1001)
        self._stay_above_zero(grid, self.weight(grid))
        fine, coarse = (float(points.weights @ self.weight(points.nodes)) for points in (fractions(16), fractions(12)))
        if abs(coarse / fine - 1) > 1e-11:
            raise NotApplicable("b must be smooth on [0, 1]: 600 points do not settle its integral; smooth it first")

    def _stay_above_zero(self, grid: Array, values: Array) -> None:
        """Close in on each minimum of the grid; one far below both neighbours is a zero that rounding hides."""
        inner = values[1:-1]
        lows = np.flatnonzero((inner < values[:-2]) & (inner <= values[2:])) + 1
        at, span = grid[lows], grid[1] - grid[0]
        for _ in range(CLOSER):
            points = np.clip(at[:, None] + np.linspace(-span, span, 33), 0.0, 1.0)
            at = np.take_along_axis(points, self.weight(points).argmin(axis=1)[:, None], axis=1)[:, 0]
            span /= 16
        beside = np.minimum(values[lows - 1], values[lows + 1])
        for x, low, high in zip(at, self.weight(at), beside, strict=True):
            if low < HIDDEN * high:
                raise invalid("b", f"must be > 0 on [0, 1], also at x = {x:.6g}", float(low))

    def weight(self, distance: Values) -> Array:
        """b at distances in [0, 1]."""
        distance = np.asarray(distance, dtype=np.float64)
        values = np.asarray(self.function(distance), dtype=np.float64)
        if values.shape != distance.shape:
            raise invalid("b", f"must give one value per distance, so shape {distance.shape}", values.shape)
        good = np.isfinite(values) & (values > 0)
        if not good.all():
            at = float(distance[~good].flat[0])
            raise invalid("b", f"must be > 0 on [0, 1], also at x = {at:.6g}", float(values[~good].flat[0]))
        return values

    def mass(self, sigma: Values) -> Array:
        r"""\(\sigma \int_0^1 b(\sigma s)\, ds\)."""
        sigma, points = np.asarray(sigma, dtype=np.float64), fractions(16)
        return np.asarray(sigma * (self.weight(sigma[..., None] * points.nodes) @ points.weights))

    @property
    def slope(self) -> float:
        """b'(0), if it was given."""
        if self.slope_at_0 is None:
            raise NotApplicable("recency needs the slope b'(0); give it as slope_at_0=...")
        return self.slope_at_0


def critical_rate(kernel: PositionalKernel) -> float:
    r"""The c = at up to which one mode's response rises at its end (recency), for any positional kernel:

    \[ \frac{\partial g}{\partial\sigma_0}(1) = -c\,\frac{b'(0)}{B(1)} - \frac{c^2}{2}\frac{b(0)^2}{B(1)^2} > 0
       \iff c < \frac{-2\, B(1)\, b'(0)}{b(0)^2}. \]

    0 where b does not fall at 0: no recency at any time. ALiBi gives \(2(1 - e^{-\lambda})\). Exact.
    Source: derived here (docs/kinetic.md); arXiv 2605.09213, Section 1.2.2, has the sign condition.

    >>> round(critical_rate(PowerLaw(0.2, 2.0)), 6)
    3.333333
    """
    checked_kernel(kernel)
    end, start = float(kernel.mass(np.float64(1.0))), float(kernel.weight(np.float64(0.0)))
    return max(0.0, -2 * end * kernel.slope / start**2)


def positional_t_crit(kernel: PositionalKernel, *, beta: Numbers, M: Numbers) -> Values:
    r"""The time up to which the retrieval profile of any positional kernel rises at its end, exactly:

    \[ t_{crit} = \frac{-2\, B(1)\, b'(0)}{b(0)^2}\, \frac{\sum_n \omega_n a_n}{\sum_n \omega_n a_n^2}. \]

    beta and M broadcast. Source: derived here (docs/kinetic.md). Errors as for ``t_crit``.
    """
    modes = profile_modes(concentration(beta), vocabulary(M))
    return plain(critical_rate(kernel) * np.exp(modes.log_moment(1) - modes.log_moment(2)))
