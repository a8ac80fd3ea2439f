r"""How a later token answers to an earlier one, one angular mode at a time: the Volterra-Hardy equation in closed form.

\[ \partial_t g(t, \sigma; \sigma_0) = a \left( \int_{\sigma_0}^{\sigma} k_\lambda(\sigma, s)\, g(t, s; \sigma_0)\, ds
   + k_\lambda(\sigma, \sigma_0) \right), \qquad g(0, \cdot) = 0. \]
"""

from __future__ import annotations

import math

import numpy as np

from catenary.errors import NotApplicable
from catenary.kinetic.arguments import (
    Array,
    Numbers,
    Values,
    at_least_zero,
    broadcast_shape,
    concentration,
    fraction,
    plain,
    positive,
    real,
    source,
)
from catenary.kinetic.closed_form.primitives import warp_distance
from catenary.kinetic.closed_form.series import Series
from catenary.kinetic.closed_form.source_profile import Scaled, profile_derivatives


def psi(y: Numbers, c: Numbers) -> Values:
    r"""The kernel of \(e^{cK} - 1\) for a running mean K, at distance y:

    \[ \psi_c(y) = \sqrt{c/y}\, I_1(2\sqrt{cy}) = \sum_{k \ge 0} \frac{c^{k+1} y^k}{k!\,(k+1)!}. \]

    \(\psi_c(0) = c\) and \(\int_0^Y \psi_c = I_0(2\sqrt{cY}) - 1\). Arguments broadcast. Relative error about 1e-15
    times max(1, sqrt(cy)). Source: arXiv 2605.09213, Lemma 1.4.

    Args:
        y: distance >= 0.
        c: rate times time, >= 0.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the value exceeds float64.

    >>> psi([0.0, 2.0], 2.0).round(6).tolist()
    [2.0, 9.759465]
    """
    distance = at_least_zero("y", y)
    rate = at_least_zero("c", c)
    broadcast_shape(y=distance, c=rate)
    scale, sums = _one_mode(rate).derivatives(distance, [0])
    return plain(Scaled(sums[0], scale).values("use smaller y or c"))


def response(t: Numbers, sigma: Numbers, sigma0: Numbers, *, a: Numbers, lam: Numbers) -> Values:
    r"""Limit of N times the correlation of one mode of the token at \(\sigma\), after time t, with the source:

    \[ g_a(t, \sigma; \sigma_0) = k_\lambda(\sigma, \sigma_0)\, \psi_{at}(Y(\sigma; \sigma_0)), \]

    the kernel of \(e^{atK_\lambda} - 1\) for \((K_\lambda u)(\sigma) = \int_0^\sigma k_\lambda u\). Exact for tokens
    that start independent and uniform on the circle, where mode n has a = ``mode_rate(n, beta)``. Arguments broadcast.
    Relative error below 1e-12 for lambda up to 1000, sources from 1e-12 on and at from 1e-8 to 50 (tests). Values below
    1e-308 round to 0: ``log_response`` has them. Source: arXiv 2605.09213, Lemma 1.4.

    Args:
        t: time >= 0.
        sigma: position of the later token, in (0, 1].
        sigma0: position of the source, in (0, sigma].
        a: rate >= 0.
        lam: decay lambda >= 0.

    Raises:
        InvalidInput: an argument is out of range.
        NotApplicable: the value exceeds float64.

    >>> float(response(1.0, 1.0, 0.5, a=1.0, lam=1.0).round(6))
    1.509176
    """
    return plain(_response(t, sigma, sigma0, a, lam, 0).values("use log_response"))


def log_response(t: Numbers, sigma: Numbers, sigma0: Numbers, *, a: Numbers, lam: Numbers) -> Values:
    """Logarithm of ``response``, of any size. Arguments and errors as there, but t > 0 and a > 0."""
    return plain(_response(positive("t", t), sigma, sigma0, positive("a", a), lam, 0).logs())


def response_slope(t: Numbers, sigma: Numbers, sigma0: Numbers, *, a: Numbers, lam: Numbers) -> Values:
    r"""\(\partial g_a/\partial\sigma_0\), with arguments and errors of ``response``.

    The error is about 1e-14 of the larger of its two terms (docs/kinetic.md). Source: derived here.
    """
    return plain(_response(t, sigma, sigma0, a, lam, 1).values("use a smaller t"))


