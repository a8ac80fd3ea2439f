r"""The second moments \(E[A_{ij}A_{kl}]\) of attention over tokens that repeat, in factors for matrix products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int64

from catenary.theory.positions.pairs import Matrix
from catenary.theory.repeats.band import Band, Seen, Square
from catenary.theory.repeats.rows import Levels, Likeness, RowTables

ROUNDS = 3
"""Steps of the fixed point for o: 3 and 40 give the same profile to 2e-4 dex."""

GRID_STEP = 0.06
"""Step in ln i between queries at which smooth functions of two queries are evaluated."""

GRID_FROM = 128
"""Length up to which every query is evaluated."""

RELATIVE = (0.0, 0.5**1.5, 1.0)
"""Correlations of two queries at which moments are evaluated, over the largest that occurs. With ten nodes instead the
profile moves by less than .001 dex per class of tokens."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Queries at which smooth functions of queries are evaluated, and their linear interpolation to all queries."""

    rows: Int64[np.ndarray, " rows"]
    hats: Float[np.ndarray, "n rows"] | None

    @classmethod
    def of(cls, seen: Band, dtype: type) -> Grid:
        """A grid that thins out in proportion to the position, with 32 single queries in front and 8 at the end."""
        if seen.length <= GRID_FROM:
            return cls(np.arange(seen.length), None)
        rows = seen.chosen(GRID_STEP, 32, 8)
        return cls(rows, _hats(seen.progress[rows], seen.progress).astype(dtype))

    def both(self, values: Float[np.ndarray, "rows rows"]) -> Square:
        """From pairs of the grid to all pairs."""
        return values if self.hats is None else self.hats @ values @ self.hats.T

    def each(self, values: Float[np.ndarray, " rows"]) -> Float[np.ndarray, " n"]:
        """From the grid to all queries."""
        return values if self.hats is None else self.hats @ values


@lru_cache(maxsize=4)
def grid(seen: Band, dtype: type) -> Grid:
    """The grid of a band, made once."""
    return Grid.of(seen, dtype)


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
        exponent = math.log1p(rho * float(u[-1]) ** (1 - rho) * math.expm1(tables.copies) ** rho)
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
    mean: Square
    copies: Square
    scores: Square
    beyond: Square

    @classmethod
    def at(cls, rho: float, levels: Levels, likeness: Likeness, mean: Seen, tables: RowTables) -> Pull:
        """The factors at one correlation, as matrices."""
        factors = Factors.at(rho, levels, likeness.background, mean, tables)
        excess = np.exp(mean.dtype.type(factors.exponent) * likeness.relative.astype(mean.dtype)) - 1
        parts = factors.mean, factors.copies, factors.scores, factors.beyond
        return cls(excess, *map(likeness.seen.unpack, parts))

    def means(self, x: Square, at: Grid) -> Float[np.ndarray, "rows rows"]:
        """The mean of x_{jl} over the attention of two different queries of the grid."""
        o, h, b = (part[at.rows] for part in (self.mean, self.copies, self.beyond))
        found = (o @ x) @ o.T + (h @ (self.excess * x)) @ h.T + (b * x.diagonal()) @ b.T
        return np.asarray(found / self.norm(at))

    def own_means(self, x: Square, at: Grid) -> Float[np.ndarray, " rows"]:
        """The same over the attention of one query."""
        o, h, b = (part[at.rows] for part in (self.mean, self.copies, self.beyond))
        found = ((o @ x) * o + (h @ (self.excess * x)) * h + b * b * x.diagonal()).sum(axis=1)
        return np.asarray(found / self.own_norm(at))

    def norm(self, at: Grid) -> Float[np.ndarray, "rows rows"]:
        """N for two different queries of the grid."""
        o, h, b = (part[at.rows] for part in (self.mean, self.copies, self.beyond))
        whole = o.sum(axis=1)
        return np.asarray(np.outer(whole, whole) + (h @ self.excess) @ h.T + b @ b.T)

    def own_norm(self, at: Grid) -> Float[np.ndarray, " rows"]:
        """N for a query with itself."""
        o, h, b = (part[at.rows] for part in (self.mean, self.copies, self.beyond))
        return np.asarray(o.sum(axis=1) ** 2 + ((h @ self.excess) * h + b * b).sum(axis=1))


def correlations(cosine: Matrix, dtype: type) -> list[tuple[float, Square]]:
    """Three correlations of different queries, and the weight of each pair of queries on them."""
    apart = np.clip(cosine, 0, 1)
    np.fill_diagonal(apart, 0)
    nodes = max(float(apart.max()), 1e-3) * np.array(RELATIVE)
    weights = []
    for rho, unit in zip(nodes, np.eye(nodes.size), strict=True):
        weight = np.interp(apart, nodes, unit).astype(dtype)
        np.fill_diagonal(weight, 0)
        weights.append((float(rho), weight))
    return weights


def _hats(nodes: Float[np.ndarray, " nodes"], x: Float[np.ndarray, " x"]) -> Float[np.ndarray, "x nodes"]:
    """Weights of linear interpolation."""
    return np.stack([np.interp(x, nodes, unit) for unit in np.eye(nodes.size)], axis=1)
