r"""The coupling at any logit variance: exact softmax moments per row, a participation factor between rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable
from catenary.theory.attention.coupling import Fluctuation, Rows, Seen
from catenary.theory.attention.moments import LARGEST, RowLaw, SoftmaxMoments, softmax_moments
from catenary.theory.attention.scores import Scores, query_norms, sink_logits
from catenary.theory.positions.pairs import Pairs, Vector

Logs = Float64[np.ndarray, "4 n nodes"]

SMOOTH_FROM, SMOOTH_NODES = 8.0, 24
"""Moments without a sink are smooth in the logarithm of the count: 1e-8 from 8 on, to a million, with so many nodes."""

NEGLIGIBLE = 1e-6
"""Variance below which the limit u -> 0 is closer than rounding lets the difference m_2 - p^2 come."""


@dataclass(frozen=True, eq=False)
class Strong:
    r"""Any logit variance: exact softmax moments for equal queries, a participation factor for different ones.

    A row that sees n tokens has the logit variance \(u_i\) beside what its logits have in common. With
    \(\bar K_i\) the mean of \(K_{jj}\) over the row, M the mean \(AKA^\top/\sqrt{\bar K_i\bar K_k}\) and the moments of
    ``softmax_moments`` at \(u_i\),

    \[u_i = vK_{ii}\bar K_i\frac{n}{n-1}(1 - M_{ii}),\quad
      \lambda_i = \frac{n^2}{n-1}E\frac{\partial A_1}{\partial z_1},\quad
      S^{val}_{ii} = \frac{v}{u_i}\,\frac{(m_2 - n^{-2})n^3}{n-1},\quad S^{sc}_{ii} = v\kappa\frac{n^3}{n-1},\]
    \[S^x_{ik} = (v\lambda_i\lambda_k)^{1-R_{ik}}(S^x_{ii}S^x_{kk})^{R_{ik}/2},\quad
      U_{ik} = o\,v\lambda_i\lambda_kg_ig_k(1-\tfrac1n)(1-\tfrac1{n'})(1-M_{ik})^2,\]

    o being the tokens' overlap and g the row means of \(\sqrt{K_{jj}X_{jj}}\). For a kernel of unequal weights n is its
    participation number; for a sink see ``MomentTable``. Exact for \(R_{ik} = 0\) and 1 at infinite width and equal
    weights; within a few per cent between. As v -> 0 and d -> infinity it is ``FirstOrder``. Derived here: docs,
    "Attention at birth".

    Attributes:
        scores: the law of the logits.
        rows: the rows of the mean kernel, n = ``counts``.
    """

    scores: Scores
    rows: Rows

    def __call__(self, seen: Seen) -> Fluctuation:
        """S^val, S^sc and U of one layer."""
        n, v = self.rows.counts, self.scores.variance
        mean = seen.mean
        apart = np.where(n > 1, n * (1 - mean.same) / np.maximum(n - 1, 1e-9), 1.0)
        # Rounding can leave a row of equal tokens slightly above 1; the moments have their limit there.
        u = v * seen.strength * np.clip(apart, 1e-6, 1)
        row = self._table(float(seen.strength.max())).at(u)
        participation = row.participation
        different = v * participation * participation[:, None]
        clipped = np.clip(seen.correlation.matrix, 0, 1)
        single = np.flatnonzero(self.rows.sizes == 1)

        def between(own: Vector) -> Pairs:
            """Geometric between the value at R = 0 and at R = 1; ``own`` is the same-query value divided by v."""
            half = 0.5 * np.log(own) - np.log(participation)
            matrix = half + half[:, None]
            matrix *= clipped
            np.exp(matrix, out=matrix)
            matrix *= different
            matrix[single, single] = v * own[single]
            near = np.exp(2 * half[:, None] * np.clip(seen.correlation.near, 0, 1))
            return Pairs(matrix, v * own, v * participation[:, None] ** 2 * near)

        overlap = None
        if self.scores.overlap:
            reach = participation * seen.reach * row.kept * (1 - 1 / n)
            strength = v * self.scores.overlap
            matrix = 1 - mean.matrix
            matrix *= matrix
            matrix *= reach
            matrix *= (strength * reach)[:, None]
            near = strength * (reach[:, None] * (1 - mean.near)) ** 2
            overlap = Pairs(matrix, strength * (reach * (1 - mean.same)) ** 2, near)
        kept = None if self.scores.sink is None else row.kept
        return Fluctuation(between(row.value), between(row.score), overlap, kept)

    def _table(self, strength: float) -> MomentTable:
        """The row moments up to v times ``strength``, which is 1 behind a norm, rounded up to a power of 4."""
        if strength <= 1 + 1e-9:
            return kept_table(self.scores, self.rows.counts.tobytes(), self.scores.variance)
        if not self.scores.plain and strength > 1.05:
            raise NotApplicable("a soft-cap or a sink on scores whose inputs have no norm in front is not covered")
        largest = self.scores.variance * 4 ** math.ceil(math.log(strength, 4))
        return kept_table(self.scores, self.rows.counts.tobytes(), largest)


@dataclass(frozen=True, eq=False)
class RowMoments:
    r"""Per row: \(S^{val}_{ii}/v\), \(S^{sc}_{ii}/v\), \(\lambda_i\), and \(E\sum_jA_{ij}\), 1 without a sink."""

    value: Vector
    score: Vector
    participation: Vector
    kept: Vector


def nodes_for(variance: float) -> int:
    """How many Chebyshev nodes in u on [0, v] hold the moments to 3e-6 up to v = 10.7, 2e-5 at 16, 1e-3 at 70."""
    return 16 if variance <= 2.7 else 32


@dataclass(frozen=True, eq=False)
class MomentTable:
    r"""The ``RowMoments`` at fixed counts n, as functions of u in [0, largest].

    All but the last tend to 1 as v -> 0, so nothing cancels at weak coupling. A finite head size makes the logits of a
    query share its norm: u -> u f with f = |q|^2/E|q|^2, averaged over f; \(\kappa\) also carries the factor f. A
    sink's logit is averaged over heads. Beside a sink, with p = E A_1, \(\rho = 1 - u/v\) and
    \(c = 1 - 2p + np^2\), the fluctuations of tokens of one correlation \(\rho\) are matched:

    \[\frac{S^{val}_{ii}}v = \frac{(1-\rho)\sum_j\mathrm{Var}A_j + \rho\mathrm{Var}\sum_jA_j}
      {(1-\rho)np^2[uc + (v-u)(1-np)^2] + \rho(np)^2(1-np)^2[v\rho + u/n]},\]
    \[\frac{S^{sc}_{ii}}v = \frac{(1-\rho)\kappa + \rho E[(\partial\sum_jA_j/\partial z_1)^2]}
      {p^2[(1-\rho)c + \rho(1-np)^2]},\quad \lambda = \frac{E[\partial A_1/\partial z_1]}{p(1-p)}.\]

    Without one this is what ``Strong`` says. Their logarithms are polynomials through ``nodes_for`` Chebyshev nodes
    (barycentric form).
    """

    largest: float
    logs: Logs

    @classmethod
    def build(cls, scores: Scores, counts: Vector, largest: float | None = None) -> MomentTable:
        """The table for u up to ``largest``, the scores' variance unless said otherwise."""
        largest = scores.variance if largest is None else largest
        stretch = float(query_norms(scores.query_dims).at.max())
        if largest * stretch > LARGEST:
            raise NotApplicable(
                f"attention-logit variance {largest:.3g} at birth is beyond the strong coupling, which stops at "
                f"{LARGEST / stretch:.3g}; coupling='uniform' ignores the logits"
            )
        if largest < NEGLIGIBLE:
            return cls(largest, np.zeros((4, counts.size, nodes_for(largest))))
        # Many rows of a window see the same number of tokens.
        kinds, kind = np.unique(counts, return_inverse=True)
        many = scores.sink is None and (kinds >= SMOOTH_FROM).sum() > 2 * SMOOTH_NODES
        logs = _of_few(scores, kinds, largest) if many else _logs(scores, kinds, largest)
        return cls(largest, logs[:, kind])

    def at(self, u: Vector) -> RowMoments:
        """The moments of row n at its own u, shape (n,) each."""
        nodes = self.logs.shape[2]
        if self.largest == 0:
            return RowMoments(*np.ones((4, u.size)))
        return RowMoments(*np.exp((_between_nodes(u / self.largest, nodes) * self.logs).sum(axis=2)))


def _logs(scores: Scores, kinds: Vector, largest: float) -> Logs:
    """The table's logarithms for rows of these counts."""
    nodes = nodes_for(largest)
    logs = np.zeros((4, kinds.size, nodes))
    n = np.maximum(kinds, 1 if scores.sink is not None else 2)[:, None]
    u = largest * _nodes(nodes)
    total = max(scores.variance, largest)
    moments = row_moments(scores, n[:, 0], u)
    p, shared = moments.mean, 1 - u / total
    # Own parts of the logits scatter the weights, and beside a sink what they share scatters their sum.
    own, whole = 1 - 2 * p + n * p**2, (1 - n * p) ** 2
    scatter = n * (moments.second - p**2)
    of_sum = n * moments.second + n * (n - 1) * moments.pair - (n * p) ** 2
    first = (1 - shared) * n * p**2 * (u * own + (total - u) * whole)
    first += shared * (n * p) ** 2 * whole * (total * shared + u / n)
    logs[0] = np.log(((1 - shared) * scatter + shared * of_sum * (scores.sink is not None)) / first)
    slope = (1 - shared) * moments.key + shared * moments.whole
    logs[1] = np.log(slope / (p**2 * ((1 - shared) * own + shared * whole)))
    logs[2] = np.log(moments.response / (p * (1 - p)))
    logs[3] = np.log(n * p)
    if scores.sink is None:
        logs[:, kinds <= 1] = 0.0
    return logs


def _of_few(scores: Scores, kinds: Vector, largest: float) -> Logs:
    """``_logs`` of many counts: from ``SMOOTH_FROM`` on polynomials in ln n through as many as ``SMOOTH_NODES``."""
    small, others = kinds[kinds < SMOOTH_FROM], np.log(kinds[kinds >= SMOOTH_FROM])
    first, last = float(others[0]), float(others[-1])
    at = first + (last - first) * _nodes(SMOOTH_NODES)
    found = _logs(scores, np.concatenate((small, np.exp(at))), largest)
    weights = _between_nodes((others - first) / (last - first), SMOOTH_NODES)
    smooth = np.einsum("kn,mnu->mku", weights, found[:, small.size :])
    return np.concatenate((found[:, : small.size], smooth), axis=1)


def _between_nodes(x: Vector, count: int) -> Float64[np.ndarray, "x nodes"]:
    """Weights of the values at ``_nodes`` of (0, 1) in the polynomial through them at x (barycentric form)."""
    gap = x[:, None] - _nodes(count)
    exact = gap == 0
    gap[exact] = 1.0
    parts = _barycentric_weights(count) / gap
    parts[exact.any(axis=1)] = 0.0
    parts[exact] = 1.0
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def row_moments(scores: Scores, counts: Vector, variances: Float64[np.ndarray, " U"]) -> SoftmaxMoments:
    """Softmax moments averaged over query norms and sink logits; ``key`` carries the query's squared norm."""
    norms, sinks = query_norms(scores.query_dims), sink_logits(scores.sink)
    total = np.zeros((6, counts.size, variances.size))
    for factor, weight in zip(norms.at, norms.weights, strict=True):
        full = factor * max(scores.variance, float(variances.max()))
        laws = [(RowLaw(scores.softcap, None, full), 1.0)]
        if sinks is not None:
            pairs = zip(sinks.at, sinks.weights, strict=True)
            laws = [(RowLaw(scores.softcap, float(logit), full), float(part)) for logit, part in pairs]
        for law, part in laws:
            found = softmax_moments(counts, factor * variances, law)
            total += weight * part * np.stack(
                [found.mean, found.second, found.response, factor * found.key, found.pair, factor * found.whole]
            )
    return SoftmaxMoments(*total)


@lru_cache(maxsize=64)
def kept_table(scores: Scores, counts: bytes, largest: float) -> MomentTable:
    """The table of one attention, kept for its other layers and the next window at the same positions."""
    return MomentTable.build(scores, np.frombuffer(counts), largest)


def _nodes(count: int) -> Float64[np.ndarray, " nodes"]:
    """Chebyshev nodes of the first kind on (0, 1)."""
    return np.asarray(0.5 * (1 - np.cos((np.arange(count) + 0.5) * math.pi / count)))


def _barycentric_weights(count: int) -> Float64[np.ndarray, " nodes"]:
    k = np.arange(count)
    return np.asarray((-1.0) ** k * np.sin((k + 0.5) * math.pi / count))
