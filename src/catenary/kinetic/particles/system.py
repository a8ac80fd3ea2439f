"""What the integrators and the estimators ask of a system of particles on the circle, whatever its positional weights.

Tokens are rows of the last axis and count from 0 in code; formulas count them from 1. Any axes before it hold
independent copies.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.kinetic.arguments import real, whole
from catenary.kinetic.closed_form.modes import NEGLIGIBLE, mode_rate

Angles = Float64[np.ndarray, "*batch tokens"]
"""One angle per token, in radians, not folded into a period."""

Cotangents = Float64[np.ndarray, "*copies entries"]
"""One number per angle; another shape is refused in words."""


@runtime_checkable
class System(Protocol):
    r"""Tokens on the circle, each drawn towards earlier ones:

    \[ \dot\theta_j = F_j(\theta) = \sum_{k<j} \omega_{j,k}\, w'_\beta(\theta_j - \theta_k), \qquad
       w_\beta(\theta) = e^{\beta\cos\theta}, \qquad \sum_{k<j} \omega_{j,k} = 1, \]

    with the first token at rest.
    """

    @property
    def tokens(self) -> int:
        """N."""

    @property
    def beta(self) -> float:
        """Concentration of the interaction."""

    @property
    def last_weights(self) -> Float64[np.ndarray, " tokens"]:
        r"""\(\omega_{N,i}\): what the last token gives to each token; 0 for itself."""

    def drift(self, angles: Angles) -> Angles:
        """F, the angles' speed."""

    def pull_back(self, angles: Angles, cotangents: Cotangents) -> Angles:
        r"""\(J^\top p\) for the Jacobian \(J_{jk} = \partial F_j/\partial\theta_k\) and p = ``cotangents``."""


def token_count(tokens: int) -> int:
    """``tokens`` if it is a whole number of at least 2."""
    return whole("tokens", tokens, 2, hint="the first token has no earlier one")


def angles_of(name: str, angles: Angles, tokens: int) -> Angles:
    """``angles`` as finite float64 with one entry per token along the last axis."""
    array = real(name, angles)
    if array.ndim == 0 or array.shape[-1] != tokens:
        raise invalid(name, f"must have {tokens} tokens along the last axis", array.shape)
    return array


def cotangents_of(cotangents: Cotangents, angles: Angles) -> Angles:
    """``cotangents`` as finite float64 if they are shaped like the angles."""
    array = real("cotangents", cotangents)
    if array.shape != angles.shape:
        raise invalid("cotangents", f"must have the angles' shape {angles.shape}", array.shape)
    return array


def interaction_rates(beta: float) -> Float64[np.ndarray, " modes"]:
    r"""\(a_n = n^2 I_n(\beta)\), n = 1, 2, ..., as far as they exceed 1e-17 of the largest.

    \(w'_\beta(\theta) = -2\sum_n (a_n/n)\sin n\theta\) and \(w''_\beta(\theta) = -2\sum_n a_n\cos n\theta\).
    """
    count = 16
    while True:
        rates = np.asarray(mode_rate(np.arange(1.0, count + 1), beta))
        kept = np.flatnonzero(rates > NEGLIGIBLE * rates.max())
        if kept[-1] < count - 1:
            return rates[: kept[-1] + 1]
        count *= 2
