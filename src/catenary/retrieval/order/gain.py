"""What an order of documents gains, from samples that did not choose it, averaged over the ranks a retriever gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.reading import number
from catenary.retrieval.order.assign import EDGES, PLAIN, SlotWeights, between, by_weight
from catenary.retrieval.order.ranks import rank_shares
from catenary.retrieval.statistics.curve import SlotCurve
from catenary.statistics import interval

SEPARATIONS = (0.5, 1.0, 2.0, math.inf)
"""Retrievers: of 10 documents they put the fact's first in 20, 34, 67 and 100 cases of 100."""
SPLITS = 200
"""Random halves: each sample is then judged by about 100 orders that it had no part in."""
SPLITS_OF_A_DRAW = 20
"""Halves repeated in every bootstrap draw: one alone would add its own scatter to the interval."""
_BATCH = 4_000_000
"""Numbers held at once."""
RESAMPLES = 1000
"""Bootstrap resamples: each tail of a 95 % interval rests on 25."""
FEWEST = 8
"""Complete samples below which no gain is reported: each half then has four."""
MEASURED = "measured curve"
"""Name of the order by the measured curve."""


@dataclass(frozen=True)
class Estimate:
    """A mean over samples with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """As printed, with its sign."""
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"

    def to_dict(self) -> dict[str, float]:
        """As JSON values."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, eq=False)
class Gains:
    """Held-out gains over documents in an order that says nothing of their relevance.

    Attributes:
        metric: what is gained, in its unit.
        documents: K, the slots of the prompt.
        n: samples.
        separations: d' of each retriever.
        given: mean score where the fact is equally likely at every slot.
        gain: by order and separation.
        over: the measured order less another order, by that order and separation.
        edges: the two edge orders' difference, best first less LongContextReorder's, by separation.
        agreement: share of splits whose calibration half gave the same best slot as all samples.
    """

    metric: str
    documents: int
    n: int
    separations: tuple[float, ...]
    given: float
    gain: Mapping[str, tuple[Estimate, ...]]
    over: Mapping[str, tuple[Estimate, ...]]
    edges: tuple[Estimate, ...]
    agreement: float

    def to_dict(self) -> dict[str, object]:
        """As JSON values; a perfect retriever's separation is the text ``perfect``."""
        return {
            "metric": self.metric, "documents": self.documents, "n": self.n, "given": self.given,
            "separations": [separation_name(d) for d in self.separations], "agreement": self.agreement,
            "gain": {name: [e.to_dict() for e in row] for name, row in self.gain.items()},
            "measured_over": {name: [e.to_dict() for e in row] for name, row in self.over.items()},
            "edges_best_first_over_long_context_reorder": [e.to_dict() for e in self.edges],
        }  # fmt: skip


def separation_name(separation: float) -> str:
    """``perfect``, or the number."""
    return "perfect" if math.isinf(separation) else number(separation)


def slot_rows(curve: SlotCurve, documents: int) -> Float64[np.ndarray, "n K"]:
    """Each sample's scores at the slots of K documents, linear between the places that were measured.

    Where every slot of K documents was measured these are the scores themselves.
    """
    if len(curve.slots) < 2:
        raise invalid("curve", "must have two slots or more", len(curve.slots))
    return np.asarray(curve.rows @ between(curve.x, documents).T)


