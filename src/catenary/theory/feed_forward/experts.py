r"""Mixtures of experts at birth: the random weights that a router gives its experts, as kernels of the correlation.

A router's logits z are Gaussian, independent between experts, and have the correlation rho of the two tokens. The
weights \(g_e(z)\) multiply independent networks, so only \(W(\rho) = \sum_e E[g_e(z)g_e(z')]\) matters forward, and
\(S(\rho) = d\sigma_r^2\sum_{e,f}E[\partial_fg_e(z)\,\partial_fg_e(z')]\) for the gradient through the router.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float32, Float64
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import expit

from catenary.architecture import Experts
from catenary.errors import NotApplicable, invalid
from catenary.theory.feed_forward.hermite import Array, Series, horner
from catenary.theory.feed_forward.kernels import Kernel, times

Logits = Float32[np.ndarray, "draws experts"]
Chosen = Bool[np.ndarray, "draws experts"]

DRAWN_LOGITS = 1 << 20
"""Logits drawn per correlation. The kernels then err by less than 1 % (8 experts) to 2 % (256, at correlations where
two tokens rarely share an expert), and by less than .5 % at rho = 1; ``test_experts`` measures it."""

ANGLES = np.pi / 2 * (1 - np.cos((np.arange(19) + 1) * math.pi / 20))
"""Angles arccos(rho) at which the kernels are sampled besides 0 (equal tokens) and pi/2 (independent ones)."""

EQUAL = 1 - 1e-10
"""Correlations above this are those of a token with itself. An angle is a root: a rounding of 1e-16 would be 1e-8 in
it, 1e-4 one layer on, 1e-2 after that, and tokens would no longer be like themselves."""

LEVELS = 0.02
"""Relative step of the input variances that get a table of their own; W changes by .03 % between two."""

DEGREE = 12
"""Degree of the kernels as polynomials in the angle: a choice's kernel has a cusp at rho = 1, and is smooth in it."""


@dataclass(frozen=True, eq=False)
class Angular:
    r"""A kernel \(\sum_k c_k t^k\), \(t = 1 - 2\theta/\pi\), \(\theta = \arccos\rho\)."""

    coefficients: Float64[np.ndarray, " terms"]

    def __call__(self, rho: Array) -> Array:
        """The sum, by Horner's rule; shape of ``rho``."""
        angle = np.arccos(np.where(rho > EQUAL, 1, np.maximum(rho, -1)))
        return horner(self.coefficients, 1 - angle * (2 / math.pi))


@dataclass(frozen=True)
class Weights:
    """Random weights on a branch's output: their kernel, and that of their gradient with respect to the input."""

    value: Kernel
    slope: Kernel


def routing(experts: Experts, variance: float, level: float = 1.0, power: float = 1.0) -> Weights:
    r"""W and S of a router with logits of variance ``variance * level``.

    With s the score of a logit, \(\ell = s'/s\) and \(P_f = s_f/\sum s\) over the set that the weights are divided by
    (all experts, the chosen ones, or none, with P = 0), \(g_e = \text{scale}\cdot s_e/\sum s\) for chosen e and

    \[\partial_f g_e = g_e(\delta_{ef} - P_f)\,\ell_f .\]

    The choice itself has no gradient, as in automatic differentiation. W and S are seeded averages over drawn logits
    at 21 angles, and between them polynomials in the angle. A router of zero weights gives every token the same
    experts, whichever a tie picks, equally weighed, and no gradient. With ``power`` p undivided scores are raised to
    it: \(g_e = s_e^p\).

    Raises:
        InvalidInput: more chosen experts than there are.
        NotApplicable: a power of weights that are divided by a sum.
    """
    if power != 1.0 and (experts.normalised or experts.score.startswith("softmax")):
        raise NotApplicable("weights on the experts' inputs have a law only where they are not divided by their sum")
    if not 1 <= experts.top <= experts.count:
        raise invalid("experts.top", f"must be in 1..{experts.count}", experts.top)
    if experts.count % experts.groups or not 1 <= experts.top_groups <= experts.groups:
        raise invalid("experts.groups", f"must divide {experts.count} and be >= top_groups", experts.groups)
    level = math.exp(LEVELS * round(math.log(level) / LEVELS))
    if variance == 0:
        return _tied(experts, power)
    return _sampled(experts, variance, level, power)


