r"""The angular modes that a retrieval profile sums over: their rates, their read-out weights, and how many count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable
from catenary.kinetic.arguments import (
    Array,
    Numbers,
    Values,
    broadcast_shape,
    concentration,
    plain,
    positive,
    vocabulary,
)
from catenary.kinetic.closed_form.series import Series

NEGLIGIBLE = 1e-17
"""Modes below this part of the largest cannot change the last bit of a sum of positive terms."""

SMALLEST_GROWTH = 1e-90
"""Rate times time below which the third derivative's terms, its cubes, come close to the end of float64."""


def mode_rate(mode: Numbers, beta: Numbers) -> Values:
    r"""Growth rate of mode n: minus the n-th Fourier coefficient of \(w''\) for \(w = e^{\beta\cos\theta}\),

    \[ a_n = n^2 I_n(\beta), \]

    with the circle's measure normalised to 1. Arguments broadcast. Source: arXiv 2605.09213, Section 1.1.

    Args:
        mode: n > 0.
        beta: in (0, 700].

    Raises:
        InvalidInput: an argument is out of range.

    >>> mode_rate([1, 2, 3], 1.0).round(6).tolist()
    [0.565159, 0.542991, 0.199516]
    """
    at, b = positive("mode", mode), concentration(beta)
    broadcast_shape(mode=at, beta=b)
    return plain(_rates(at, b))


def mode_weight(mode: Numbers, M: Numbers) -> Values:
    r"""Read-out weight of mode n, \(\omega_n = e^{-\pi^2 n^2/(2M^2)}\): the Fourier coefficients of a Gaussian on the
    circle with standard deviation \(\pi/M\), half the distance between two of the M token angles.

    Arguments broadcast. Source: arXiv 2605.09213, Eq. 1.25.

    Raises:
        InvalidInput: an argument is out of range.
    """
    at, m = positive("mode", mode), vocabulary(M)
    broadcast_shape(mode=at, M=m)
    return plain(np.exp(_log_weights(at, m)))


def mode_count(beta: Numbers, M: Numbers) -> int:
    r"""How many modes the profile needs for every one of the given (beta, M), at any time and any position.

    Let p be the mode of largest rate. \(\psi_c/c\) grows with c, so a mode n > p is at most \(\omega_n a_n/(\omega_p
    a_p)\) of mode p whatever t and y are. The sum stops where this stays below 1e-17; t -> 0 is the worst case, and
    the bound is reached there. Source: derived here.

    Raises:
        InvalidInput: an argument is out of range.

    >>> [mode_count(beta, M=8) for beta in (0.1, 1.0, 5.0, 12.0)]
    [9, 13, 17, 19]
    """
    return profile_modes(concentration(beta), vocabulary(M)).count


@dataclass(frozen=True)
class ProfileModes:
    """Rates and weights of the modes 1..n along the last axis, for broadcast (beta, M)."""

    rates: Float64[np.ndarray, "*shape modes"]
    log_weights: Float64[np.ndarray, "*shape modes"]

    @property
    def count(self) -> int:
        """The number of modes."""
        return int(self.rates.shape[-1])

    def __getitem__(self, index: np.ndarray) -> ProfileModes:
        """The modes at some entries of a one-dimensional shape."""
        return ProfileModes(self.rates[index], self.log_weights[index])

    def series(self, t: Array) -> Series:
        r"""The profile's sum at time t: \(c_n = a_n t\)."""
        with np.errstate(over="ignore"):
            rate = self.rates * t[..., None]
            cubes = rate**3
        if not np.isfinite(cubes).all():
            raise NotApplicable("the rates a_n t must stay below 1e102; use a smaller t or beta")
        return Series(*np.broadcast_arrays(self.log_weights, rate))

    def shape_series(self, t: Array) -> Series:
        r"""``series`` at a time at which the profile's shape can be told: \(\max_n a_n t \ge 10^{-90}\)."""
        with np.errstate(over="ignore"):
            largest = self.rates.max(axis=-1) * t
        if (largest < SMALLEST_GROWTH).any():
            raise NotApplicable(
                f"the largest rate times t must be at least {SMALLEST_GROWTH:g}, got {largest.min():.3g}; "
                "use a larger t or beta"
            )
        return self.series(t)

    def log_moment(self, power: int) -> Array:
        r"""\(\log m_k\), \(m_k = \sum_n \omega_n a_n^k\)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.logaddexp.reduce(self.log_weights + power * np.log(self.rates), axis=-1))


def profile_modes(beta: Array, M: Array) -> ProfileModes:
    """All modes that count for any of the given parameters (see ``mode_count``)."""
    broadcast_shape(beta=beta, M=M)
    beta, M = np.broadcast_arrays(beta, M)
    count = 16
    while True:
        modes = np.arange(1.0, count + 1)
        rates, log_weights = _rates(modes, beta[..., None]), _log_weights(modes, M[..., None])
        peak = rates.argmax(axis=-1)[..., None]
        with np.errstate(divide="ignore"):
            size = log_weights + np.log(rates)
        needed = size > np.take_along_axis(size, peak, axis=-1) + np.log(NEGLIGIBLE)
        if not needed[..., -1].any():
            last = int(np.flatnonzero(needed.reshape(-1, count).any(axis=0)).max(initial=0)) + 1
            return ProfileModes(rates[..., :last], log_weights[..., :last])
        count *= 2


def _rates(mode: Array, beta: Array) -> Array:
    from scipy.special import iv

    return np.asarray(mode**2 * iv(mode, beta))


def _log_weights(mode: Array, M: Array) -> Array:
    return np.asarray(-((np.pi * mode / M) ** 2) / 2)
