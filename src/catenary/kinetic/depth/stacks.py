r"""The bridge between depth and kinetic time: residual stacks of H layers tend to the closed form as H grows.

\(U(\sigma) = e^{-Y(1;\sigma)} = (e^{\lambda\sigma} - 1)/(e^\lambda - 1)\) turns the ALiBi kernel into the plain
running mean, \((K_\lambda u) \circ U^{-1} = K_0 (u \circ U^{-1})\), so a stack of H layers is the Cesàro law at x = U,
and lambda is a warp of position. Letting H grow makes the number of attention branches on a path Poisson.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64, Int64

from catenary.errors import NotApplicable, invalid, unknown
from catenary.kinetic.arguments import (
    Numbers,
    Values,
    at_least_zero,
    broadcast_shape,
    fraction,
    one_number,
    plain,
    positive,
    whole,
)
from catenary.kinetic.closed_form.one_mode import log_response
from catenary.kinetic.closed_form.primitives import kernel_mass, warp_distance
from catenary.kinetic.closed_form.series import SMALLEST_ARGUMENT, scaled_bessel

Stack = Literal["additive", "convex"]
r"""additive: \((1 + \frac{c}{H} K)^H\), a branch added to the stream; convex: \(((1-\frac{c}{H}) + \frac{c}{H} K)^H\),
a branch mixed with it."""

STACKS: tuple[Stack, ...] = ("additive", "convex")

_END = np.ones(())

FIRST_ORDER = 0.1
"""How far the fitted order may be from 1 for a fall as 1/H: twice the depth then takes 46 to 54 % off the error."""

LARGEST_MIXING = 1e100
"""Far beyond it squares leave float64."""


def warp(sigma: Numbers, *, lam: Numbers) -> Values:
    r"""The position that makes ALiBi attention uniform, \(U(\sigma) = \frac{e^{\lambda\sigma}-1}{e^\lambda-1}\).

    \(\sigma\) itself at lambda = 0. A source at \(\sigma_0\) under lambda is a source at U under uniform attention,
    with \(dU/d\sigma_0 = k_\lambda(1, \sigma_0)\). Arguments broadcast. Source: derived here (docs/kinetic-bridge.md).

    Args:
        sigma: positions in (0, 1].
        lam: decay lambda >= 0.

    Raises:
        InvalidInput: an argument is out of range.

    >>> float(warp(0.5, lam=2.0).round(6))
    0.268941
    """
    at, decay = fraction("sigma", sigma), at_least_zero("lam", lam)
    broadcast_shape(sigma=at, lam=decay)
    return plain(np.exp(-warp_distance(_END, at, decay)))


def stack_response(sigma0: Numbers, *, c: Numbers, lam: Numbers, layers: int, stack: Stack = "additive") -> Values:
    r"""Response of the last position of a residual stack of H layers, per unit of \(\sigma_0 < 1\):

    \[ k_\lambda(1, \sigma_0) \sum_{r=1}^{H} w_r \frac{Y^{r-1}}{(r-1)!}, \qquad
       w_r = \binom Hr \left(\tfrac cH\right)^r \ \text{or}\ \binom Hr \left(\tfrac cH\right)^r
       \left(1 - \tfrac cH\right)^{H-r}, \]

    the Laguerre polynomial \(k_\lambda \frac{c}{H} L^{(1)}_{H-1}(-\frac{cY}{H})\) for the additive stack. A convex
    stack keeps \((1 - c/H)^H\) at the last position. Arguments but the depth broadcast. Relative error about 1e-14; all
    terms are positive. Source: arXiv 2603.10123, Eq. 6, at lambda = 0; the rest, derived here (docs/kinetic-bridge.md).

    Args:
        sigma0: positions of the source, in (0, 1].
        c: total mixing over all layers, > 0, and below H for a convex stack.
        lam: decay lambda >= 0.
        layers: H >= 1.
        stack: "additive" or "convex".

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a value exceeds float64.

    >>> float(stack_response(0.1, c=2.0, lam=0.0, layers=24, stack="convex").round(9))
    1.647376091
    """
    depth = whole("layers", layers, 1)
    at, rate, decay = fraction("sigma0", sigma0), positive("c", c), at_least_zero("lam", lam)
    broadcast_shape(sigma0=at, c=rate, lam=decay)
    share = rate / depth
    kept = np.zeros(())
    if _checked(stack) == "convex":
        if (share >= 1).any():
            raise invalid("c", f"must be below the number of layers ({depth}) for a convex stack", float(rate.max()))
        kept = depth * np.log1p(-share)
        share = share / (1 - share)
    y = warp_distance(_END, at, decay)
    share, y = np.broadcast_arrays(share, y)
    term = depth * share
    total = term.copy()
    with np.errstate(over="ignore"):
        for r in range(1, depth):
            term = term * ((depth - r) / (r + 1) / r) * share * y
            total = total + term
            if (term <= 1e-17 * total).all():
                break
    return plain(np.exp(kept - decay * (1 - at)) / kernel_mass(_END, decay) * _held(total))


def stack_limit(sigma0: Numbers, *, c: Numbers, lam: Numbers, stack: Stack = "additive") -> Values:
    r"""What ``stack_response`` tends to as H grows: \(k_\lambda\psi_c(Y)\), times \(e^{-c}\) for the convex stack.

    The first is the kinetic response of independent uniform tokens with c = at (``response``), the second that of
    tokens that start as one cluster with \(c = \beta e^\beta t\) (``cluster_response``). Arguments broadcast.
    Source: derived here (docs/kinetic-bridge.md).

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a value exceeds float64.
    """
    rate = positive("c", c)
    kept = rate if _checked(stack) == "convex" else 0.0
    with np.errstate(over="ignore"):
        limit = np.exp(log_response(1.0, 1.0, sigma0, a=rate, lam=lam) - kept)
    return plain(_held(limit))


def depth_coefficient(sigma0: Numbers, *, c: float, lam: float, stack: Stack = "additive") -> Values:
    r"""The coefficient of 1/H in the relative difference of ``stack_response`` from its limit:

    \[ -\tfrac12 cY \ \text{(additive)}, \qquad
       -\tfrac{c^2}{2}\,\frac{\kappa_2 - 2\kappa_1 + \kappa_0}{\kappa_0} \ \text{(convex)}, \qquad
       \kappa_m = \left(\tfrac Yc\right)^{(m-1)/2} I_{|m-1|}(2\sqrt{cY}), \]

    at any Y. The additive one is exact for the whole kernel: \((1 + \frac cH K)^H = e^{cK} (1 -
    \frac{c^2}{2H} K^2 + \dots)\), and \(K^2 e^{cK}\) has the kernel \(\frac Yc k_\lambda\psi_c\).
    Source: derived here (docs/kinetic-bridge.md).

    Args:
        sigma0: positions of the source, in (0, 1].
        c: total mixing > 0.
        lam: decay lambda >= 0.
        stack: "additive" or "convex".

    Raises:
        InvalidInput: an argument is out of range.

    >>> depth_coefficient(0.2, c=1.7, lam=2.0).round(5), depth_coefficient(0.2, c=1.7, lam=2.0, stack="convex").round(5)
    (np.float64(-2.17959), np.float64(0.45536))
    """
    rate = one_number("c", positive("c", c))
    at, decay = fraction("sigma0", sigma0), one_number("lam", at_least_zero("lam", lam))
    y = warp_distance(_END, at, np.asarray(decay))
    if _checked(stack) == "additive":
        return plain(-rate * y / 2)
    if rate > LARGEST_MIXING:
        raise NotApplicable(f"the coefficient is known up to c = {LARGEST_MIXING:g}, got {rate:.3g}; use a smaller c")
    z = np.asarray(np.maximum(2 * np.sqrt(rate * y), SMALLEST_ARGUMENT))
    return plain(rate * (scaled_bessel(0, z) / scaled_bessel(1, z) - (rate + y) / 2))


@dataclass(frozen=True, eq=False)
class Bridge:
    """Stacks of several depths beside their limit.

    Attributes:
        c: total mixing over all layers.
        lam: decay lambda.
        stack: "additive" or "convex".
        sigma0: sources.
        layers: depths, rising.
        values: ``stack_response`` at each depth and source.
        limit: ``stack_limit``.
        coefficient: ``depth_coefficient``.
    """

    c: float
    lam: float
    stack: Stack
    sigma0: Float64[np.ndarray, " sources"]
    layers: Int64[np.ndarray, " depths"]
    values: Float64[np.ndarray, "depths sources"]
    limit: Float64[np.ndarray, " sources"]
    coefficient: Float64[np.ndarray, " sources"]

    @property
    def error(self) -> Float64[np.ndarray, "depths sources"]:
        """Relative difference of each stack from the limit."""
        return np.asarray(self.values / self.limit - 1)

    @property
    def fitted_coefficient(self) -> Float64[np.ndarray, " sources"]:
        """The coefficient of 1/H read off the two deepest stacks, with the term in 1/H^2 removed."""
        shallow, deep = (self.layers[k] * self.error[k] for k in (-2, -1))
        ratio = self.layers[-1] / self.layers[-2]
        return np.asarray((ratio * deep - shallow) / (ratio - 1))

    @property
    def order(self) -> float:
        """The power of 1/H with which the largest error falls between the two deepest stacks; it tends to 1.

        NaN where the deepest stack equals its limit in float64.
        """
        shallow, deep = np.abs(self.error[-2:]).max(axis=1)
        return float(np.log(shallow / deep) / np.log(self.layers[-1] / self.layers[-2])) if deep else math.nan

    def words(self) -> str:
        """One sentence: how close the deepest stack is, and whether the difference falls as theory says, as 1/H."""
        error = np.abs(self.error[-1])
        worst = int(error.argmax())
        close = (
            f"At {self.layers[-1]:,} layers the {self.stack} stack is within {100 * error[worst]:.2g} % of the kinetic "
            "closed form; the difference "
        )
        if not abs(self.order - 1) < FIRST_ORDER:
            return f"{close}does not yet fall as 1/H, but with the power {self.order:.2f} of it"
        return (
            f"{close}falls as 1/H: at position {self.sigma0[worst]:g} the fitted coefficient is "
            f"{self.fitted_coefficient[worst]:.4g}, the exact one {self.coefficient[worst]:.4g}"
        )


def bridge(
    *,
    c: float,
    lam: float,
    sigma0: Numbers = (0.05, 0.2, 0.5, 0.9),
    layers: Sequence[int] = (6, 12, 24, 48, 96, 192, 384),
    stack: Stack = "additive",
) -> Bridge:
    """Stacks of growing depth at one total mixing, their limit, and the exact coefficient of 1/H.

    Args:
        c: total mixing > 0, below the smallest depth for a convex stack.
        lam: decay lambda >= 0.
        sigma0: sources in (0, 1).
        layers: at least two depths, rising.
        stack: "additive" or "convex".

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a response is too small for float64, so that no difference is relative to it.

    >>> seen = bridge(c=1.7, lam=2.0, layers=(1000, 2000))
    >>> bool(np.abs(seen.fitted_coefficient - seen.coefficient).max() < 1e-4)
    True
    """
    depths = [whole("layers", depth, 1) for depth in layers] if np.ndim(layers) == 1 else []
    if len(depths) < 2 or any(a >= b for a, b in itertools.pairwise(depths)):
        raise invalid("layers", "must be at least two rising depths", layers)
    at = np.atleast_1d(fraction("sigma0", sigma0))
    if at.ndim != 1 or (at >= 1).any():
        raise invalid("sigma0", "must be a row of positions in (0, 1)", at.tolist(), "1 is the residual path's")
    rate, decay = one_number("c", positive("c", c)), one_number("lam", at_least_zero("lam", lam))
    limit = np.asarray(stack_limit(at, c=rate, lam=decay, stack=stack))
    if (limit < np.finfo(np.float64).tiny).any():
        raise NotApplicable(
            f"the response at sigma0 = {at[limit.argmin()]:g} is below 1e-308 at lam = {decay:g}; "
            "use a smaller lam or later sources"
        )
    rows = [np.asarray(stack_response(at, c=rate, lam=decay, layers=depth, stack=stack)) for depth in depths]
    return Bridge(
        rate, decay, stack, at, np.array(depths), np.stack(rows), limit,
        np.asarray(depth_coefficient(at, c=rate, lam=decay, stack=stack)),
    )


def _held(response: Values) -> Values:
    if not np.isfinite(response).all():
        raise NotApplicable("the response must stay below 1e308; use a smaller c or later sources")
    return response


def _checked(stack: Stack) -> Stack:
    if stack not in STACKS:
        raise unknown("stack", stack, STACKS)
    return stack
