r"""The times that bound the regimes of a retrieval profile: U-shaped, humped, and falling all the way."""

from __future__ import annotations

import math

import numpy as np

from catenary.errors import NotApplicable
from catenary.kinetic.arguments import (
    Array,
    Numbers,
    Values,
    broadcast_shape,
    concentration,
    plain,
    shape_decay,
    vocabulary,
)
from catenary.kinetic.closed_form.balance import balance
from catenary.kinetic.closed_form.modes import SMALLEST_GROWTH, ProfileModes, profile_modes

CONVEX = 3 - math.sqrt(3)
r"""Up to this c the function \(e^{-y}\psi_c(y)\) is convex in y: the first zero of \(c^2 - 6c + 6\)."""


def t_crit(lam: Numbers, beta: Numbers, M: Numbers) -> Values:
    r"""The time up to which the profile rises at its end (recency), exactly:

    \[ \frac{dS_t}{d\sigma_0}(1) > 0 \iff t < t_{crit} = 2 (1 - e^{-\lambda})\,
       \frac{\sum_n \omega_n a_n}{\sum_n \omega_n a_n^2}. \]

    0 at lambda = 0: there is no recency without decay. Arguments broadcast. Below it the profile has one interior
    minimum for beta up to 10 in every case tried, and may have two above (docs/kinetic.md). Source: derived here from
    arXiv 2605.09213, Eq. 1.25.

    Args:
        lam: decay lambda in [0, 1e5].
        beta: in (0, 700].
        M: number of token angles >= 1.

    Raises:
        InvalidInput: an argument is out of range.

    >>> float(t_crit(1.0, 1.0, 8).round(6))
    2.457489
    """
    decay, b, m = _checked(lam, beta, M)
    return plain(np.exp(log_t_crit(decay, profile_modes(b, m))))


def t_sufficient(lam: Numbers, beta: Numbers, M: Numbers) -> Values:
    r"""A time up to which the profile is proved to be U-shaped:

    \[ t \sup_n a_n \le \min\{3 - \sqrt3,\; 2 (1 - e^{-\lambda})\}. \]

    It does not depend on M; the argument broadcasts with the others, as in ``t_crit``. Source: arXiv 2605.09213,
    Theorem 1.3. Errors as for ``t_crit``.

    >>> float(t_sufficient(1.0, 1.0, 8).round(6))
    2.236965
    """
    decay, b, m = _checked(lam, beta, M)
    return plain(np.minimum(CONVEX, -2 * np.expm1(-decay)) / profile_modes(b, m).rates.max(axis=-1))


def t_monotone(lam: Numbers, beta: Numbers, M: Numbers) -> Values:
    r"""The time from which on the profile falls from the first token to the last: pure primacy, for ever after.

    Equal to ``t_crit`` up to lambda = ``hump_onset`` where beta is below 10, later above it: in between the profile has
    a hump near the end besides its interior minimum. Found as the time at which \(\max_y \Lambda(y, t)\) reaches 0
    (``balance.py``), which it does once.
    Relative error about 1e-14, next to the onset 1e-8. Source: derived here (docs/kinetic.md). Errors as for
    ``t_crit``.

    >>> t_monotone([1.0, 5.0], 1.0, 8).round(4).tolist()
    [2.4575, 6.8397]
    """
    decay, b, m = np.broadcast_arrays(*_checked(lam, beta, M))
    shape, decay = decay.shape, decay.ravel()
    modes = profile_modes(b.ravel(), m.ravel())
    times = np.exp(log_t_crit(decay, modes))
    # Where rates times t_crit are tiny, the balance is largest at the end: both times are one.
    index = np.flatnonzero(times * modes.rates.max(axis=-1) > SMALLEST_GROWTH)
    if index.size:
        profiles = balance(modes[index], decay[index])
        start = log_t_crit(decay[index], modes[index])
        ends = profiles.end_of_hump(start, np.arange(index.size))
        times[index] = np.where(ends > start, np.exp(ends), times[index])
    return plain(times.reshape(shape))


def hump_onset(beta: Numbers, M: Numbers) -> Values:
    r"""The decay above which the profile, when its recency ends, turns into a hump before it falls all the way:

    \[ \lambda_h = \log\left(1 + \frac{1}{1 - 2\kappa/3}\right), \qquad \kappa = \frac{m_1 m_3}{m_2^2} \ge 1, \quad
       m_k = \sum_n \omega_n a_n^k. \]

    One mode has \(\kappa = 1\) and \(\lambda_h = \log 4\). Source: derived here (docs/kinetic.md).

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: kappa reaches 3/2, where no decay gives a hump next to ``t_crit``.

    >>> float(hump_onset(1.0, 8).round(4))
    1.4723
    """
    modes = profile_modes(concentration(beta), vocabulary(M))
    kappa = np.exp(modes.log_moment(1) + modes.log_moment(3) - 2 * modes.log_moment(2))
    if (kappa >= 1.5).any():
        raise NotApplicable(
            f"a hump next to t_crit needs m_1 m_3/m_2^2 < 3/2, got {kappa.max():.4g}; compare t_monotone with t_crit"
        )
    return plain(np.log1p(1 / (1 - 2 * kappa / 3)))


def _checked(lam: Numbers, beta: Numbers, M: Numbers) -> tuple[Array, Array, Array]:
    decay, b, m = shape_decay(lam), concentration(beta), vocabulary(M)
    broadcast_shape(lam=decay, beta=b, M=m)
    return decay, b, m


def log_t_crit(lam: Array, modes: ProfileModes) -> Array:
    r"""\(\log t_{crit}\), minus infinity at lambda = 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-2 * np.expm1(-lam)) + modes.log_moment(1) - modes.log_moment(2))
