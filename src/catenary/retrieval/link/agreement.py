"""How each predictor agrees with a measured curve: intervals over samples and prompts, permutation p, reliability."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.reading import finite
from catenary.retrieval.link.correlation import Curves, pearson, permutation_p, spearman, split_half
from catenary.retrieval.link.predictors import PREDICTORS
from catenary.retrieval.link.table import LinkTable, means
from catenary.retrieval.statistics.curve import SlotCurve

RESAMPLES = 2000
"""Draws: each tail of an interval rests on 50."""
FEWEST_SLOTS = 5
"""Slots below which no order of them is rarer than 1 in 20 by chance."""


@dataclass(frozen=True)
class Coefficient:
    """A correlation and its 95 % percentile interval over samples and prompts; NaN where it is not known.

    A resampled curve is noisier than the curve itself, so the interval lies below the point estimate, and may leave it
    out.
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def text(self) -> str:
        """As printed, with its sign."""
        if math.isnan(self.value):
            return "undefined"
        return f"{self.value:+.2f}" + ("" if math.isnan(self.low) else f" [{self.low:+.2f}, {self.high:+.2f}]")


@dataclass(frozen=True, eq=False)
class Agreement:
    """One predictor against one metric's curve.

    Attributes:
        predictor: its name in ``PREDICTORS``.
        spearman, pearson: over all slots; ``..._rest``: without the first slot. Pearson is of the predictor itself,
            not of its logarithm.
        p, p_rest: two-sided permutation p of the ranks, of this predictor alone.
        reliability, reliability_rest: split-half, of the predictor; 1 where it needs no prompt, NaN if unknown.
        over_edges: its Spearman coefficient less that of ``edges``, from the same draws.
        prompts: how many prompts it rests on.
        curve: (P,) its values over their mean; empty if it is missing.
        reason: why it is missing.
    """

    predictor: str
    spearman: Coefficient = Coefficient(math.nan)
    spearman_rest: Coefficient = Coefficient(math.nan)
    pearson: Coefficient = Coefficient(math.nan)
    pearson_rest: Coefficient = Coefficient(math.nan)
    p: float = math.nan
    p_rest: float = math.nan
    reliability: float = math.nan
    reliability_rest: float = math.nan
    over_edges: Coefficient = Coefficient(math.nan)
    prompts: int = 0
    curve: tuple[float, ...] = ()
    reason: str = ""

    @property
    def label(self) -> str:
        """As printed."""
        return PREDICTORS[self.predictor].label

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        record: dict[str, Any] = {"label": self.label, "meaning": PREDICTORS[self.predictor].meaning}
        for name, value in asdict(self).items():
            if isinstance(value, dict):
                record[name] = {end: finite(part) for end, part in value.items()}
            else:
                record[name] = finite(value) if isinstance(value, float) else value
        return record


@dataclass(frozen=True, eq=False)
class Link:
    """All predictors against one metric's curve.

    Attributes:
        metric: the curve's.
        reliability, reliability_rest: split-half reliability of the curve itself, with all slots and without the first.
        agreements: by predictor, in the order of ``PREDICTORS``.
        differences: by pair of predictors (a, b), the Spearman coefficient of a less that of b, from the same draws.
        samples, slots: how many the curve rests on.
    """

    metric: str
    reliability: float
    reliability_rest: float
    agreements: dict[str, Agreement]
    differences: dict[tuple[str, str], Coefficient]
    samples: int
    slots: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "metric": self.metric, "samples": self.samples, "slots": self.slots,
            "reliability": finite(self.reliability), "reliability_without_first": finite(self.reliability_rest),
            "predictors": [one.to_dict() for one in self.agreements.values()],
        }  # fmt: skip