def expected_gains(
    curve: SlotCurve,
    documents: int | None = None,
    separations: Sequence[float] = SEPARATIONS,
    predicted: Mapping[str, SlotWeights] | None = None,
    *,
    splits: int = SPLITS,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Gains:
    r"""Gain of each order over the given one, in expectation over the rank of the fact's document.

    For an order that puts rank r into slot \(s_r\), sample i gains
    \(g_i=\sum_r P_r\,Y_{i,s_r}-\frac1K\sum_s Y_{is}\): Y the paired scores, P from ``rank_shares``. No rank is drawn.
    The other documents count as exchangeable. The measured order comes from one random half of the samples and is
    judged on the other, in the mean over splits. Intervals are bootstraps over samples, widened for few; every draw
    repeats the splits, so that the luck of the calibration half counts. Draws are shared by the orders, so differences
    are paired.

    Args:
        curve: the paired scores of one metric.
        documents: K; default: as many as the prompts had.
        separations: d' of the retrievers.
        predicted: further orders, from weights that did not come from these samples.
        splits, seed, resamples: of the halves and the bootstrap.

    Raises:
        InvalidInput: with fewer than 8 complete samples, fewer than 2 documents, or no split.
    """
    if curve.n < FEWEST:
        raise invalid("samples", f"must be at least {FEWEST} scored at every slot to hold half of them out", curve.n)
    count = curve.of if documents is None else documents
    if count < 2:
        raise invalid("documents", "must be at least 2", count)
    if splits < 1:
        raise invalid("splits", "must be at least 1", splits)
    scores = slot_rows(curve, count)
    shares = np.array([rank_shares(count, d) for d in separations])
    fixed = {name: order(count) for name, order in PLAIN.items()}
    fixed |= {name: by_weight(weights.at(count)) for name, weights in (predicted or {}).items()}
    generator = np.random.default_rng(seed)
    halves = _halves(curve.n, splits, generator)
    once = np.full((1, curve.n), 1 / curve.n)
    held = _held_out(scores, shares, once, halves)
    drawn = generator.multinomial(curve.n, once[0], size=resamples) / curve.n
    luck = _held_out(scores, shares, drawn, halves[:SPLITS_OF_A_DRAW])
    own, own_draws = held[0], held[0] + luck - luck.mean(axis=0)

    given = scores.mean(axis=1, keepdims=True)
    each = {name: scores[:, list(ranks)] @ shares.T - given for name, ranks in fixed.items()}
    mean = {name: table.mean(axis=0) for name, table in each.items()}
    draws = {name: drawn @ table for name, table in each.items()}

    def estimates(value: Float64[np.ndarray, " s"], spread: Float64[np.ndarray, "resample s"]) -> tuple[Estimate, ...]:
        ends = [interval(float(v), spread[:, j], curve.n) for j, v in enumerate(value)]
        return tuple(Estimate(float(v), low, high) for v, (low, high) in zip(value, ends, strict=True))

    first, last = EDGES
    return Gains(
        curve.metric, count, curve.n, tuple(float(d) for d in separations), float(given.mean()),
        {MEASURED: estimates(own, own_draws), **{name: estimates(mean[name], draws[name]) for name in fixed}},
        {name: estimates(own - mean[name], own_draws - draws[name]) for name in fixed},
        estimates(mean[first] - mean[last], draws[first] - draws[last]), _agreement(scores, halves),
    )  # fmt: skip


def _halves(n: int, splits: int, generator: np.random.Generator) -> Float64[np.ndarray, "split n"]:
    """1 where a sample belongs to the calibration half (n // 2 of them), one row per split."""
    order = generator.permuted(np.broadcast_to(np.arange(n), (splits, n)), axis=1)
    return (order < n // 2).astype(np.float64)


def _held_out(
    scores: Float64[np.ndarray, "n K"],
    shares: Float64[np.ndarray, "s K"],
    weights: Float64[np.ndarray, "draw n"],
    halves: Float64[np.ndarray, "split n"],
) -> Float64[np.ndarray, "draw s"]:
    """Gain of the calibration half's order in the other half, mean over splits, one row per weighting of the samples.

    A sample drawn several times lies whole in one half, so no half knows the other.
    """
    found = np.empty((len(weights), len(shares)))
    step = max(1, _BATCH // halves.size)
    for start in range(0, len(weights), step):
        part = weights[start : start + step, None, :]
        calibration, judged = part * halves, part * (1 - halves)
        known = (calibration.sum(axis=2) > 0) & (judged.sum(axis=2) > 0)
        total = np.where(known, judged.sum(axis=2), 1)[..., None]
        curve = judged @ scores / total
        ranks = np.argsort(-(calibration @ scores), axis=2, kind="stable")
        gain = np.take_along_axis(curve, ranks, axis=2) @ shares.T - curve.mean(axis=2, keepdims=True)
        found[start : start + step] = (gain * known[..., None]).sum(axis=1) / np.maximum(known.sum(axis=1), 1)[:, None]
    return found


def _agreement(scores: Float64[np.ndarray, "n K"], halves: Float64[np.ndarray, "split n"]) -> float:
    """Share of splits whose calibration half has the same best slot as all samples."""
    return float(np.mean((halves @ scores).argmax(axis=1) == scores.mean(axis=0).argmax()))


@dataclass(frozen=True)
class OrderVerdict:
    """Whether measuring the curve pays: one word, and the sentence with its numbers."""

    word: str
    words: str
    notes: tuple[str, ...] = field(default=())


ROUNDING = 1e-12
"""Gains below this are rounding: a retriever that knows nothing gives every order a gain of 0."""
AS_GOOD = 0.9
"""A plain order that brings this share of the measured order's gain is called as good: edge orders brought .91 or more
of it where a measured curve was told to be worth no claim."""


def judge_order(gains: Gains, separation: float = 1.0) -> OrderVerdict:
    """``nothing``, ``plain order``, or ``measured``: what to do at one retriever's strength, from held-out gains.

    - nothing: the interval of the measured order's gain reaches 0;
    - plain order: a plain order's difference to it is not resolved, or brings at least .9 of its gain;
    - measured: it is better than every plain order by more than that.
    """
    if separation not in gains.separations:
        known = ", ".join(separation_name(d) for d in gains.separations)
        raise invalid("separation", f"must be one of {known}", separation)
    at = gains.separations.index(separation)
    own, where = gains.gain[MEASURED][at], f"at d' = {separation_name(separation)}"
    plain = {name: gains.gain[name][at] for name in PLAIN}
    best = max(plain, key=lambda name: plain[name].value)
    notes = _edge_note(gains, at)
    if own.low <= ROUNDING:
        words = (
            f"Nothing is to be gained that {gains.n} samples resolve: the order by the measured curve gains {own.text} "
            f"{gains.metric} over the given order {where}."
        )
        return OrderVerdict("nothing", words, notes)
    enough = [
        name for name in PLAIN
        if gains.over[name][at].low <= ROUNDING or plain[name].value >= AS_GOOD * own.value
    ]  # fmt: skip
    if enough:
        name = max(enough, key=lambda name: plain[name].value)
        kind = "A plain edge order" if name.startswith("edges") else "A plain order"
        share = f"brings {plain[name].value / own.value:.0%} of what can be gained"
        as_good = "is as good" if gains.over[name][at].low <= ROUNDING else share
        words = (
            f"{kind} {as_good}: {name} gains {plain[name].text} {gains.metric} over the given order {where}, the "
            f"measured curve {own.text} (difference {gains.over[name][at].text})."
        )
        return OrderVerdict("plain order", words, notes)
    words = (
        f"The measured curve helps: {own.text} {gains.metric} over the given order {where}, and "
        f"{gains.over[best][at].text} over the best plain order ({best})."
    )
    return OrderVerdict("measured", words, notes)


def _edge_note(gains: Gains, at: int) -> tuple[str, ...]:
    """Which end is the better one, where the two edge orders differ beyond chance."""
    gap = gains.edges[at]
    if gap.low <= 0 <= gap.high:
        return ()
    better, worse = ("best first", "LongContextReorder's") if gap.low > 0 else ("LongContextReorder's", "best first")
    size = Estimate(abs(gap.value), *sorted((abs(gap.low), abs(gap.high))))
    return (f"Of the two edge orders {better} is better than {worse} by {size.text}.",)
