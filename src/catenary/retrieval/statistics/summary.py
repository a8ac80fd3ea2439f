"""Summary: everything the statistics say about one metric of outcomes, or about a published curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.reading import Reading, align, finite
from catenary.retrieval.outcomes import METRICS, Outcomes
from catenary.retrieval.records import MeanCurve
from catenary.retrieval.statistics.contrasts import SlotTest, contrasts, slot_tests, worst_slots
from catenary.retrieval.statistics.curve import SlotCurve, slot_curve
from catenary.retrieval.statistics.resolve import detectable, paired_sd
from catenary.retrieval.statistics.simultaneous import gaps_of_means, gaps_of_rows
from catenary.retrieval.statistics.verdict import (
    FEWEST,
    SMALLEST,
    SlotVerdict,
    binomial_variance,
    judge_slots,
    refused,
)
from catenary.statistics import small_sample_factor


@dataclass(frozen=True, eq=False)
class Summary:
    """One metric of outcomes by slot.

    Attributes:
        curve: means and bands.
        verdict: the shape in a word, in words, and its evidence.
        contrasts: paired contrasts with intervals.
        worst: (P,) share of resamples in which each slot is the lowest.
        against_best, against_worst: paired tests with Holm.
        paired_sd: standard deviation over samples of a difference of two slots; NaN with one sample.
        detectable: difference of two slots that these samples show with 80 % power; NaN with one sample, and where no
            sample differs between slots.
        occupancy: mean prompt length over the longest the model takes; NaN where either is unknown.
        baselines: mean by baseline for this metric, with n.
        notes: sentences for print.
    """

    curve: SlotCurve
    verdict: SlotVerdict
    contrasts: tuple[Reading, ...]
    worst: Float64[np.ndarray, " P"]
    against_best: tuple[SlotTest, ...]
    against_worst: tuple[SlotTest, ...]
    paired_sd: float
    detectable: float
    occupancy: float
    baselines: dict[str, tuple[float, int]]
    notes: tuple[str, ...]

    @property
    def metric(self) -> str:
        """The metric's name."""
        return self.curve.metric

    def table(self) -> str:
        """The verdict, its evidence, the curve and the contrasts as lines of text."""
        rows = [(r.name, *r.cells) for r in self.contrasts]
        worst = ", ".join(
            f"{self.curve.slots[j]} ({self.worst[j]:.0%})" for j in np.argsort(-self.worst)[:3] if self.worst[j] > 0.005
        )
        return "\n".join([
            f"{self.metric}: {self.verdict.words}", *(f"  {line}" for line in self.verdict.evidence), *self.notes,
            self.curve.table(), align(rows), f"worst slot, by resampling: {worst}",
        ])  # fmt: skip

    def to_dict(self) -> dict[str, object]:
        """Everything but the rows as JSON values."""
        return {
            "curve": self.curve.to_dict(), "verdict": self.verdict.to_dict(),
            "contrasts": [reading.to_dict() for reading in self.contrasts], "worst_share": self.worst.tolist(),
            "against_best": [vars(test) for test in self.against_best],
            "against_worst": [vars(test) for test in self.against_worst],
            "paired_sd": finite(self.paired_sd), "detectable": finite(self.detectable),
            "occupancy": finite(self.occupancy), "notes": list(self.notes),
            "baselines": {name: {"mean": mean, "n": n} for name, (mean, n) in self.baselines.items()},
        }  # fmt: skip


def summarise(
    outcomes: Outcomes, metric: str = "logp", seed: int = 0, smallest: float = SMALLEST, longest: int | None = None
) -> Summary:
    """All statistics of one metric of outcomes; the same seed gives the same numbers.

    Args:
        outcomes: paired results.
        metric: one that was scored; see ``METRICS``.
        seed: of the bootstrap and the sign flips.
        smallest: difference that the verdict ``flat`` excludes, in the metric's unit.
        longest: tokens the model takes, L_max; default: ``provenance["longest"]`` where that is recorded.

    Raises:
        InvalidInput: for an unknown metric, no complete sample, or a ``smallest`` not above 0.
    """
    if not smallest > 0:
        raise invalid("smallest", "must be above 0", smallest)
    curve = slot_curve(outcomes, metric, seed)
    occupancy, notes = _occupancy(outcomes, longest)
    spread = paired_sd(curve.rows) if len(curve.slots) > 1 else math.nan
    return Summary(
        curve, _verdict(curve, outcomes, seed, smallest), contrasts(curve, seed), worst_slots(curve, seed),
        *slot_tests(curve, seed), spread, detectable(curve.n, spread) if spread > 0 else math.nan,
        occupancy, _baselines(outcomes, metric), (*curve.lines(), *notes),
    )  # fmt: skip