def agree(curve: SlotCurve, table: LinkTable, seed: int = 0, resamples: int = RESAMPLES) -> Link:
    """Every predictor against a curve: the samples and the prompts must be disjoint.

    A draw takes whole samples and whole prompts with replacement, the same ones for every predictor. A predictor that
    is read at the gold slot alone is drawn within each slot, so that none is empty.

    Raises:
        InvalidInput: where the slots of curve and table differ, or fewer than two samples were scored everywhere.
    """
    if curve.slots != table.slots or curve.of != table.of:
        raise invalid("link", f"must be of the curve's slots {curve.slots}", table.slots)
    if curve.n < 2:
        raise invalid("samples", "must be two or more that were scored at every slot", curve.n)
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(curve.n, np.full(curve.n, 1 / curve.n), size=resamples) / curve.n
    target = np.concatenate([curve.mean[None], drawn @ curve.rows])
    prompts = np.concatenate([np.ones((1, table.n)), _drawn(table, generator, resamples, by_slot=False)])
    stratified = np.concatenate([np.ones((1, table.n)), _drawn(table, generator, resamples, by_slot=True)])
    found: dict[str, Curves] = {}
    agreements: dict[str, Agreement] = {}
    for name, predictor in PREDICTORS.items():
        if predictor.place is not None:
            found[name] = np.repeat(predictor.place(table.x)[None], len(target), axis=0)
            halves, count = (1.0, 1.0), 0
        else:
            logs = table.logs(name)
            if isinstance(logs, str):
                agreements[name] = Agreement(name, reason=logs)
                continue
            gold = predictor.where == "gold"
            found[name] = np.exp(means(logs, stratified if gold else prompts))
            known = np.isfinite(logs).any(axis=1)
            strata = [g for g, k in zip(table.gold, known, strict=True) if k]
            halves, count = split_half(logs[known], strata if gold else None, seed), int(known.sum())
        agreements[name] = _agreement(name, target, found[name], halves, count, seed)
    rho = {name: spearman(target, values) for name, values in found.items()}
    differences = {
        (a, b): _coefficient(rho[a] - rho[b], _certain(a, table) and _certain(b, table))
        for a in rho for b in rho if a != b
    }  # fmt: skip
    for name in rho:
        if name != "edges":
            agreements[name] = _with(agreements[name], over_edges=differences[name, "edges"])
    target_halves = split_half(curve.rows, None, seed)
    return Link(curve.metric, *target_halves, agreements, differences, curve.n, len(curve.slots))


def _with(one: Agreement, **changed: Any) -> Agreement:
    return Agreement(**{**vars(one), **changed})


def _certain(name: str, table: LinkTable) -> bool:
    """Whether draws say anything of a predictor: of a gold slot shown once they do not."""
    return PREDICTORS[name].where != "gold" or min(table.gold.count(j) for j in range(len(table.slots))) > 1


def _drawn(
    table: LinkTable, generator: np.random.Generator, resamples: int, *, by_slot: bool
) -> Float64[np.ndarray, "draw n"]:
    """How often each prompt is drawn."""
    golds = np.array(table.gold)
    groups = [np.flatnonzero(golds == g) for g in sorted(set(table.gold))] if by_slot else [np.arange(table.n)]
    weights = np.zeros((resamples, table.n))
    for group in groups:
        weights[:, group] = generator.multinomial(len(group), np.full(len(group), 1 / len(group)), size=resamples)
    return weights


def _agreement(
    name: str, target: Curves, values: Curves, halves: tuple[float, float], count: int, seed: int
) -> Agreement:
    """Row 0 of both is the estimate, the others are draws."""
    sure = count == 0 or not math.isnan(halves[0])
    slots = target.shape[1]
    own = values[0] / values[0].mean()
    return Agreement(
        name, _coefficient(spearman(target, values), sure),
        _coefficient(spearman(target[:, 1:], values[:, 1:]), sure), _coefficient(pearson(target, values), sure),
        _coefficient(pearson(target[:, 1:], values[:, 1:]), sure),
        p=permutation_p(target[0].tolist(), values[0].tolist(), seed),
        p_rest=permutation_p(target[0, 1:].tolist(), values[0, 1:].tolist(), seed) if slots > 3 else math.nan,
        reliability=halves[0], reliability_rest=halves[1], prompts=count, curve=tuple(own.tolist()),
    )  # fmt: skip


def _coefficient(drawn: Float64[np.ndarray, " draw"], sure: bool) -> Coefficient:
    """The first entry with the percentile interval of the others; none where one draw in twenty is undefined."""
    value, others = float(drawn[0]), drawn[1:][np.isfinite(drawn[1:])]
    if math.isnan(value) or not sure or len(others) < 0.95 * (len(drawn) - 1) or len(others) < 2:
        return Coefficient(value)
    low, high = np.quantile(others, [0.025, 0.975])
    return Coefficient(value, float(low), float(high))
