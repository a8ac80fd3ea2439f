r"""What a correlation is read through: an even kernel on the circle, given by its Fourier weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.kinetic.arguments import Array, Numbers, at_least_zero, one_number, vocabulary
from catenary.kinetic.closed_form.modes import NEGLIGIBLE, mode_rate, mode_weight

RELEVANT = 1e-4
"""A mode counts if it carries more than this part of the sum over modes, summed over all sources."""


@dataclass(frozen=True, eq=False)
class Readout:
    r"""The kernel \(\kappa(\theta) = \sum_{n \ge 1} \omega_n \cos n\theta\), whose weights are \(\omega_1, \omega_2,
    \dots\), all >= 0.

    For tokens that start independent and uniform, \(N\,\mathrm{E}\,\kappa(\theta_N(t) - \theta_i(0)) \to
    \sum_n \omega_n g_{a_n}(t, 1; i/N)\). ``gaussian_readout(M)`` gives the weights of the retrieval profile; a single
    weight of 1 picks one mode.

    Raises:
        InvalidInput: no weight is positive, or one is negative or not finite.
    """

    weights: Float64[np.ndarray, " modes"]

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        array = at_least_zero("weights", self.weights)
        if array.ndim != 1 or not array.any():
            raise invalid("weights", "must be a row of numbers with one > 0", array.tolist())

    def kernel(self, angles: Array) -> Array:
        r"""\(\kappa(\theta)\) by Clenshaw's recursion, one cosine per angle."""
        double = 2 * np.cos(angles)
        later, latest = np.zeros_like(double), np.zeros_like(double)
        for weight in self.weights[::-1]:
            later, latest = weight + double * later - latest, later
        return np.asarray(double / 2 * later - latest)

    def rates(self, beta: float) -> Float64[np.ndarray, " modes"]:
        r"""\(a_n = n^2 I_n(\beta)\) of the modes read."""
        return np.asarray(mode_rate(np.arange(1.0, len(self.weights) + 1), beta))

    def highest_relevant_mode(self, beta: float, t: float) -> int:
        r"""The highest mode whose part of \(\sum_n \omega_n (e^{a_n t} - 1)\), the sum over all sources, is above 1e-4.

        >>> [gaussian_readout(8).highest_relevant_mode(beta, 0.5) for beta in (0.5, 1.0, 2.0)]
        [4, 5, 6]
        """
        growth = self.rates(beta) * t
        with np.errstate(divide="ignore"):
            size = np.log(self.weights) + growth + np.log(-np.expm1(-growth))
        part = np.exp(size - np.logaddexp.reduce(size))
        return int(np.flatnonzero(part > RELEVANT)[-1]) + 1


def gaussian_readout(M: Numbers, modes: int | None = None) -> Readout:
    r"""Weights \(\omega_n = e^{-\pi^2 n^2/(2M^2)}\) of a vocabulary of M token angles, down to 1e-17.

    Source: arXiv 2605.09213, Eq. 1.25.

    Args:
        M: number of token angles >= 1.
        modes: number of modes, if it is to be another.
    """
    size = one_number("M", vocabulary(M))
    count = int(np.ceil(size * np.sqrt(-2 * np.log(NEGLIGIBLE)) / np.pi)) if modes is None else modes
    return Readout(np.asarray(mode_weight(np.arange(1.0, count + 1), size)))
