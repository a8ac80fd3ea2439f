r"""What one layer's attention does over tokens that repeat: the law of its weights, from its inputs' correlation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from catenary.architecture import Kernel
from catenary.theory.attention.scores import Scores
from catenary.theory.attention.sinks import kept_beside_sink
from catenary.theory.positions.pairs import Matrix
from catenary.theory.repeats.band import Band, EachRow, Rows, Seen, Square, band
from catenary.theory.repeats.between import Interpolated, Over, both_queries, each_query, pairs, single
from catenary.theory.repeats.likeness import Likeness, Multiplicities
from catenary.theory.repeats.nodes import Pull, correlations
from catenary.theory.repeats.rows import Levels, RowTables
from catenary.theory.repeats.scores import Means, copied_query_terms, key_terms, own_key_terms, query_terms

SINGLE_FROM = 192
"""Length from which products of matrices are made in single precision: the profile moves by less than 1e-5 dex."""


@dataclass(frozen=True, eq=False)
class Told:
    """What the law of a layer is told beside its inputs: the logits, which tokens are equal, rotation, the kernel."""

    scores: Scores
    equal: Bool[np.ndarray, "n n"]
    turning: Matrix | None
    kernel: Kernel


@dataclass(frozen=True, eq=False)
class Shape:
    """Keys as two queries meet them: how alike they are, what they get, and the response weight a lambda'."""

    likeness: Likeness
    levels: Levels
    response: Interpolated

    @classmethod
    def of(cls, likeness: Likeness, tables: RowTables, mean: Seen, multiplicities: Multiplicities) -> Shape:
        """The shape of a likeness."""
        levels = tables.levels(mean, multiplicities)
        seen = likeness.seen
        return cls(likeness, levels, Interpolated(seen.unpack(mean * levels.response), seen))


@dataclass(frozen=True, eq=False)
class Values:
    """The values' covariance, and its means over what queries see: all of them, and the chosen ones."""

    x: Square
    means: Means
    at: Means

    @classmethod
    def of(cls, x: Matrix, law: Law) -> Values:
        """The means under the mean attention."""
        work = x.astype(law.average.values.dtype)
        half = law.average.times(work)
        if law.kept is not None:
            half *= law.kept[:, None]
        seen = half[law.seen.queries]
        both = seen @ law.damped(law.average.values).T
        return cls(work, Means(half, both_queries(both, law.seen)), Means(seen, both))


