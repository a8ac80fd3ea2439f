r"""Attention over repeated tokens on groups of positions and classes of frequency: at a cost free of the length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Float64

from catenary.theory.attention.scores import Scores
from catenary.theory.mixers import Outcome
from catenary.theory.positions.pairs import Half, Matrix, Pairs, Positions, Vector, constant
from catenary.theory.repeats.classes import ClassMeeting, ClassRows, TokenClasses
from catenary.theory.repeats.nodes import RELATIVE, Factors
from catenary.theory.repeats.rows import Levels, RowTables

ByClass = Float64[np.ndarray, "n classes"]
"""One number per group of queries and class of tokens."""


@dataclass(frozen=True, eq=False)
class Sorts:
    """A function of two tokens: two different ones, two equal ones (at different positions), one with itself."""

    different: Matrix
    equal: Matrix
    itself: Vector

    def __add__(self, other: Sorts) -> Sorts:
        """The sum, sort by sort."""
        return Sorts(self.different + other.different, self.equal + other.equal, self.itself + other.itself)

    def __mul__(self, other: Sorts) -> Sorts:
        """The product, sort by sort."""
        return Sorts(self.different * other.different, self.equal * other.equal, self.itself * other.itself)

    def map(self, function: Callable[[Any], Any]) -> Sorts:
        """A function of every value."""
        return Sorts(function(self.different), function(self.equal), function(self.itself))


@dataclass(frozen=True, eq=False)
class States:
    """States (class, group) as one axis: equal tokens in the blocks of the diagonal, different ones beside them."""

    classes: int
    sizes: Vector

    def sorts(self, x: Pairs) -> Sorts:
        """A function that no class depends on; a single position takes its value of different tokens from beside it."""
        blocks = self._blocks(x)
        different, equal = blocks[0, :, 1].copy(), blocks[0, :, 0].copy()
        return Sorts(self._filled(different), self._filled(equal), x.same[: self.sizes.size])

    def weighted(self, x: Pairs, shares: ByClass, classes: TokenClasses) -> Gradients:
        """Gradients times the probability of their sort and class."""
        blocks, n = self._blocks(x), self.sizes.size
        one = np.diagonal(blocks, axis1=0, axis2=2).transpose(2, 0, 1).copy()
        within = classes.repeat / np.maximum(classes.share, 1e-300)
        alike = shares.T[:, :, None] * shares.T[:, None] * within[:, None, None]
        others = blocks[0, :, 1] * (1 - alike.sum(axis=0))
        equal = one * alike
        for matrix in (others, *equal):
            matrix[np.diag_indices(n)] *= self.sizes > 1
        itself = x.same.reshape(self.classes, n)
        return Gradients(others, equal.sum(axis=0), (itself * shares.T).sum(axis=0), blocks[0, :, 1], one, itself)

    def joined(self, different: Matrix, equal: list[Matrix], itself: list[Vector]) -> Pairs:
        """One function from its values per class."""
        n, m = self.sizes.size, self.classes
        blocks = np.empty((m, n, m, n))
        blocks[:] = different[None, :, None]
        for k in range(m):
            blocks[k, :, k] = equal[k]
            single = np.flatnonzero(self.sizes == 1)
            blocks[k, single, k, single] = itself[k][single]
        return Pairs(blocks.reshape(m * n, m * n), np.concatenate(itself))

    def _blocks(self, x: Pairs) -> Float64[np.ndarray, "m n k n"]:
        n = self.sizes.size
        return x.matrix.reshape(self.classes, n, self.classes, n)

    def _filled(self, matrix: Matrix) -> Matrix:
        single = np.flatnonzero(self.sizes == 1)
        beside = np.where(single > 0, single - 1, np.minimum(single + 1, self.sizes.size - 1))
        matrix[single, single] = matrix[single, beside]
        return matrix


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients by sort: summed with their probabilities, and as they are."""

    different: Matrix
    equal: Matrix
    itself: Vector
    plain_different: Matrix
    plain_equal: Float64[np.ndarray, "classes n n"]
    plain_itself: Float64[np.ndarray, "classes n"]


