r"""Moments of a softmax over n independent Gaussian logits, exact by one-dimensional integrals.

They say how unevenly attention at birth spreads over keys when the logits have variance u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Real

from catenary.errors import invalid

LOG_STEP = 0.25
"""Trapezoid step in ln t. The integrands decay like Gamma functions on the imaginary axis, so the error is of order
exp(-pi^2/step) times a power: below 1e-13."""

LARGEST = 100.0
"""Largest variance: exp(t e^z) overflows beyond about 120."""

REACH = 8.5
"""How far the Gaussian average reaches, in standard deviations: exp(-REACH^2/2) < 1e-15."""

def common_nodes(common: float, softcap: float | None) -> int:
    """Gauss-Hermite nodes for the logits' common part, for moments to .5 % at variances up to 10."""
    if softcap is not None and common > (softcap / 3) ** 2:
        return 25
    return 5 if common <= 2 else 11


@dataclass(frozen=True)
class RowLaw:
    r"""What else decides the softmax of a row: \(A_j = e^{f(z_j)}/(e^s + \sum_l e^{f(z_l)})\).

    Attributes:
        softcap: c of \(f(z) = c\tanh(z/c)\); None for f(z) = z.
        sink: s, the fixed logit of one more entry; None for none.
        total: the logits' full variance; what it has beyond u is common to all keys, which cancels unless there is a
            cap or a sink. None: equal to u.
    """

    softcap: float | None = None
    sink: float | None = None
    total: float | None = None


PLAIN = RowLaw()


@dataclass(frozen=True, eq=False)
class SoftmaxMoments:
    r"""For A = softmax(f(z)), z_1..z_n iid N(0, u); arrays over (n, u).

    ``mean`` is \(E A_1\) (1/n without a sink), ``second`` is \(m_2 = E[A_1^2]\), ``response`` is
    \(E[\partial A_1/\partial z_1] = E[A_1(1 - A_1)f'(z_1)]\), ``key`` is
    \(\kappa = E\sum_j(\partial A_j/\partial z_1)^2 = E[A_1^2(1 - 2A_1 + \sum_j A_j^2)f'(z_1)^2]\). Beside a sink the
    row sums scatter: ``pair`` is \(E[A_1A_2]\), ``whole`` is \(E[(\partial\sum_jA_j/\partial z_1)^2]\), 0 without one.
    """

    mean: Float64[np.ndarray, "N U"]
    second: Float64[np.ndarray, "N U"]
    response: Float64[np.ndarray, "N U"]
    key: Float64[np.ndarray, "N U"]
    pair: Float64[np.ndarray, "N U"]
    whole: Float64[np.ndarray, "N U"]


def softmax_moments(
    counts: Real[np.ndarray, " N"], variances: Real[np.ndarray, " U"], law: RowLaw = PLAIN
) -> SoftmaxMoments:
    r"""Moments of a softmax over n iid N(0, u) logits, on the grid ``counts`` x ``variances``.

    With \(\varphi(t) = E e^{-t e^{f(z)}}\) and \(P = \sum_j p_j\),

    \[E\prod_j A_j^{p_j} = \frac1{\Gamma(P)}\int_0^\infty t^{P-1}e^{-te^s}\prod_j(-1)^{p_j}\varphi^{(p_j)}(t)\,
      \varphi^{n-\#}(t)\,dt ,\]

    by trapezoid sums in ln t and in z; without a sink \(e^{-te^s}\) is 1, and all are divided by the same sum for
    \(nE A_1 = 1\). A factor \(f'(z_1)\) joins the average over \(z_1\). Since \(\varphi\) does not depend on n, all
    counts share one evaluation. Relative error of order 1e-16 n (rounding of \(\varphi\) near 1): 1e-13 at n = 1000,
    1e-10 at 10^7. n need not be whole: the formula continues it. Derived here.

    Args:
        counts: n >= 1, shape (N,).
        variances: u in [0, 100], shape (U,).
        law: a soft-cap and a sink, if any.

    Returns:
        Arrays of shape (N, U).

    Raises:
        InvalidInput: for n < 1, or u outside [0, 100].
    """
    counts, variances = np.atleast_1d(counts).astype(float), np.atleast_1d(variances).astype(float)
    if not (counts >= 1).all():
        raise invalid("counts", "must be >= 1", float(counts.min()))
    if not ((variances >= 0) & (variances <= LARGEST)).all():
        outside = variances[~((variances >= 0) & (variances <= LARGEST))]
        raise invalid("variances", "must be in [0, 100]", float(outside[0]))
    shape = (6, counts.size, variances.size)
    moments = np.empty(shape)
    for column, variance in enumerate(variances):
        moments[:, :, column] = _averaged(counts, float(variance), law)
    return SoftmaxMoments(*moments)


