r"""The second moments \(E[A_{ij}A_{kl}]\) of attention over tokens that repeat, in factors for matrix products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from catenary.theory.repeats.band import Seen, Square
from catenary.theory.repeats.between import Between, Interpolated, Over, pairs, single
from catenary.theory.repeats.likeness import Likeness, fullest
from catenary.theory.repeats.rows import Levels, RowTables

ROUNDS = 3
"""Steps of the fixed point for o: 3 and 40 give the same profile to 2e-4 dex."""

RELATIVE = (0.0, 0.5**1.5, 1.0)
"""Correlations of two queries at which moments are evaluated, over the largest that occurs. With ten nodes instead the
profile moves by less than .001 dex per class of tokens."""


@dataclass(frozen=True, eq=False)
class Factors:
    r"""Second moments at one correlation \(\rho\) of the queries i and k, in factors for every token that they see.

    \[E[A_{ij}A_{kl}] = \frac{o_{ij}o_{kl} + h_{ij}h_{kl}M_{jl} + \delta_{jl}b_{ij}b_{kl}}{N_{ik}},\quad
      M_{jl} = e^{y(X_{jl}-b)/(1-b)} - 1,\]

    with z in the place of h for what reaches the scores, and N such that they sum to 1. For two copies the numerator
    is \(a_{ij}a_{kl}(1 + C)\), \(C = \rho(u\ell)^{1-\rho}S^\rho\) with \(u = v(1-b)\), the participation \(\ell\) and
    the spread S of ``Levels``: exact to first order in \(\rho\) (Price's theorem) and at \(\rho = 1\). o is what the
    sums over l leave, \(\sum_lE[A_{ij}A_{kl}] = a_{ij}\):

    \[o = a\omega,\quad \omega_{ij}\textstyle\sum_la_{il}\omega_{il} + a_{T}(1 + C - \omega_{ij}^2) = 1.\]

    ``exponent`` is y, ``mean`` o, ``copies`` h, ``scores`` z, ``beyond`` b.
    """

    exponent: float
    mean: Seen
    copies: Seen
    scores: Seen
    beyond: Seen

    @classmethod
    def at(
        cls, rho: float, levels: Levels, background: Float[np.ndarray, " n"], mean: Seen, tables: RowTables
    ) -> Factors:
        """The factors at one correlation, a being the mean attention ``mean``."""
        seen, dtype = tables.seen, mean.dtype.type
        u = tables.variance * (1 - background)
        weak = (seen.each(u, dtype) * levels.participation) ** (1 - rho)
        weak *= rho
        spread = levels.spread**rho
        both = weak * spread
        exponent = math.log1p(rho * float(u[fullest(seen)]) ** (1 - rho) * math.expm1(tables.copies) ** rho)
        top = math.expm1(exponent)
        own = levels.share * both
        om = 1 - own + 0.5 * seen.each(seen.total(mean * own), dtype)
        both += 1
        for _ in range(ROUNDS):
            np.clip(om, 0.02, 1.5, out=om)
            copied = np.minimum(levels.share * np.maximum(both - om * om, 0), 0.95)
            om += (1 - copied) / seen.each(seen.total(mean * om), dtype)
            om *= 0.5
        copies = mean * np.sqrt(np.maximum(both - om * om, 1e-12) / top)
        answer = levels.response ** (2 - 2 * rho) * levels.score**rho
        scores = mean * np.sqrt(np.maximum(answer - levels.response**2, 1e-12) / top)
        beyond = mean * np.sqrt(weak * np.maximum(levels.own**rho - spread, 0))
        return cls(exponent, mean * om, copies, scores, beyond)


@dataclass(frozen=True, eq=False)
class Pull:
    """The factors of one correlation as matrices of queries and tokens; ``excess`` is M."""

    excess: Square
    mean: Interpolated
    copies: Interpolated
    scores: Interpolated
    beyond: Interpolated

    @classmethod
    def at(cls, rho: float, levels: Levels, likeness: Likeness, mean: Seen, tables: RowTables) -> Pull:
        """The factors at one correlation, as matrices."""
        factors = Factors.at(rho, levels, likeness.background, mean, tables)
        parts = factors.mean, factors.copies, factors.scores, factors.beyond
        seen = likeness.seen
        return cls(likeness.excess(factors.exponent), *(Interpolated(seen.unpack(part), seen) for part in parts))

    def means(self, x: Square) -> Float[np.ndarray, "rows rows"]:
        """The mean of x_{jl} over the attention of two different queries."""
        return np.asarray(self._sums(x, self.excess * x, x.diagonal(), pairs) / self.norm)

    def own_means(self, x: Square) -> Float[np.ndarray, " rows"]:
        """The same over the attention of one query."""
        return np.asarray(self._sums(x, self.excess * x, x.diagonal(), single) / self.own_norm)

    @cached_property
    def norm(self) -> Float[np.ndarray, "rows rows"]:
        """N for two different queries."""
        return self._norm(pairs)

    @cached_property
    def own_norm(self) -> Float[np.ndarray, " rows"]:
        """N for a query with itself."""
        return self._norm(single)

    def _norm(self, over: Over) -> Between:
        o, h, b = self.mean.values, self.copies, self.beyond.values
        whole = o.sum(axis=1, keepdims=True)
        return np.asarray(over(whole, whole) + over(h.at(self.excess), h.values) + over(b, b))

    def _sums(self, x: Square, excess: Square, same: Float[np.ndarray, " n"], over: Over) -> Between:
        o, h, b = self.mean, self.copies, self.beyond.values
        return np.asarray(over(o.at(x), o.values) + over(h.at(excess), h.values) + over(b * same, b))


def correlations(cosine: Square) -> list[tuple[float, Square]]:
    """Three correlations of different queries, and the weight of each pair of queries on them."""
    apart = np.clip(cosine, 0, 1)
    np.fill_diagonal(apart, 0)
    low, middle, high = (max(float(apart.max()), 1e-3) * part for part in RELATIVE)
    first = np.maximum(1 - apart / apart.dtype.type(middle), 0)
    last = np.maximum((apart - apart.dtype.type(middle)) / apart.dtype.type(high - middle), 0)
    between = 1 - first
    between -= last
    for weight in (first, between, last):
        np.fill_diagonal(weight, 0)
    return [(low, first), (middle, between), (high, last)]