@dataclass(frozen=True, eq=False)
class Averages:
    """Averages of one function of tokens over what two queries see, its three sorts apart."""

    different: Pairs
    equal: Pairs
    itself: Pairs

    @classmethod
    def of(cls, x: Sorts, positions: Positions) -> Averages:
        """Sums over pairs of positions, weighted uniformly."""
        none = np.zeros_like(x.itself)
        return cls(
            positions.average(Pairs(x.different, none)).full,
            positions.average(Pairs(x.equal, none)).full,
            positions.average(Pairs(np.zeros_like(x.equal), x.itself)).full,
        )


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights f of tokens by row and class, times the row's length: 1 where attention is uniform."""

    f: ByClass
    classes: TokenClasses

    @cached_property
    def mean(self) -> Vector:
        """Average over classes."""
        return np.asarray(self.f @ self.classes.share)

    @cached_property
    def equal(self) -> Matrix:
        """Sum over classes of q p f f."""
        return np.asarray((self.f * (self.classes.share * self.classes.repeat)) @ self.f.T)

    @cached_property
    def itself(self) -> Matrix:
        """Sum over classes of q f f."""
        return np.asarray((self.f * self.classes.share) @ self.f.T)

    def total(self, x: Averages) -> Pairs:
        """The sum of f f x over all pairs of tokens."""
        parts = []
        for part in ("matrix", "same"):
            pick = (lambda m: m) if part == "matrix" else np.diagonal
            d, e, s = (getattr(a, part) for a in (x.different, x.equal, x.itself))
            parts.append(pick(np.outer(self.mean, self.mean)) * d + pick(self.equal) * (e - d) + pick(self.itself) * s)
        return Pairs(*parts)


@dataclass(frozen=True, eq=False)
class CoarseRepeats:
    r"""Attention over classes of tokens on groups of positions; the form of ``RepeatedAttention`` for any length.

    States are (class, group). Two tokens are equal with probability \(p_m\) within a class; every sum over tokens j, l
    splits into different types, equal ones and j = l, with weights that depend on the query and the class only:

    \[\sum_{jl}f_{ij}f_{kl}Y_{jl} = \bar f_i\bar f_k\langle Y^d\rangle
      + \sum_mq_mp_mf_{im}f_{km}\langle Y^e - Y^d\rangle + \sum_mq_mf_{im}f_{km}\langle Y^0\rangle .\]

    O(M G^3) for G groups and M classes. Derived here: ``docs/repeats.md``.

    Attributes:
        gain: \(\kappa_V^2\).
        scores: the law of the logits; no soft-cap, no sink.
        positions: the averages of the mean kernel.
        classes: the tokens.
        turning: mean factor of rotary positions between two positions of two groups; None without them.
        own_norm: whether queries and keys are normalised from inputs that are not.
    """

    gain: float
    scores: Scores
    positions: Positions
    classes: TokenClasses
    turning: Matrix | None = None
    own_norm: bool = False

    def forward(self, x: Pairs) -> Outcome:
        """Covariance of the outputs."""
        scale = 1 / np.sqrt(x.same)
        variance = self.scores.variance * (1.0 if self.own_norm else float(x.same.mean()) ** 2)
        seen = self.states.sorts(x.scaled(scale))
        law = CoarseLaw.of(self, seen, variance)
        values = CoarseValues.of(self.states.sorts(x), law)
        out = law.outputs(values)
        if self.scores.overlap:
            out = out + law.overlap(values) * seen
        added = self.states.joined(out.different, [out.equal] * self.classes.count, [out.itself] * self.classes.count)
        return Outcome(added.times(constant(self.gain)), PassedCoarse(self, x, scale, variance, law.tables))

    @cached_property
    def states(self) -> States:
        """How (class, group) lie on one axis."""
        return States(self.classes.count, self.positions.sizes)

    @cached_property
    def shares(self) -> ByClass:
        """Probability of each class per group: the last position is in the last class."""
        shares = np.tile(self.classes.share, (self.positions.sizes.size, 1))
        shares[-1] = np.eye(self.classes.count)[-1]
        return shares


@dataclass(frozen=True, eq=False)
class PassedCoarse:
    """The forward pass: its inputs and row moments."""

    attention: CoarseRepeats
    x: Pairs
    scale: Vector
    variance: float
    tables: RowTables

    def backward(self, gradient: Pairs) -> Pairs:
        """Values, keys, queries and the 1/d overlap."""
        attention, states = self.attention, self.attention.states
        seen = states.sorts(self.x.scaled(self.scale))
        law = CoarseLaw.of(attention, seen, self.variance, self.tables)
        values = CoarseValues.of(states.sorts(self.x), law)
        d = states.weighted(gradient, attention.shares, attention.classes)
        scores = law.through_scores(d, values)
        if attention.scores.overlap:
            u = law.overlap(values)
            scores.different += d.plain_different * u.different
            scores.equal += d.plain_equal * u.equal
            scores.itself += d.plain_itself * u.itself
        through = law.through_values(d)
        n = self.scale.size // attention.classes.count
        scale = self.scale[:n]
        both = scale * scale[:, None]
        return states.joined(
            through.different + scores.different * both,
            list(through.equal + scores.equal * both),
            list(through.itself + scores.itself * scale**2),
        ).times(constant(attention.gain))


