r"""The retrieval profile: how well the last token still shows the source at each position of the prompt.

Tokens start independent and uniform on the circle. After time t the soft read-out at the last token finds the source
with density \(1 + \frac{2}{N} S_t(\sigma_0)\) relative to chance, so \(S_t\) is where position enters.
"""

from __future__ import annotations

import numpy as np

from catenary.errors import NotApplicable
from catenary.kinetic.arguments import (
    Numbers,
    Values,
    at_least_zero,
    broadcast_shape,
    concentration,
    fraction,
    plain,
    positive,
    vocabulary,
)
from catenary.kinetic.closed_form.modes import profile_modes
from catenary.kinetic.closed_form.source_profile import Scaled, profile_derivatives


def retrieval_profile(sigma0: Numbers, *, lam: Numbers, beta: Numbers, t: Numbers, M: Numbers) -> Values:
    r"""The retrieval profile

    \[ S_t(\sigma_0) = \sum_{n \ge 1} e^{-\pi^2 n^2/(2M^2)}\, g_{a_n}(t, 1; \sigma_0), \qquad a_n = n^2 I_n(\beta). \]

    Arguments broadcast; the number of modes follows from beta and M (``mode_count``). Relative error below 1e-12 for
    lambda up to 1000, sources from 1e-12 on, \(\max_n a_n t\) from 1e-8 to 50 and beta up to 12 (tests). Values below
    1e-308 round to 0: ``log_retrieval_profile`` has them. Leading order in 1/N of the particle system; it needs
    \(N \gg e^{C t}\). Source: arXiv 2605.09213, Eq. 1.24 and 1.25.

    Args:
        sigma0: position of the source, in (0, 1].
        lam: decay lambda >= 0 of the attention weights over the prompt.
        beta: concentration of the attention, in (0, 700].
        t: time >= 0, which stands for depth.
        M: number of token angles >= 1.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: a value, or a rate times t, exceeds what float64 holds.

    >>> retrieval_profile([0.05, 0.25, 1.0], lam=1.0, beta=1.0, t=1.0, M=8).round(6).tolist()
    [1.419804, 1.19547, 1.638251]
    """
    return plain(derivative(sigma0, lam, beta, t, M, 0).values("use log_retrieval_profile"))


def log_retrieval_profile(sigma0: Numbers, *, lam: Numbers, beta: Numbers, t: Numbers, M: Numbers) -> Values:
    """Logarithm of ``retrieval_profile``, of any size. Arguments and errors as there, but t > 0."""
    return plain(derivative(sigma0, lam, beta, positive("t", t), M, 0).logs())


def retrieval_slope(sigma0: Numbers, *, lam: Numbers, beta: Numbers, t: Numbers, M: Numbers) -> Values:
    r"""\(dS_t/d\sigma_0\): > 0 at 1 means recency. Arguments and errors as for ``retrieval_profile``.

    The error is about 1e-14 of the larger of its two terms (docs/kinetic.md). Source: derived here.
    """
    return plain(derivative(sigma0, lam, beta, t, M, 1).values("use a smaller t"))


def retrieval_curvature(sigma0: Numbers, *, lam: Numbers, beta: Numbers, t: Numbers, M: Numbers) -> Values:
    r"""\(d^2S_t/d\sigma_0^2\). Arguments, errors and accuracy as for ``retrieval_slope``. Source: derived here."""
    return plain(derivative(sigma0, lam, beta, t, M, 2).values("use a smaller t"))


def retrieval_mass(*, beta: Numbers, t: Numbers, M: Numbers) -> Values:
    r"""\(\int_0^1 S_t\, d\sigma_0 = \sum_n \omega_n (e^{a_n t} - 1)\), the same for every lambda.

    Arguments broadcast. Source: derived here, from the mass rule \(\int_0^1 g_a\, d\sigma_0 = e^{at} - 1\).

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the mass exceeds float64.

    >>> float(retrieval_mass(beta=1.0, t=1.0, M=8).round(6))
    1.357502
    """
    b, time, m = concentration(beta), at_least_zero("t", t), vocabulary(M)
    broadcast_shape(beta=b, t=time, M=m)
    series = profile_modes(b, m).series(time)
    with np.errstate(over="ignore"):
        mass = (np.exp(series.log_weight) * np.expm1(series.rate)).sum(axis=-1)
    if not np.isfinite(mass).all():
        raise NotApplicable("the mass must stay below 1e308; use a smaller t or beta")
    return plain(mass)


def derivative(sigma0: Numbers, lam: Numbers, beta: Numbers, t: Numbers, M: Numbers, order: int) -> Scaled:
    """The profile (order 0), its slope or its curvature as factor and exponent, of arguments checked here."""
    at = fraction("sigma0", sigma0)
    decay, time = at_least_zero("lam", lam), at_least_zero("t", t)
    b, m = concentration(beta), vocabulary(M)
    broadcast_shape(sigma0=at, lam=decay, beta=b, t=time, M=m)
    return profile_derivatives(profile_modes(b, m).series(time), np.ones(()), at, decay, order)
