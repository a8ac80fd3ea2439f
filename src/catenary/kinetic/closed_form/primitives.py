r"""The ALiBi graphon, and the coordinate in which it becomes the plain running mean.

With \(B(\sigma) = \int_0^\sigma e^{-\lambda x} dx\) the weight of a source \(\sigma_0\) in the attention of
\(\sigma\) is \(k = e^{-\lambda(\sigma-\sigma_0)}/B(\sigma)\), and \(u = e^{\lambda\sigma} B(\sigma)\) gives
\(k\,d\sigma_0 = du_0/u\), the kernel of a running mean in u. The distance between two positions that everything depends
on is therefore \(Y = \log(u/u_0)\). Every form here holds for any \(\lambda \ge 0\), 0 included.
"""

from __future__ import annotations

import numpy as np

from catenary.kinetic.arguments import Array, Numbers, Values, at_least_zero, broadcast_shape, fraction, plain, source


def graphon(sigma: Numbers, sigma0: Numbers, *, lam: Numbers) -> Values:
    r"""Limit of N times the attention weight of source \(\sigma_0\) for the query at \(\sigma\):

    \[ k_\lambda(\sigma, \sigma_0) = \frac{\lambda e^{-\lambda(\sigma-\sigma_0)}}{1 - e^{-\lambda\sigma}}, \qquad
       k_0 = \frac1\sigma, \qquad \int_0^\sigma k_\lambda(\sigma, s)\, ds = 1. \]

    Arguments broadcast. Relative error about 1e-15 times max(1, lambda). Source: arXiv 2605.09213, Section 1.1.

    Args:
        sigma: query positions in (0, 1].
        sigma0: source positions in (0, sigma].
        lam: decay lambda >= 0.

    Raises:
        InvalidInput: an argument is out of range.

    >>> float(graphon(1.0, 0.5, lam=1.0).round(6))
    0.959517
    """
    at, lam = fraction("sigma", sigma), at_least_zero("lam", lam)
    from_ = source(sigma0, at)
    broadcast_shape(sigma=at, sigma0=from_, lam=lam)
    return plain(np.exp(-lam * (at - from_)) / kernel_mass(at, lam))


def log_warp_ratio(sigma: Numbers, sigma0: Numbers, *, lam: Numbers) -> Values:
    r"""The distance between source and query that the theory depends on:

    \[ Y(\sigma; \sigma_0) = \log\frac{e^{\lambda\sigma}-1}{e^{\lambda\sigma_0}-1}
       = \lambda(\sigma - \sigma_0) + \log\frac{B(\sigma)}{B(\sigma_0)} \ge 0, \]

    \(\log(\sigma/\sigma_0)\) at lambda = 0. The second form neither overflows nor cancels. Arguments broadcast.
    Source: arXiv 2605.09213, Lemma 1.4.

    Args:
        sigma: query positions in (0, 1].
        sigma0: source positions in (0, sigma].
        lam: decay lambda >= 0.

    Raises:
        InvalidInput: an argument is out of range.

    >>> float(log_warp_ratio(1.0, 0.5, lam=1.0).round(6))
    0.974077
    """
    at, lam = fraction("sigma", sigma), at_least_zero("lam", lam)
    from_ = source(sigma0, at)
    broadcast_shape(sigma=at, sigma0=from_, lam=lam)
    return plain(warp_distance(at, from_, lam))


def source_at(distance: Numbers, *, lam: Numbers) -> Values:
    r"""The source position at a given distance from the end: \(\sigma_0\) with \(Y(1; \sigma_0) = y\),

    \[ \sigma_0 = \frac1\lambda \log\left(1 + (e^\lambda - 1) e^{-y}\right), \qquad e^{-y} \text{ at } \lambda = 0. \]

    Arguments broadcast. Source: derived here, the inverse of ``log_warp_ratio``.

    Args:
        distance: y >= 0.
        lam: decay lambda >= 0.

    Raises:
        InvalidInput: an argument is out of range.
    """
    y, decay = at_least_zero("distance", distance), at_least_zero("lam", lam)
    broadcast_shape(distance=y, lam=decay)
    return plain(source_position(y, decay))


def kernel_mass(sigma: Values, lam: Values) -> Array:
    r"""\(B(\sigma) = \int_0^\sigma e^{-\lambda x} dx = (1 - e^{-\lambda\sigma})/\lambda\)."""
    from scipy.special import exprel

    return np.asarray(sigma * exprel(-lam * sigma))


def warp_distance(
    sigma: Values, sigma0: Values, lam: Values
) -> Array:
    """``log_warp_ratio`` of checked arguments; rounding never makes it negative."""
    ratio = kernel_mass(sigma, lam) / kernel_mass(sigma0, lam)
    return np.asarray(np.maximum(lam * (sigma - sigma0) + np.log(ratio), 0.0))


def source_position(y: Values, lam: Values) -> Array:
    r"""``source_at`` of checked arguments: \(v \log(1 + v)/v\) up to lambda = 1, with \(v = (e^\lambda-1) e^{-y}\), and
    \(\log(1 + e^{\log v})\) above, where v may leave float64.
    """
    from scipy.special import exprel

    mild, steep = np.minimum(lam, 1.0), np.maximum(lam, 1.0)
    v = np.maximum(np.expm1(mild) * np.exp(-y), 1e-300)
    small = exprel(mild) * np.exp(-y) * (np.log1p(v) / v)
    large = np.logaddexp(0.0, steep + np.log(-np.expm1(-steep)) - y) / steep
    return np.asarray(np.where(lam <= 1, small, large))