@dataclass(frozen=True, eq=False)
class Law:
    r"""Everything one layer's attention does, from the correlation R of its inputs.

    The covariance of two logits is \(vR_{ik}R_{jl}c_{(i-k)-(j-l)}\). A query with itself meets keys turned by
    \(c_{jl}\) (``own``); for different queries the factor is taken as \(c_{ik}\), so that keys meet unturned
    (``other``): exact far apart, and near each other the profile moves by less than .002 dex per class of tokens.
    Beside a sink every row is that of the law without it, times what it keeps on average (``kept``).
    """

    scores: Scores
    turning: Matrix | None
    seen: Band
    tables: RowTables
    average: Interpolated
    kept: Float[np.ndarray, " n"] | None
    reach: EachRow
    cosine: Square
    unlike: Square
    own: Shape
    other: Shape
    single: Pull
    free: Square
    pulls: tuple[tuple[Square, Pull], ...]

    @classmethod
    def of(cls, attention: Told, r: Matrix, variance: float, tables: RowTables | None = None) -> Law:
        """The law over inputs of correlation ``r``; ``tables`` from an earlier call with the same input."""
        n = len(r)
        dtype = np.float32 if n >= SINGLE_FROM else np.float64
        seen = band(n, attention.kernel)
        different, plain = (~attention.equal).astype(dtype), r.astype(dtype)
        turned = plain if attention.turning is None else plain * attention.turning.astype(dtype)
        near = Likeness.of(turned, different, seen)
        tables = tables or RowTables.build(variance, attention.scores, near)
        met = near.multiplicities(tables.copies)
        mean = tables.mean(met).astype(dtype)
        own = other = Shape.of(near, tables, mean, met)
        if attention.turning is not None:
            far = Likeness.of(plain, different, seen)
            other = Shape.of(far, tables, mean, far.multiplicities(tables.copies))
        (_, free), *coupled = correlations(turned)
        kept = kept_beside_sink(attention.scores, seen.reached.astype(np.float64))
        reach = each_query(seen.total(mean * own.levels.response) * (1 - 1 / seen.counts), seen)
        return cls(
            scores=attention.scores,
            turning=attention.turning,
            seen=seen,
            tables=tables,
            average=Interpolated(seen.unpack(mean), seen),
            kept=None if kept is None else kept.astype(dtype),
            reach=reach if kept is None else reach * kept,
            cosine=turned,
            unlike=different,
            own=own,
            other=other,
            single=Pull.at(1.0, own.levels, near, mean, tables),
            free=free,
            pulls=tuple(
                (weight, Pull.at(rho, other.levels, other.likeness, mean, tables))
                for rho, weight in coupled
                if weight.any()
            ),
        )

    def outputs(self, values: Values) -> Matrix:
        r"""\(\sum_{jl}E[A_{ij}A_{kl}]X_{jl}\); no pair of queries has more than the Cauchy-Schwarz bound."""
        total = self.free * values.means.both
        for weight, pull in self.pulls:
            part = both_queries(pull.means(values.x), self.seen)
            part *= weight
            total += self._both_damped(part)
        same = np.maximum(each_query(self.single.own_means(values.x), self.seen), 1e-30).astype(np.float64)
        if self.kept is not None:
            same *= self.kept**2
        root = np.sqrt(same).astype(total.dtype)
        np.minimum(total, root * root[:, None], out=total)
        np.einsum("ii->i", total)[:] = same
        return np.asarray(total, dtype=np.float64)

    def overlap(self, values: Values) -> Square:
        r"""\(U_{ik} = o\,v\,u_iu_k(g_ig_k - (AXA^\top)_{ik})^2/(g_ig_k)\): unrelated tokens' chance overlap o.

        \(u = (1 - 1/n)\sum a\lambda'\), and g is the mean of \(\sqrt{X_{jj}}\) over what a query sees, 1 behind a norm.
        """
        g = each_query(self.average.at(np.sqrt(values.x.diagonal())[:, None])[:, 0], self.seen)
        apart = g * g[:, None]
        apart -= values.means.both
        apart *= apart
        factor = np.sqrt(self.tables.variance * self.scores.overlap) * self.reach / g
        factor = factor.astype(apart.dtype)
        apart *= factor
        apart *= factor[:, None]
        return np.asarray(apart)

    def through_values(self, gradient: Matrix) -> Matrix:
        r"""\(\sum_{ik}D_{ik}E[A_{ij}A_{kl}]\)."""
        d = self._both_damped(gradient.astype(self.cosine.dtype))
        total = self.average.sandwich(d * self.free).astype(np.float64)
        diagonal = np.einsum("ii->i", total)
        for weight, pull in self.pulls:
            w = d * weight
            w *= both_queries(1 / pull.norm, self.seen)
            total += pull.mean.sandwich(w)
            part = pull.copies.sandwich(w)
            part *= pull.excess
            total += part
            diagonal += np.einsum("ij,ij->j", pull.beyond.dense(), pull.beyond.transposed(w).T)
        pull = self.single
        own = (d.diagonal() / each_query(pull.own_norm, self.seen))[:, None]
        total += pull.mean.transposed(own * pull.mean.dense())
        total += pull.excess * pull.copies.transposed(own * pull.copies.dense())
        diagonal += (own * pull.beyond.dense() ** 2).sum(axis=0)
        return total

    def through_scores(self, gradient: Matrix, values: Values) -> Matrix:
        r"""Gradients at keys and queries, E = D \circ v R c:

        \[\sum_{ik}E_{ik}c_{mn}[g_{im}g_{kn} + z_{im}z_{kn}M_{mn}]\hat X_{mn} +
          vD_{ik}c_{ik}\sum_{mn}[g_{im}g_{kn} + z_{im}z_{kn}M_{mn}]\hat X_{mn}\hat K_{mn},\]

        g = a lambda', with X and the keys K centred for both queries and \(c_{mn}\) = 1 for different ones.
        """
        d = self._both_damped(gradient.astype(self.cosine.dtype))
        x, means, at, other = values.x, values.means, values.at, self.other
        v, alike = d.dtype.type(self.tables.variance), other.likeness.keys
        half = np.ascontiguousarray(means.half.T)
        apart = d.copy()
        np.fill_diagonal(apart, 0)
        weighted = v * apart
        weighted *= self.cosine
        keys, rest = key_terms(other.response, weighted, half, means.both)
        keys *= x
        keys += rest
        others = self._others(other, pairs)
        queries = both_queries(query_terms(other.response, x, alike, at, others, pairs), self.seen)
        for weight, pull in self.pulls:
            coefficient, rest = key_terms(pull.scores, weighted * weight, half, means.both)
            coefficient *= x
            coefficient += rest
            coefficient *= pull.excess
            keys += coefficient
            found = copied_query_terms(pull.scores, pull.excess, x, alike, at, others, pairs)
            part = both_queries(found, self.seen)
            part *= weight
            queries += part
        queries *= apart
        own, pull = self.own, self.single
        mine, theirs = Means(at.half, at.both.diagonal()), self._others(own, single)
        lone = v * d.diagonal() * self.cosine.diagonal()
        turned, rest = own_key_terms(own.response, lone, means.half, means.both)
        turned *= x
        turned += rest
        coefficient, rest = own_key_terms(pull.scores, lone, means.half, means.both)
        coefficient *= x
        coefficient += rest
        coefficient *= pull.excess
        turned += coefficient
        found = query_terms(own.response, x, own.likeness.keys, mine, theirs, single)
        found += copied_query_terms(pull.scores, pull.excess, x, own.likeness.keys, mine, theirs, single)
        queries *= v
        np.einsum("ii->i", queries)[:] = v * d.diagonal() * each_query(found, self.seen)
        turned += queries
        if self.turning is not None:
            turned *= self.turning
        turned += keys
        return np.asarray(0.5 * (turned + turned.T), dtype=np.float64)

    def _others(self, shape: Shape, over: Over) -> Means:
        """Means of the keys' likeness over what queries see, tokens of one type left out."""
        at = self.average
        half = self.damped(at.at(shape.likeness.keys * self.unlike) / np.maximum(at.at(self.unlike), 1e-9))
        return Means(half, over(half, self.damped(at.values)))

    def damped(self, rows: Rows) -> Rows:
        """Rows of chosen queries times what they keep beside a sink."""
        return rows if self.kept is None else rows * self.kept[self.seen.queries, None]

    def _both_damped(self, x: Square) -> Square:
        """A function of two queries times what both keep, in the memory of x."""
        if self.kept is not None:
            x *= self.kept
            x *= self.kept[:, None]
        return x