def judge_means(curve: MeanCurve, seed: int = 0, smallest: float = SMALLEST) -> SlotVerdict:
    """The verdict on a published curve, from its means and n alone; whether it was paired is taken as unknown."""
    if len(curve.slots) < 2:
        return refused("one slot was measured; an end, a middle and an end are needed")
    x = np.array(curve.slots, dtype=np.float64) / max(curve.of - 1, 1)
    means = np.array(curve.means, dtype=np.float64)
    if curve.sd is not None:
        variance = np.array(curve.sd, dtype=np.float64) ** 2 / curve.n
    else:
        variance = binomial_variance(means, curve.n)
    gaps = gaps_of_means(means, variance, x, seed=seed)
    return judge_slots(gaps, curve.slots, curve.of, curve.n, binary=curve.binary, smallest=smallest)


def _verdict(curve: SlotCurve, outcomes: Outcomes, seed: int, smallest: float) -> SlotVerdict:
    if curve.n < FEWEST:
        return refused(f"{curve.n} samples; at least {FEWEST} that were scored at every slot are needed")
    if len(curve.slots) < 2:
        return refused("one slot was measured; an end, a middle and an end are needed")
    gaps = gaps_of_rows(curve.rows, curve.x, binary=curve.binary, seed=seed)
    closed = _over_closed_book(curve, outcomes)
    return judge_slots(
        gaps, curve.slots, curve.of, curve.n, binary=curve.binary, smallest=smallest, closed_book=closed
    )


def _over_closed_book(curve: SlotCurve, outcomes: Outcomes) -> tuple[float, float, float] | None:
    """Mean over slots less closed book, over samples that have both, with its 95 % Student interval."""
    closed = outcomes.baselines.get("closed book", {}).get(curve.metric)
    if closed is None:
        return None
    table = np.asarray(outcomes.values[curve.metric])
    gain = (table.mean(axis=1) - closed)[np.isfinite(table).all(axis=1) & np.isfinite(closed)]
    if len(gain) < FEWEST:
        return None
    n, mean = len(gain), float(gain.mean())
    reach = 1.959964 * small_sample_factor(n) * float(gain.std()) / math.sqrt(n)
    return mean, mean - reach, mean + reach


def _baselines(outcomes: Outcomes, metric: str) -> dict[str, tuple[float, int]]:
    found = {}
    for name, metrics in outcomes.baselines.items():
        if metric in metrics:
            known = metrics[metric][np.isfinite(metrics[metric])]
            if len(known):
                found[name] = (float(known.mean()), len(known))
    return found


def _occupancy(outcomes: Outcomes, longest: int | None) -> tuple[float, list[str]]:
    """Mean prompt length over L_max, and the sentence that says it."""
    lengths = np.array([count for row in outcomes.tokens for count in row if count > 0])
    if not len(lengths):
        return math.nan, ["Prompt lengths are unknown, and so is how full the context is."]
    known = longest if longest is not None else outcomes.provenance.get("longest")
    span = f"Prompts of {extent(lengths.min(), lengths.max())} tokens"
    if not isinstance(known, int) or known < 1:
        return math.nan, [f"{span}; how many the model takes is unknown."]
    share = float(lengths.mean() / known)
    return share, [f"{span}, on average {share:.1%} of the {known:,} that the model takes."]


def extent(low: int, high: int) -> str:
    """``376``, or ``376 to 1,402``."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def metrics_of(outcomes: Outcomes) -> tuple[str, ...]:
    """The metrics that were scored, in the order they are reported."""
    return tuple(name for name in METRICS if name in outcomes.values)