@dataclass(frozen=True, eq=False)
class CoarseValues:
    """The values' covariance and its means over what queries see."""

    x: Sorts
    averages: Averages
    half: Half
    halves: list[Half]
    both: Pairs

    @classmethod
    def of(cls, x: Sorts, law: CoarseLaw) -> CoarseValues:
        """Means under the mean attention: ``half`` for a token of any class, ``halves`` for one of each."""
        averages = Averages.of(x, law.positions)
        none = np.zeros_like(x.itself)
        d, e, own = (
            law.positions.average(pairs).half.matrix
            for pairs in (Pairs(x.different, none), Pairs(x.equal, none), Pairs(np.zeros_like(x.equal), x.itself))
        )
        f, p = law.mean.f, law.mean.classes.repeat
        halves = [d + (p[m] * (e - d) + own) * f[:, m] for m in range(p.size)]
        mean = d + (e - d) * (f @ (p * law.mean.classes.share)) + own * law.mean.mean
        return cls(x, averages, Half(mean), [Half(half) for half in halves], law.mean.total(averages))

    def by_class(self, law: CoarseLaw, m: int) -> Pairs:
        """Mean of ``halves[m]`` over what a second query sees."""
        a, f, p = self.averages, law.mean.f[:, m], law.mean.classes.repeat[m]
        matrix = a.different.matrix + f[:, None] * (p * (a.equal.matrix - a.different.matrix) + a.itself.matrix)
        same = a.different.same + f * (p * (a.equal.same - a.different.same) + a.itself.same)
        return Pairs(matrix, same)


@dataclass(eq=False)
class Through:
    """Gradients at tokens: different ones, and per class equal ones and one with itself."""

    different: Matrix
    equal: Float64[np.ndarray, "classes n n"]
    itself: Float64[np.ndarray, "classes n"]

    @classmethod
    def zero(cls, classes: int, n: int) -> Through:
        """No gradient."""
        return cls(np.zeros((n, n)), np.zeros((classes, n, n)), np.zeros((classes, n)))


@dataclass(frozen=True, eq=False)
class CoarseNode:
    """Second moments of attention at one correlation of two queries."""

    mean: Weights
    copies: Weights
    scores: Weights
    beyond: Weights
    excess: Sorts
    norm: Pairs
    averages: Averages


@dataclass(frozen=True, eq=False)
class CoarseShape:
    """Keys as queries meet them."""

    keys: Sorts
    meeting: ClassMeeting
    levels: Levels
    response: Weights