def response_mass(t: Numbers, sigma: Numbers, sigma0: Numbers, *, a: Numbers, lam: Numbers) -> Values:
    r"""What all sources up to \(\sigma_0\) contribute together, with Q the regularised upper incomplete gamma function:

    \[ \int_0^{\sigma_0} g_a(t, \sigma; s)\, ds = \int_Y^\infty e^{-y} \psi_c(y)\, dy
       = \sum_{k \ge 1} \frac{c^k}{k!}\, Q(k, Y), \qquad c = at, \]

    which is \(e^{c} - 1\) at \(\sigma_0 = \sigma\). Arguments and errors as for ``response``. Source: the total, arXiv
    2605.09213, Section 6; the rest, derived here.

    >>> float(response_mass(1.0, 1.0, 1.0, a=1.0, lam=3.0).round(6))  # e - 1
    1.718282
    """
    from scipy.special import gammaincc, gammaln

    c, y = _distance(t, sigma, sigma0, a, lam)
    if c.max(initial=0.0) > math.log(np.finfo(np.float64).max):
        raise NotApplicable(f"the mass e^(at) - 1 must stay below 1e308, got at = {c.max():.4g}; use a smaller t")
    # Terms fall by more than a half from k^2 = 2 c (k + Y) on, and another 60 of them reach 2^-60 of the sum.
    k = np.arange(1.0, 61 + math.ceil(float((c + np.sqrt(c**2 + 2 * c * y)).max(initial=0.0))))
    with np.errstate(divide="ignore", under="ignore"):
        powers = np.exp(k * np.log(c[..., None]) - gammaln(k + 1))
        return plain((powers * gammaincc(k, y[..., None])).sum(axis=-1))


def cluster_response(t: Numbers, sigma: Numbers, sigma0: Numbers, *, beta: Numbers, lam: Numbers) -> Values:
    r"""Response of tokens that all start near one point of the circle:

    \[ R(t, \sigma; \sigma_0) = e^{-a_* t} g_{a_*}(t, \sigma; \sigma_0), \qquad a_* = \beta e^\beta. \]

    For starting angles \(h + \epsilon\xi_j\) with independent \(\xi_j\) of variance v, N times the covariance of two
    tokens' angles tends to \(\epsilon^2 v R\) as N grows and then \(\epsilon\) falls. With ``cluster_memory`` it sums
    to one: \(e^{-a_* t} + \int_0^\sigma R\, d\sigma_0 = 1\). Source: arXiv 2605.09213, Corollary 7.2.

    Args:
        t: time >= 0.
        sigma: position of the later token, in (0, 1].
        sigma0: position of the source, in (0, sigma].
        beta: in (0, 700].
        lam: decay lambda >= 0.

    Raises:
        InvalidInput: an argument is out of range.

    >>> float(cluster_response(1.0, 1.0, 0.5, beta=1.0, lam=1.0).round(6))
    0.525931
    """
    rate = _cluster_rate(beta)
    grown = _response(t, sigma, sigma0, rate, lam, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = grown.exponent - rate * real("t", t)
    return plain(Scaled(grown.factor, exponent).values("use a smaller t"))


def cluster_memory(t: Numbers, *, beta: Numbers) -> Values:
    r"""What a token of one cluster keeps of its own start, \(D = e^{-a_* t}\) with \(a_* = \beta e^\beta\).

    Source: arXiv 2605.09213, Corollary 7.2.

    Raises:
        InvalidInput: t is below 0 or beta outside (0, 700].
    """
    time, rate = at_least_zero("t", t), _cluster_rate(beta)
    broadcast_shape(t=time, beta=rate)
    with np.errstate(over="ignore"):
        return plain(np.exp(-rate * time))


def _cluster_rate(beta: Numbers) -> Array:
    checked = concentration(beta)
    return np.asarray(checked * np.exp(checked))


def _one_mode(c: Array) -> Series:
    return Series(np.zeros((*c.shape, 1)), c[..., None])


def _response(t: Numbers, sigma: Numbers, sigma0: Numbers, a: Numbers, lam: Numbers, order: int) -> Scaled:
    c, at, from_, decay = _checked(t, sigma, sigma0, a, lam)
    return profile_derivatives(_one_mode(c), at, from_, decay, order)


def _distance(
    t: Numbers, sigma: Numbers, sigma0: Numbers, a: Numbers, lam: Numbers
) -> tuple[Array, Array]:
    c, at, from_, decay = _checked(t, sigma, sigma0, a, lam)
    c, y = np.broadcast_arrays(c, warp_distance(at, from_, decay))
    return c, y


def _checked(
    t: Numbers, sigma: Numbers, sigma0: Numbers, a: Numbers, lam: Numbers
) -> tuple[Array, Array, Array, Array]:
    """at, the two positions and the decay."""
    rate, time, decay = at_least_zero("a", a), at_least_zero("t", t), at_least_zero("lam", lam)
    at = fraction("sigma", sigma)
    from_ = source(sigma0, at)
    broadcast_shape(a=rate, t=time, sigma=at, sigma0=from_, lam=decay)
    with np.errstate(over="ignore"):
        return np.asarray(rate * time), at, from_, decay
