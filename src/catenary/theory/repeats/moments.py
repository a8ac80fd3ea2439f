r"""Moments of a softmax row in which tokens share logits: copies of one token attend, and are attended to, together.

A row over n tokens holds types T with c_T tokens each; every token of a type has the logit of its type, N(0, u).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int64

from catenary.errors import invalid
from catenary.theory.attention.moments import LARGEST

STEP = 0.25
"""Step in ln t and in ln c. The sums in ln t converge like exp(-pi^2/step); multiplicities between two nodes are cubic
interpolations, which at this step moves the moments by less than 1e-4."""

REACH = 8.5
"""How far Gaussian averages reach, in standard deviations: exp(-REACH^2/2) < 1e-15."""

DEPTH = 24.0
"""How far sums in ln t go below the inverse of the largest row sum: the integrands fall like t there."""

NODES = 32
"""Chebyshev nodes in ln u."""

SMALLEST_KEY = 1e-4
"""Smallest kappa over second moment: below, one type has all attention, and interpolation of logarithms would swing."""

SPAN = 250.0
"""Ratio of the largest to the smallest tabulated variance."""


@dataclass(frozen=True, eq=False)
class RowMoments:
    r"""For one token in a row of n tokens, on a grid of multiplicities c, equally spaced in ln c, shape (bins,).

    ``mean`` is \(\alpha = nE[A]\), ``second`` \(\beta = n^2E[A^2]\), ``key``
    \(\kappa = n^2E[A^2(1 - 2A_T + \sum_{T'}A_{T'}^2)]\), with A the token's attention and \(A_T = cA\) its type's.
    """

    mean: Float64[np.ndarray, " bins"]
    second: Float64[np.ndarray, " bins"]
    key: Float64[np.ndarray, " bins"]


@dataclass(frozen=True, eq=False)
class RowMomentTable:
    r"""\(\varphi\) and its derivatives on a grid of ln t, as polynomials in ln u, for logits z ~ N(0, u).

    With \(\varphi(s) = Ee^{-se^z}\) and \(F(t) = \prod_T\varphi(c_Tt)\),

    \[E A = \int_0^\infty[-\varphi'(ct)]\frac{F}{\varphi(ct)}\,dt,\quad
      E A^2 = \int_0^\infty t\,\varphi''(ct)\frac{F}{\varphi(ct)}\,dt,\]

    and the third and fourth moments alike with \(t^2/2\) and \(t^3/6\); a second type c' contributes
    \(\varphi''(c't)/\varphi(c't)\). Everything is normalised by the same sum for \(\sum_TE A_T = 1\). At
    multiplicity 1 these are the moments of ``softmax_moments``. Derived here.

    Attributes:
        bins: number of multiplicities on the grid, so that the last is >= the longest row.
        log_variance: (lowest, highest) ln u.
        log_terms: \(\ln(-\ln\varphi)\) and \(\ln(t^p|\varphi^{(p)}|/\varphi)\), p = 1..4, shape (NODES, 5, points).
    """

    bins: int
    log_variance: tuple[float, float]
    log_terms: Float64[np.ndarray, "nodes 5 points"]

    @classmethod
    def build(cls, longest: int, variance: float) -> RowMomentTable:
        """The table for rows of up to ``longest`` tokens and u in [variance/250, variance].

        Raises:
            InvalidInput: for a variance outside (0, 100].
        """
        if not 0 < variance <= LARGEST:
            raise invalid("variance", "must be in (0, 100]", variance)
        bins = math.ceil(math.log(max(longest, 2)) / STEP) + 2
        std = math.sqrt(variance)
        low = -math.log(longest) - REACH * std - DEPTH
        log_t = np.arange(math.floor(low / STEP), math.ceil((REACH * std + 4) / STEP) + bins) * STEP
        bounds = math.log(variance / SPAN), math.log(variance)
        variances = np.exp(bounds[0] + (bounds[1] - bounds[0]) * _nodes())
        return cls(bins, bounds, np.stack([_log_terms(log_t, math.sqrt(u)) for u in variances]))

    @property
    def multiplicities(self) -> Float64[np.ndarray, " bins"]:
        """The grid of multiplicities."""
        return np.asarray(np.exp(STEP * np.arange(self.bins)))

    def __call__(
        self,
        multiplicities: Float[np.ndarray, " kinds"],
        variance: float,
        tokens: Float64[np.ndarray, " kinds"] | None = None,
    ) -> RowMoments:
        r"""The moments of a row whose tokens have these multiplicities (each type c_T times the number c_T).

        Multiplicities need not be whole; a token of multiplicity c stands for 1/c of a type.

        Args:
            multiplicities: one per token (or kind of tokens), in [1, n].
            variance: u, in the table's range.
            tokens: how many tokens of each kind; None: one.
        """
        held = np.ones(multiplicities.size) if tokens is None else tokens
        n = float(held.sum())
        if n <= 1:
            one = np.ones(self.bins)
            return RowMoments(one, one, np.full(self.bins, SMALLEST_KEY))
        place = Placement.of(multiplicities, self.bins)
        # Far above the largest multiplicity of the row there is no type to take out of F: the last value is kept.
        last = min(int(place.first.max()) + 5, self.bins)
        bins = place.first + np.arange(4)[:, None]
        spread = np.bincount(bins.ravel(), (held * place.weights).ravel(), self.bins)
        c = self.multiplicities[:last]
        types = spread[:last] / c
        terms = np.tensordot(self._weights(variance), self.log_terms, 1)
        shifted = np.lib.stride_tricks.sliding_window_view(terms, terms.shape[1] - self.bins + 1, axis=1)[:, :last]
        ratio = np.exp(shifted[2])
        # ln F, and the sum over all types of c^2 t^2 phi''(ct)/phi(ct)
        whole, pairs = -types @ np.exp(shifted[0]), types @ ratio
        first, second, third, fourth = (np.exp(whole + shifted[p]).sum(axis=1) for p in (1, 2, 3, 4))
        own = np.exp(whole + shifted[2])
        crossed = np.maximum((own * (pairs - ratio)).sum(axis=1), 0.0)
        norm = types @ first
        key = np.maximum(second - third + (fourth + crossed) / 6, SMALLEST_KEY * second)
        moments = n * first / c, n**2 * second / c**2, n**2 * key / c**2
        return RowMoments(*(np.pad(moment / norm, (0, self.bins - last), mode="edge") for moment in moments))

    def _weights(self, variance: float) -> Float64[np.ndarray, " nodes"]:
        """Barycentric weights of the nodes at ln u."""
        low, high = self.log_variance
        gap = (math.log(variance) - low) / (high - low) - _nodes()
        hit = np.flatnonzero(gap == 0)
        if hit.size:
            return np.asarray(np.eye(NODES)[hit[0]])
        k = np.arange(NODES)
        parts = (-1.0) ** k * np.sin((k + 0.5) * math.pi / NODES) / gap
        return np.asarray(parts / parts.sum())


@dataclass(frozen=True, eq=False)
class Placement:
    """Where values of ln c lie on the grid: the first of four neighbouring bins, and their cubic Lagrange weights."""

    first: Int64[np.ndarray, " *shape"]
    weights: Float[np.ndarray, "bins ..."]

    @classmethod
    def of(cls, multiplicities: Float[np.ndarray, " *shape"], bins: int) -> Placement:
        """The placement of multiplicities >= 1."""
        x = np.log(multiplicities)
        x /= STEP
        first = np.clip(x.astype(np.int64) - 1, 0, bins - 4)
        x -= first
        outer, inner = x * (x - 3), (x - 1) * (x - 2)
        weights = np.empty((4, *x.shape), x.dtype)
        weights[0], weights[1] = inner * (x - 3) / -6, outer * (x - 2) / 2
        weights[2], weights[3] = outer * (x - 1) / -2, inner * x / 6
        return cls(first, weights)


def _nodes() -> Float64[np.ndarray, " nodes"]:
    """Chebyshev nodes of the first kind on (0, 1)."""
    return np.asarray(0.5 * (1 - np.cos((np.arange(NODES) + 0.5) * math.pi / NODES)))


def _log_terms(log_t: Float64[np.ndarray, " points"], std: float) -> Float64[np.ndarray, "5 points"]:
    r"""\(\ln(-\ln\varphi)\) and \(\ln\{E[(te^z)^pe^{-te^z}]/\varphi\}\) for p = 1..4, without under- or overflow."""
    z = np.arange(-REACH, REACH + 4 * std, min(0.4, 0.3 / std))
    weights = np.exp(-0.5 * z**2)
    log_y = log_t[:, None] + std * z
    y = np.exp(np.minimum(log_y, 700))
    exponent = -y - 0.5 * z**2
    rows = []
    for _ in range(5):
        top = exponent.max(axis=1)
        rows.append(top + np.log(np.exp(exponent - top[:, None]).sum(axis=1)))
        exponent = exponent + log_y
    # Near t = 0, where phi is 1, its logarithm comes from 1 - phi.
    missing = -np.expm1(-y) @ weights / weights.sum()
    small = -np.log1p(-np.minimum(missing, 0.5))
    large = math.log(weights.sum()) - rows[0]
    return np.stack([np.log(np.where(missing < 0.5, small, large)), *(row - rows[0] for row in rows[1:])])