@lru_cache(maxsize=64)
def _sampled(experts: Experts, variance: float, level: float, power: float) -> Weights:
    draws = max(2048, DRAWN_LOGITS // experts.count)
    generator = np.random.default_rng(20260311)
    first, second = (generator.standard_normal((draws, experts.count), dtype=np.float32) for _ in range(2))
    scale = np.float32(math.sqrt(variance * level))
    base = _route(experts, scale * first, power)
    samples = [_pair(base, _route(experts, scale * _mixed(first, second, angle), power)) for angle in ANGLES]
    ends = [_pair(base, base), _independent(base, experts.groups)]
    angles = np.concatenate(([0.0, math.pi / 2], ANGLES))
    value, slope = np.array(ends + samples).T
    if experts.score == "one":
        return Weights(_smooth(angles, value), Series(np.zeros(1)))
    return Weights(_smooth(angles, value), times(variance, _smooth(angles, slope)))


def _tied(experts: Experts, power: float) -> Weights:
    """The weights of a router whose logits are all 0."""
    score = {"sigmoid": 0.5, "sqrtsoftplus": math.sqrt(math.log(2))}.get(experts.score, 1.0)
    over = {"softmax": experts.count, "softmax-top": experts.top}.get(experts.score, 1.0)
    weight = experts.scale * (1 / experts.top if experts.normalised else (score / over) ** power)
    return Weights(Series(np.array([experts.top * weight**2])), Series(np.zeros(1)))


@dataclass(frozen=True, eq=False)
class _Routed:
    """Weights g of drawn logits, the shares P they were divided by (None without), and the scores' ell (None for 1)."""

    weights: Logits
    shares: Logits | None
    slopes: Logits | None


def _route(experts: Experts, logits: Logits, power: float) -> _Routed:
    chosen = _choice(experts, logits)
    scores = _scores(experts, logits)
    slopes: Logits | None = None
    if experts.score == "sigmoid":
        slopes = 1 - scores
    elif experts.score == "sqrtsoftplus":
        slopes = expit(logits) / (2 * scores**2)
    kept = np.where(chosen, scores, np.float32(0))
    if experts.normalised or experts.score == "softmax-top":
        shares = kept / kept.sum(axis=1, keepdims=True)
        weights = shares
    elif experts.score == "softmax":
        shares = scores / scores.sum(axis=1, keepdims=True)
        weights = np.where(chosen, shares, np.float32(0))
    else:
        shares, weights = None, kept if power == 1.0 else kept ** np.float32(power)
        slopes = None if slopes is None else np.float32(power) * slopes
    return _Routed(np.float32(experts.scale) * weights, shares, slopes)


def _scores(experts: Experts, logits: Float32[np.ndarray, " *shape"]) -> Float32[np.ndarray, " *shape"]:
    """The score of each logit before any division: 1, its sigmoid, the root of its softplus, or its exponential."""
    if experts.score == "one":
        return np.ones_like(logits)
    if experts.score == "sigmoid":
        return np.asarray(expit(logits))
    if experts.score == "sqrtsoftplus":
        return np.asarray(np.sqrt(np.logaddexp(np.float32(0), logits)))
    return np.asarray(np.exp(logits))


def _choice(experts: Experts, logits: Logits) -> Chosen:
    """The top experts of each token, from its best groups."""
    if experts.groups > 1:
        logits = np.where(_open(experts, logits), logits, -np.float32(np.inf))
    if experts.top == experts.count:
        return np.ones(logits.shape, dtype=bool)
    return logits >= _highest(logits, experts.top)


def _open(experts: Experts, logits: Logits) -> Chosen:
    """Whether an expert's group is among the best, by the sum of its two highest scores or by its highest."""
    grouped = logits.reshape(len(logits), experts.groups, -1)
    scores = _scores(experts, grouped)
    best = 2 if experts.group_score == "pair" and grouped.shape[2] > 1 else 1
    quality = np.partition(scores, -best, axis=2)[:, :, -best:].sum(axis=2)
    chosen = quality >= _highest(quality, experts.top_groups)
    return np.repeat(chosen, grouped.shape[2], axis=1)


def _highest(values: Float32[np.ndarray, "draws n"], rank: int) -> Float32[np.ndarray, "draws 1"]:
    """The ``rank``-th highest value of each row."""
    size = values.shape[1]
    return np.partition(values, size - rank, axis=1)[:, size - rank, None]


def _mixed(first: Logits, second: Logits, angle: float) -> Logits:
    return np.float32(math.cos(angle)) * first + np.float32(math.sin(angle)) * second


def _pair(a: _Routed, b: _Routed) -> Float64[np.ndarray, " 2"]:
    """The averages of sum_e g g' and of sum_{e,f} d_f g_e d_f g'_e over the draws."""
    both = a.weights * b.weights
    ones = np.float32(1)
    own = ones if a.slopes is None or b.slopes is None else a.slopes * b.slopes
    slope = both * own
    if a.shares is not None and b.shares is not None:
        slope = slope * (ones - a.shares - b.shares)
        common = (a.shares * b.shares * own).sum(axis=1, dtype=np.float64)
        shared = float((both.sum(axis=1, dtype=np.float64) * common).mean())
    else:
        shared = 0.0
    count = len(both)
    return np.array([both.sum(dtype=np.float64) / count, slope.sum(dtype=np.float64) / count + shared])


def _independent(a: _Routed, groups: int) -> Float64[np.ndarray, " 2"]:
    """The same for two independent tokens, from the means over experts, which are alike, and over pairs of experts.

    Pairs of one group are alike, and pairs of two groups.
    """
    count, experts = a.weights.shape
    value = (a.weights.sum(dtype=np.float64) / count) ** 2 / experts
    own = a.weights if a.slopes is None else a.weights * a.slopes
    if a.shares is None:
        return np.array([value, (own.sum(dtype=np.float64) / count) ** 2 / experts])
    kept = a.shares if a.slopes is None else a.shares * a.slopes
    slopes = -(a.weights.T @ kept).astype(np.float64) / count  # the mean of d_f g_e, row e, without its delta
    slopes[np.diag_indices(experts)] += own.sum(axis=0, dtype=np.float64) / count
    group = np.arange(experts) // (experts // groups)
    diagonal, together = np.eye(experts, dtype=bool), group[:, None] == group
    kinds = (diagonal, together & ~diagonal, ~together)
    return np.array([value, sum(kind.sum() * slopes[kind].mean() ** 2 for kind in kinds if kind.any())])


def _smooth(angles: Float64[np.ndarray, " n"], samples: Float64[np.ndarray, " n"]) -> Angular:
    """The polynomial in the angle nearest to the samples in relative error, held to the two that are no pair draws."""
    if not samples.any():
        return Angular(np.zeros(1))
    t = 1 - 2 * angles / math.pi
    weights = 1 / np.maximum(samples, 0.02 * samples[0])
    weights[:2] *= 30
    fitted = Chebyshev.fit(t, samples, DEGREE, domain=[-1, 1], w=weights)
    return Angular(fitted.convert(kind=Polynomial).coef)
