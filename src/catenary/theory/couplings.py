r"""How attention scores fluctuate at birth, and how strongly: three couplings behind one call.

The mean attention is uniform. Its fluctuations have logit variance v per head, and add to the covariance of two
tokens' attention outputs. A coupling says by how much, for every pair of queries (i, k).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Attention
from catenary.errors import NotApplicable
from catenary.registry import Registry
from catenary.theory.moments import LARGEST, softmax_moments
from catenary.theory.pairs import Pairs, Vector, constant


@dataclass(frozen=True, eq=False)
class Fluctuation:
    r"""The coefficients of the fluctuation terms for queries (i, k); arrays broadcast against (n, n) and (n,).

    ``value`` is \(S^{val}\) (of the averaged values), ``score`` is \(S^{sc}\) (of the keys and queries), ``overlap``
    is U (overlap \(\pm 1/\sqrt d\) of unrelated tokens), None at infinite width.
    """

    value: Pairs
    score: Pairs
    overlap: Pairs | None


@runtime_checkable
class Coupling(Protocol):
    """From the tokens' correlation R and its mean A R A^T to a layer's fluctuation, None where there is none."""

    def __call__(self, correlation: Pairs, mean: Pairs) -> Fluctuation | None:
        """The fluctuation terms of one layer."""
        ...


@dataclass(frozen=True)
class Uniform:
    """No fluctuation: every head attends uniformly. Exact for v = 0."""

    def __call__(self, correlation: Pairs, mean: Pairs) -> None:
        """Nothing to add."""


@dataclass(frozen=True)
class FirstOrder:
    r"""First order in the logit variance: \(S^{val} = S^{sc} = v\), U = 0.

    Error O(v): .003 to .03 dex of the profile for v <= .25, .1 to .2 dex at v = 2.7. Derived here.
    """

    variance: float

    def __call__(self, correlation: Pairs, mean: Pairs) -> Fluctuation:
        """The constant v for every pair of queries."""
        return Fluctuation(constant(self.variance), constant(self.variance), None)


@dataclass(frozen=True, eq=False)
class Strong:
    r"""Any logit variance: exact softmax moments for equal queries, a participation factor for different ones.

    With \(\rho_i = (i(ARA^\top)_{ii} - 1)/(i-1)\), \(u_i = v(1-\rho_i)\) and the moments of ``softmax_moments``,

    \[\lambda_i = \frac{i(1 - i\,m_2)}{i-1},\quad S^{val}_{ii} = \frac{(m_2 - i^{-2})i^3}{(i-1)(1-\rho_i)},\quad
      S^{sc}_{ii} = v\kappa\frac{i^3}{i-1},\]
    \[S^x_{ik} = (v\lambda_i\lambda_k)^{1-R_{ik}}(S^x_{ii}S^x_{kk})^{R_{ik}/2},\quad
      U_{ik} = \frac{v\lambda_i\lambda_k}{d}(1-\tfrac1i)(1-\tfrac1k)(1-(ARA^\top)_{ik})^2 .\]

    Exact for \(R_{ik} = 0\) and 1 at infinite width; within a few per cent between. As v -> 0 and d -> infinity it
    is ``FirstOrder``. Derived here.

    Attributes:
        variance: v, the variance of one attention logit.
        counts: i, how many tokens each query sees.
        sizes: how many positions each query group holds.
        moments: the softmax moments at these counts.
        width: d, or None for infinite width (U = 0).
    """

    variance: float
    counts: Vector
    sizes: Vector
    moments: MomentTable
    width: int | None

    def __call__(self, correlation: Pairs, mean: Pairs) -> Fluctuation:
        """S^val, S^sc and U of one layer."""
        i, v = self.counts, self.variance
        others = np.maximum(i - 1, 1e-9)
        common = np.where(i > 1, (i * mean.same - 1) / others, 0.0)
        # Rounding can leave a row of equal tokens slightly above 1; the moments have their limit there.
        u = v * np.clip(1 - common, 1e-6, 1)
        value, score = self.moments(u)
        participation = np.where(i > 1, np.clip(1 - u * value / i, 1e-9, 1), 1.0)
        different = v * participation * participation[:, None]
        clipped = np.clip(correlation.matrix, 0, 1)
        single = np.flatnonzero(self.sizes == 1)

        def between(own: Vector) -> Pairs:
            """Geometric between the value at R = 0 and at R = 1; ``own`` is the same-query value divided by v."""
            half = 0.5 * np.log(own) - np.log(participation)
            matrix = half + half[:, None]
            matrix *= clipped
            np.exp(matrix, out=matrix)
            matrix *= different
            matrix[single, single] = v * own[single]
            return Pairs(matrix, v * own)

        overlap = None
        if self.width is not None:
            reach = participation * (1 - 1 / i)
            strength = v / self.width
            matrix = 1 - mean.matrix
            matrix *= matrix
            matrix *= reach
            matrix *= (strength * reach)[:, None]
            overlap = Pairs(matrix, strength * (reach * (1 - mean.same)) ** 2)
        return Fluctuation(between(value), between(score), overlap)


def nodes_for(variance: float) -> int:
    """How many Chebyshev nodes in u on [0, v] hold the moments to 3e-6 up to v = 10.7, 2e-5 at 16, 1e-3 at 70."""
    return 16 if variance <= 2.7 else 32


@dataclass(frozen=True, eq=False)
class MomentTable:
    r"""\((m_2 - n^{-2})n^3/((n-1)u)\) and \(\kappa n^3/(n-1)\) at fixed counts n, as functions of u in [0, v].

    Both tend to 1 as u -> 0, so nothing cancels at weak coupling. A finite head size makes the logits of a query
    share its norm: u -> u f with f = |q|^2/E|q|^2, averaged over f; \(\kappa\) also carries the factor f.
    Their logarithms are polynomials through ``nodes_for(v)`` Chebyshev nodes (barycentric form).
    """

    largest: float
    log_value: Float64[np.ndarray, "n nodes"]
    log_score: Float64[np.ndarray, "n nodes"]

    @classmethod
    def build(cls, variance: float, counts: Vector, head_dim: int | None) -> MomentTable:
        """The table for u up to ``variance``; ``head_dim`` None means that queries have a fixed norm (QK-norm)."""
        norms = query_norms(head_dim)
        largest = variance * float(norms.factors.max())
        if largest > LARGEST:
            raise NotApplicable(
                f"attention-logit variance {variance:.3g} at birth is beyond the strong coupling, which stops at "
                f"{variance * LARGEST / largest:.3g}; coupling='uniform' ignores the logits"
            )
        nodes = nodes_for(variance)
        value = np.zeros((counts.size, nodes))
        score = np.zeros_like(value)
        n = np.maximum(counts, 2)[:, None]
        u = variance * _nodes(nodes)
        # Below 1e-6 the limit 1 is closer than rounding lets the difference m_2 - 1/n^2 come.
        if variance < 1e-6:
            return cls(variance, value, score)
        for factor, weight in zip(norms.factors, norms.weights, strict=True):
            moments = softmax_moments(n[:, 0], factor * u)
            value += weight * (moments.second - 1 / n**2) * n**3 / ((n - 1) * u)
            score += weight * factor * moments.key * n**3 / (n - 1)
        alone = counts <= 1
        value[alone], score[alone] = 1.0, 1.0
        return cls(variance, np.log(value), np.log(score))

    def __call__(self, u: Vector) -> tuple[Vector, Vector]:
        """Both moments of row n at its own u, shape (n,) each."""
        nodes = self.log_value.shape[1]
        gap = (u / self.largest)[:, None] - _nodes(nodes)
        exact = gap == 0
        gap[exact] = 1.0
        parts = _barycentric_weights(nodes) / gap
        parts[exact.any(axis=1)] = 0.0
        parts[exact] = 1.0
        parts /= parts.sum(axis=1, keepdims=True)
        return np.exp((parts * self.log_value).sum(axis=1)), np.exp((parts * self.log_score).sum(axis=1))


def _nodes(count: int) -> Float64[np.ndarray, " nodes"]:
    """Chebyshev nodes of the first kind on (0, 1)."""
    return np.asarray(0.5 * (1 - np.cos((np.arange(count) + 0.5) * math.pi / count)))


def _barycentric_weights(count: int) -> Float64[np.ndarray, " nodes"]:
    k = np.arange(count)
    return np.asarray((-1.0) ** k * np.sin((k + 0.5) * math.pi / count))


@dataclass(frozen=True, eq=False)
class QueryNorms:
    """Nodes and weights of the law of |q|^2/E|q|^2."""

    factors: Float64[np.ndarray, " nodes"]
    weights: Float64[np.ndarray, " nodes"]


def query_norms(head_dim: int | None) -> QueryNorms:
    r"""A quadrature for |q|^2/E|q|^2, a chi-square law with ``head_dim`` degrees of freedom over its mean.

    From 6 on: three nodes \(1, 1\pm\sqrt{6/h_d}\) with weights 2/3, 1/6, 1/6 (the law's first four moments to
    leading order in 1/h_d). Below 6 the lower node would be negative: 8 Gauss-Laguerre nodes, exact for polynomials
    up to degree 15. None: a fixed norm.
    """
    if head_dim is None:
        return QueryNorms(np.ones(1), np.ones(1))
    if head_dim >= 6:
        width = math.sqrt(6 / head_dim)
        return QueryNorms(np.array([1.0, 1 + width, 1 - width]), np.array([2 / 3, 1 / 6, 1 / 6]))
    # Golub and Welsch: the nodes are the eigenvalues of the Laguerre recurrence's matrix.
    shape, k = head_dim / 2, np.arange(8)
    beside = np.sqrt(k[1:] * (k[1:] + shape - 1))
    nodes, vectors = np.linalg.eigh(np.diag(2 * k + shape) + np.diag(beside, 1) + np.diag(beside, -1))
    return QueryNorms(nodes / shape, vectors[0] ** 2)


MakeCoupling = Callable[[Attention, int, Vector, Vector, bool], Coupling]
"""From (attention, width, counts, sizes, finite width) to the coupling of a layer."""

COUPLINGS: Registry[MakeCoupling] = Registry("coupling")


@lru_cache(maxsize=8)
def _table(variance: float, counts: bytes, head_dim: int | None) -> MomentTable:
    """The table of one attention, kept for the next window or coupling at the same positions."""
    return MomentTable.build(variance, np.frombuffer(counts), head_dim)


def strong(attention: Attention, width: int, counts: Vector, sizes: Vector, finite_width: bool) -> Strong | Uniform:
    """The strong coupling of one layer's attention; uniform where the logits have no variance."""
    variance = attention.logit_variance(width)
    if variance == 0:
        return Uniform()
    table = _table(variance, counts.tobytes(), None if attention.qk_norm else attention.head_dim)
    return Strong(variance, counts, sizes, table, width if finite_width else None)


def first_order(attention: Attention, width: int, counts: Vector, sizes: Vector, finite_width: bool) -> FirstOrder:
    """The first-order coupling of one layer's attention."""
    return FirstOrder(attention.logit_variance(width))


def uniform(attention: Attention, width: int, counts: Vector, sizes: Vector, finite_width: bool) -> Uniform:
    """No fluctuation."""
    return Uniform()


COUPLINGS.register("strong", strong)
COUPLINGS.register("first-order", first_order)
COUPLINGS.register("uniform", uniform)