def _averaged(n: Float64[np.ndarray, " N"], variance: float, law: RowLaw) -> Float64[np.ndarray, "6 N"]:
    """All moments at one variance, averaged over the logits' common part where it does not cancel."""
    common = 0.0 if law.total is None else max(law.total - variance, 0.0)
    if common == 0 or (law.softcap is None and law.sink is None):
        return _moments_at(n, variance, 0.0, law)
    nodes, weights = np.polynomial.hermite_e.hermegauss(common_nodes(common, law.softcap))
    weights = weights / weights.sum()
    shifts = math.sqrt(common) * nodes
    return np.asarray(sum(w * _moments_at(n, variance, float(z), law) for w, z in zip(weights, shifts, strict=True)))


def _moments_at(
    n: Float64[np.ndarray, " N"], variance: float, shift: float, law: RowLaw
) -> Float64[np.ndarray, "6 N"]:
    """All moments for all counts at one variance, the logits' mean being ``shift``."""
    if variance == 0:
        return _equal_logits(n, shift, law)
    std = math.sqrt(variance)
    log_t = _log_nodes(float(n.max()), std, abs(law.sink or 0.0) + abs(shift))
    # Trapezoid in z: the factor exp(-e^y) e^{py} decays like exp(-pi k/2) at wave number k = 2 pi/(step std), so
    # step = 0.3/std gives exp(-33); a narrow Gaussian alone needs step <= 0.4.
    z = np.arange(-REACH, REACH + 4 * std, min(0.4, 0.3 / std))
    weights = np.exp(-0.5 * z**2)
    weights /= weights.sum()
    capped, slope = _capped(shift + std * z, law.softcap), _slope(shift + std * z, law.softcap)
    plain = _laplace(log_t, capped, weights)
    once = plain if law.softcap is None else _laplace(log_t, capped, weights * slope)
    twice = plain if law.softcap is None else _laplace(log_t, capped, weights * slope**2)
    log_phi = np.log(plain[0])
    fixed = np.zeros_like(log_t) if law.sink is None else -np.exp(log_t + law.sink)
    others = np.exp((n[:, None] - 1) * log_phi + fixed)
    two_less = np.exp((n[:, None] - 2) * log_phi + fixed)
    total = n * (others @ plain[1]) if law.sink is None else np.full_like(n, 1 / LOG_STEP)
    mean = others @ plain[1] / total
    second = others @ plain[2] / total
    response = (others @ once[1] - others @ once[2]) / total
    two, three, four = (others @ twice[p] / math.gamma(p) for p in (2, 3, 4))
    key = (two - 2 * three + four + (n - 1) * (two_less @ (twice[2] * plain[2])) / math.gamma(4)) / total
    pair = two_less @ plain[1] ** 2 / total
    whole = others @ (twice[2] * fixed**2) / math.gamma(4) / total
    return np.stack([mean, second, response, key, pair, whole])


def _equal_logits(n: Float64[np.ndarray, " N"], shift: float, law: RowLaw) -> Float64[np.ndarray, "6 N"]:
    """The moments of a row whose logits are all ``shift``."""
    at = np.array([shift])
    slope = float(_slope(at, law.softcap)[0])
    fixed = 0.0 if law.sink is None else math.exp(law.sink - float(_capped(at, law.softcap)[0]))
    p = 1 / (n + fixed)
    key, whole = p**2 * (1 - 2 * p + n * p**2) * slope**2, (p * (1 - n * p) * slope) ** 2
    return np.stack([p, p**2, p * (1 - p) * slope, key, p**2, whole])


def _capped(z: Float64[np.ndarray, " Z"], softcap: float | None) -> Float64[np.ndarray, " Z"]:
    """f(z)."""
    return z if softcap is None else softcap * np.tanh(z / softcap)


def _slope(z: Float64[np.ndarray, " Z"], softcap: float | None) -> Float64[np.ndarray, " Z"]:
    """f'(z)."""
    return np.ones_like(z) if softcap is None else 1 - np.tanh(z / softcap) ** 2


def _log_nodes(largest: float, std: float, wide: float) -> Float64[np.ndarray, " T"]:
    r"""Nodes in ln t that cover where \(t^P\varphi^{(p)}\varphi^{n-\#}\) lives, from n = ``largest`` down to 1.

    The sum of exponentials lies between e^z of one typical logit and n e^{REACH std}; t is about its inverse, down
    to e^{-34} of it, because the integrand falls only like t on that side. A sink's s and a shift of all logits
    widen both ends by their size, ``wide``.
    """
    low = -math.log(largest) - REACH * std - 34 - wide
    high = REACH * std + 4 + wide
    return np.arange(low, high, LOG_STEP)


def _laplace(
    log_t: Float64[np.ndarray, " T"], z: Float64[np.ndarray, " Z"], weights: Float64[np.ndarray, " Z"]
) -> Float64[np.ndarray, "5 T"]:
    r"""\(t^p (-1)^p \varphi^{(p)}(t) = E[(te^z)^p e^{-te^z}]\) for p = 0..4."""
    y = np.exp(np.minimum(log_t[:, None] + z, 700))
    term = np.exp(-y)
    rows = [term @ weights]
    for _ in range(4):
        term *= y
        rows.append(term @ weights)
    return np.maximum(rows, 1e-300)
