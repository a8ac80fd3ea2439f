"""The law of attention over repeated tokens on groups of positions and classes of frequency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64

from catenary.theory.attention.scores import Scores
from catenary.theory.positions.pairs import Matrix, Pairs, Positions, Vector
from catenary.theory.repeats.averages import Averages, CoarseValues, Weights, seen_by_two, times_each
from catenary.theory.repeats.classes import ClassMeeting, ClassRows, TokenClasses
from catenary.theory.repeats.nodes import RELATIVE, Factors
from catenary.theory.repeats.rows import Levels, RowTables
from catenary.theory.repeats.sorts import Gradients, Sorts, Through


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

    scores: Scores
    turning: Matrix | None
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
    def of(
        cls, scores: Scores, positions: Positions, classes: TokenClasses, turning: Matrix | None, r: Sorts,
        variance: float, tables: RowTables | None = None,
    ) -> CoarseLaw:
        """The law over inputs of correlation ``r``."""
        rows = ClassRows(positions, classes)
        c = 1.0 if turning is None else turning
        turned = Sorts(r.different * c, r.equal * c, r.itself)
        near, far = (ClassMeeting(k.different, k.equal, rows) for k in (turned, r))
        tables = tables or RowTables.build(variance, scores, near)
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
            return CoarseNode(o, h, z, b, excess, seen_by_two(o, h, b, one, averages), averages)

        largest = max(float(np.clip(turned.different, 0, 1).max()), 1e-3)
        if classes.repeat.any():
            largest = max(largest, float(turned.equal.max()))
        rhos = min(largest, 1.0) * np.array(RELATIVE)
        reach = rows.total(mean * own.levels.response) * (1 - 1 / np.maximum(rows.counts, 1))
        return cls(
            scores, turning, positions, tables, weights(mean), reach, turned, own, other, node(1.0, own), rhos,
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
            found = seen_by_two(node.mean, node.copies, node.beyond, values.averages, alike)
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
        strength = self.tables.variance * self.scores.overlap
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
            out.itself[m] += self.positions.adjoint(times_each(w, node.beyond.f[:, m])).full.same

    def _send(self, w: Pairs, f: Weights, excess: Sorts | None, out: Through) -> None:
        sent = self.positions.adjoint(times_each(w, f.mean)).full
        out.different += sent.matrix if excess is None else excess.different * sent.matrix
        for m in range(out.itself.shape[0]):
            sent = self.positions.adjoint(times_each(w, f.f[:, m])).full
            out.equal[m] += sent.matrix if excess is None else excess.equal * sent.matrix
            out.itself[m] += sent.same if excess is None else excess.itself * sent.same
