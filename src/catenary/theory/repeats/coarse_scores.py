"""How gradients pass through attention scores on groups of positions and classes of frequency."""

from __future__ import annotations

import numpy as np

from catenary.theory.positions.pairs import Half, Pairs
from catenary.theory.repeats.averages import Averages, CoarseValues, Weights, times_each
from catenary.theory.repeats.coarse_law import CoarseLaw, CoarseNode, CoarseShape
from catenary.theory.repeats.sorts import Gradients, Sorts, Through


def through_scores(law: CoarseLaw, d: Gradients, values: CoarseValues) -> Through:
    """Gradients at keys and queries."""
    v, none = law.tables.variance, np.zeros_like(d.itself)
    keys = Through.zero(law.mean.f.shape[1], none.size)
    apart = v * (d.different * law.cosine.different), v * (d.equal * law.cosine.equal)
    _keys(law, Pairs(apart[0] + apart[1], none), law.other.response, None, values, keys)
    hats = list(zip(law.hats(law.cosine.different), law.hats(law.cosine.equal), strict=True))[1:]
    for (one, two), node in zip(hats, law.nodes, strict=True):
        _keys(law, Pairs(apart[0] * one + apart[1] * two, none), node.scores, node.excess, values, keys)
    own = Through.zero(law.mean.f.shape[1], none.size)
    lone = Pairs(np.zeros_like(keys.different), v * d.itself)
    _keys(law, lone, law.own.response, None, values, own)
    _keys(law, lone, law.single.scores, law.single.excess, values, own)
    pairs = _queries(law, law.other, law.other.response, None, values)
    found = [_queries(law, law.other, node.scores, node, values) for node in law.nodes]
    for (one, two), query in zip(hats, found, strict=True):
        own.different += v * d.plain_different * one * query.matrix
        own.equal += v * d.plain_equal * two * query.matrix
    own.different += v * d.plain_different * pairs.matrix
    own.equal += v * d.plain_equal * pairs.matrix
    single = _queries(law, law.own, law.own.response, None, values).same
    single = single + _queries(law, law.own, law.single.scores, law.single, values).same
    own.itself += v * d.plain_itself * single
    c = 1.0 if law.turning is None else law.turning
    return Through(keys.different + c * own.different, keys.equal + c * own.equal, keys.itself + own.itself)


def _keys(law: CoarseLaw, e: Pairs, f: Weights, excess: Sorts | None, values: CoarseValues, out: Through) -> None:
    x = values.x
    if excess is None:
        sent, rest = _centred(law, times_each(e, f.mean), values.half, values.both)
        out.different += sent.matrix * x.different + rest.matrix
    for m in range(out.itself.shape[0]):
        sent, rest = _centred(law, times_each(e, f.f[:, m]), values.halves[m], values.both)
        equal, itself = sent.matrix * x.equal + rest.matrix, sent.same * x.itself + rest.same
        out.equal[m] += equal if excess is None else excess.equal * equal
        out.itself[m] += itself if excess is None else excess.itself * itself


def _centred(law: CoarseLaw, e: Pairs, half: Half, both: Pairs) -> tuple[Pairs, Pairs]:
    sent = law.positions.adjoint(e)
    return sent.full, law.positions.adjoint_centred(e * both, sent.half * half)


def _queries(law: CoarseLaw, shape: CoarseShape, f: Weights, node: CoarseNode | None, values: CoarseValues) -> Pairs:
    """Sums of centred values times centred keys over two queries' attention."""
    total = Pairs(np.zeros_like(values.both.matrix), np.zeros_like(values.both.same))
    keys = Averages.of(shape.keys, law.positions)
    one = law.one
    spread = None
    if node is None:
        x, k = (Pairs(s.different, s.different.diagonal().copy()) for s in (values.x, shape.keys))
        mx, mk = law.positions.average(x), law.positions.average(k)
        spread = law.positions.average_centred(x * k, mx.half * mk.half).plus(mx.full * mk.full)
        total = times_each(spread, f.mean)
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
            q, p = law.mean.classes.share[m], law.mean.classes.repeat[m]
            w = f.f[:, m] * f.f[:, m][:, None] if many else f.f[:, m] ** 2
            by = at(values.by_class(m))
            centre = at(values.both) - by - (by.T if many else by)
            itself, equal = (own_x + centre) * own_key, (equal_x + centre) * equal_key
            if node is None:
                assert spread is not None
                result += q * w * (at(one.itself) * itself + p * at(one.equal) * (equal - at(spread)))
            else:
                result += q * w * (at(node.averages.itself) * itself + p * at(node.averages.equal) * equal)
        out.append(result)
    return Pairs(*out)


def _over(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y > 1e-12, x / np.maximum(y, 1e-12), 0.0)