@dataclass(frozen=True, eq=False)
class CoarseLaw:
    """``Law`` on groups and classes."""

    attention: CoarseRepeats
    positions: Positions
    tables: RowTables
    mean: Weights
    reach: Vector
    cosine: Sorts
    own: CoarseShape
    other: CoarseShape
    single: CoarseNode
    rhos: Float64[np.ndarray, " nodes"]
    nodes: list[CoarseNode]
    one: Averages

    @classmethod
    def of(cls, attention: CoarseRepeats, r: Sorts, variance: float, tables: RowTables | None = None) -> CoarseLaw:
        """The law over inputs of correlation ``r``."""
        positions, classes = attention.positions, attention.classes
        rows = ClassRows(positions, classes)
        c = 1.0 if attention.turning is None else attention.turning
        turned = Sorts(r.different * c, r.equal * c, r.itself)
        near, far = (ClassMeeting(k.different, k.equal, rows) for k in (turned, r))
        tables = tables or RowTables.build(variance, attention.scores.query_dims, near)
        met = near.multiplicities(tables.copies)
        mean = tables.mean(met)
        n = rows.counts[:, None]

        def weights(f: Float[np.ndarray, " seen"]) -> Weights:
            return Weights(rows.table(f) * n, classes)

        def shape(meeting: ClassMeeting, keys: Sorts) -> CoarseShape:
            levels = tables.levels(mean, meeting.multiplicities(tables.copies))
            return CoarseShape(keys, meeting, levels, weights(mean * levels.response))

        own, other = shape(near, turned), shape(far, r)
        one = Averages.of(r.map(np.ones_like), positions)

        def node(rho: float, shape: CoarseShape) -> CoarseNode:
            factors = Factors.at(rho, shape.levels, shape.meeting.background, mean, tables)
            excess = shape.keys.map(lambda k: np.expm1(factors.exponent * shape.meeting.relative(k)))
            averages = Averages.of(excess, positions)
            o, h, z, b = map(weights, (factors.mean, factors.copies, factors.scores, factors.beyond))
            return CoarseNode(o, h, z, b, excess, _seen(o, h, b, one, averages), averages)

        largest = max(float(np.clip(turned.different, 0, 1).max()), 1e-3)
        if classes.repeat.any():
            largest = max(largest, float(turned.equal.max()))
        rhos = min(largest, 1.0) * np.array(RELATIVE)
        reach = rows.total(mean * own.levels.response) * (1 - 1 / np.maximum(rows.counts, 1))
        return cls(
            attention, positions, tables, weights(mean), reach, turned, own, other, node(1.0, own), rhos,
            [node(float(rho), other) for rho in rhos[1:]], one,
        )

    def hats(self, cosine: Matrix) -> list[Matrix]:
        """Weights of pairs of queries on the correlations."""
        return [np.interp(cosine, self.rhos, unit) for unit in np.eye(self.rhos.size)]

    def outputs(self, values: CoarseValues) -> Sorts:
        """Mean values over two queries' attention."""
        means = [values.both.matrix]
        for node in (*self.nodes, self.single):
            alike = Averages.of(node.excess * values.x, self.positions)
            found = _seen(node.mean, node.copies, node.beyond, values.averages, alike)
            means.append(found.matrix / node.norm.matrix)
        itself = np.maximum(found.same / self.single.norm.same, 1e-30)
        root = np.sqrt(itself)
        bound = root * root[:, None]
        different, equal = (
            np.minimum(sum(hat * mean for hat, mean in zip(self.hats(cosine), means, strict=False)), bound)
            for cosine in (self.cosine.different, self.cosine.equal)
        )
        return Sorts(different, equal, itself)

    def overlap(self, values: CoarseValues) -> Sorts:
        """U of ``Law.overlap``."""
        root = np.sqrt(values.x.itself)
        g = np.sqrt(self.positions.average(Pairs(root * root[:, None], root**2)).full.same)
        strength = self.tables.variance * self.attention.scores.overlap
        both = (g * g[:, None] - values.both.matrix) ** 2 / (g * g[:, None])
        both *= strength * self.reach * self.reach[:, None]
        return Sorts(both, both, strength * ((g**2 - values.both.same) * self.reach / g) ** 2)

    def through_values(self, d: Gradients) -> Through:
        """Gradients at the values."""
        none = np.zeros_like(d.itself)
        out = Through.zero(self.mean.f.shape[1], none.size)
        hats = list(zip(self.hats(self.cosine.different), self.hats(self.cosine.equal), strict=True))
        parts = [(d.different * one + d.equal * two) for one, two in hats]
        self._send(Pairs(parts[0], none), self.mean, None, out)
        for part, node in zip(parts[1:], self.nodes, strict=True):
            self._node_values(Pairs(part / node.norm.matrix, none), node, out)
        self._node_values(Pairs(np.zeros_like(parts[0]), d.itself / self.single.norm.same), self.single, out)
        return out

    def _node_values(self, w: Pairs, node: CoarseNode, out: Through) -> None:
        self._send(w, node.mean, None, out)
        self._send(w, node.copies, node.excess, out)
        for m in range(out.itself.shape[0]):
            out.itself[m] += self.positions.adjoint(_times(w, node.beyond.f[:, m])).full.same

    def _send(self, w: Pairs, f: Weights, excess: Sorts | None, out: Through) -> None:
        sent = self.positions.adjoint(_times(w, f.mean)).full
        out.different += sent.matrix if excess is None else excess.different * sent.matrix
        for m in range(out.itself.shape[0]):
            sent = self.positions.adjoint(_times(w, f.f[:, m])).full
            out.equal[m] += sent.matrix if excess is None else excess.equal * sent.matrix
            out.itself[m] += sent.same if excess is None else excess.itself * sent.same

    def through_scores(self, d: Gradients, values: CoarseValues) -> Through:
        """Gradients at keys and queries."""
        v, none = self.tables.variance, np.zeros_like(d.itself)
        keys = Through.zero(self.mean.f.shape[1], none.size)
        apart = v * (d.different * self.cosine.different), v * (d.equal * self.cosine.equal)
        self._keys(Pairs(apart[0] + apart[1], none), self.other.response, None, values, keys)
        hats = list(zip(self.hats(self.cosine.different), self.hats(self.cosine.equal), strict=True))[1:]
        for (one, two), node in zip(hats, self.nodes, strict=True):
            self._keys(Pairs(apart[0] * one + apart[1] * two, none), node.scores, node.excess, values, keys)
        own = Through.zero(self.mean.f.shape[1], none.size)
        lone = Pairs(np.zeros_like(keys.different), v * d.itself)
        self._keys(lone, self.own.response, None, values, own)
        self._keys(lone, self.single.scores, self.single.excess, values, own)
        pairs = self._queries(self.other, self.other.response, None, values)
        found = [self._queries(self.other, node.scores, node, values) for node in self.nodes]
        for (one, two), query in zip(hats, found, strict=True):
            own.different += v * d.plain_different * one * query.matrix
            own.equal += v * d.plain_equal * two * query.matrix
        own.different += v * d.plain_different * pairs.matrix
        own.equal += v * d.plain_equal * pairs.matrix
        single = self._queries(self.own, self.own.response, None, values).same
        single = single + self._queries(self.own, self.single.scores, self.single, values).same
        own.itself += v * d.plain_itself * single
        c = 1.0 if self.attention.turning is None else self.attention.turning
        return Through(keys.different + c * own.different, keys.equal + c * own.equal, keys.itself + own.itself)

    def _keys(self, e: Pairs, f: Weights, excess: Sorts | None, values: CoarseValues, out: Through) -> None:
        x = values.x
        if excess is None:
            sent, rest = self._centred(_times(e, f.mean), values.half, values.both)
            out.different += sent.matrix * x.different + rest.matrix
        for m in range(out.itself.shape[0]):
            sent, rest = self._centred(_times(e, f.f[:, m]), values.halves[m], values.both)
            equal, itself = sent.matrix * x.equal + rest.matrix, sent.same * x.itself + rest.same
            out.equal[m] += equal if excess is None else excess.equal * equal
            out.itself[m] += itself if excess is None else excess.itself * itself

    def _centred(self, e: Pairs, half: Half, both: Pairs) -> tuple[Pairs, Pairs]:
        sent = self.positions.adjoint(e)
        return sent.full, self.positions.adjoint_centred(e * both, sent.half * half)

    def _queries(self, shape: CoarseShape, f: Weights, node: CoarseNode | None, values: CoarseValues) -> Pairs:
        """Sums of centred values times centred keys over two queries' attention."""
        total = Pairs(np.zeros_like(values.both.matrix), np.zeros_like(values.both.same))
        keys = Averages.of(shape.keys, self.positions)
        one = self.one
        spread = None
        if node is None:
            x, k = (Pairs(s.different, s.different.diagonal().copy()) for s in (values.x, shape.keys))
            mx, mk = self.positions.average(x), self.positions.average(k)
            spread = self.positions.average_centred(x * k, mx.half * mk.half).plus(mx.full * mk.full)
            total = _times(spread, f.mean)
        out = []
        for part, matrix in (("matrix", total.matrix), ("same", total.same)):
            def at(pairs: Pairs, part: str = part) -> np.ndarray:
                return np.asarray(getattr(pairs, part))

            many = part == "matrix"
            other = _over(at(keys.different), at(one.different))
            equal_key = _over(at(keys.equal), at(one.equal)) - other
            equal_x, own_x = (_over(at(a), at(b)) for a, b in (
                (values.averages.equal, one.equal), (values.averages.itself, one.itself)))
            own_key = 1 - other
            result = matrix.copy()
            for m in range(f.f.shape[1]):
                q, p = self.mean.classes.share[m], self.mean.classes.repeat[m]
                w = f.f[:, m] * f.f[:, m][:, None] if many else f.f[:, m] ** 2
                by = at(values.by_class(self, m))
                centre = at(values.both) - by - (by.T if many else by)
                itself, equal = (own_x + centre) * own_key, (equal_x + centre) * equal_key
                if node is None:
                    assert spread is not None
                    result += q * w * (at(one.itself) * itself + p * at(one.equal) * (equal - at(spread)))
                else:
                    result += q * w * (at(node.averages.itself) * itself + p * at(node.averages.equal) * equal)
            out.append(result)
        return Pairs(*out)


def _seen(o: Weights, h: Weights, b: Weights, x: Averages, alike: Averages) -> Pairs:
    """The numerator of the mean of x, ``alike`` being the averages of M x."""
    first, second = o.total(x), h.total(alike)
    matrix = first.matrix + second.matrix + b.itself * x.itself.matrix
    same = first.same + second.same + b.itself.diagonal() * x.itself.same
    return Pairs(matrix, same)


def _times(x: Pairs, f: Vector) -> Pairs:
    return Pairs(x.matrix * f * f[:, None], x.same * f**2)


def _over(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y > 1e-12, x / np.maximum(y, 1e-12), 0.0)
