"""The curve: a metric's mean at each slot of the fact, with 95 % bands over samples that visited every slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.reading import align, finite
from catenary.retrieval.outcomes import Outcomes
from catenary.statistics import interval

RESAMPLES = 4000
"""Bootstrap resamples: each tail of a 95 % interval then rests on 100 draws."""

REASONS = 3
"""Reasons that a sentence names; a length in tokens makes one of nearly every prompt that is too long."""

Resampled = Float64[np.ndarray, "resample P"]


@dataclass(frozen=True, eq=False)
class SlotCurve:
    """Mean of a metric at each of P slots over the n samples scored at all of them.

    Attributes:
        metric: name of the metric.
        slots: the slots measured, 0-based.
        of: how many slots the prompt has.
        rows: (n, P) the complete rows.
        low, high: (P,) 95 % band of each mean, pointwise; NaN with one sample.
        offered: samples in the outcomes, complete or not.
        missing: (P,) samples that were not scored at a slot.
        available: (P,) means over every sample scored at a slot, complete or not; NaN where there is none. Where it
            differs from ``mean``, the samples left out are unlike the others.
        reasons: why cells were not scored, with counts.
    """

    metric: str
    slots: tuple[int, ...]
    of: int
    rows: Float64[np.ndarray, "n P"]
    low: Float64[np.ndarray, " P"]
    high: Float64[np.ndarray, " P"]
    offered: int
    missing: tuple[int, ...]
    available: Float64[np.ndarray, " P"]
    reasons: Mapping[str, int]

    @property
    def n(self) -> int:
        """Complete samples."""
        return int(self.rows.shape[0])

    @property
    def mean(self) -> Float64[np.ndarray, " P"]:
        """Mean over the complete samples."""
        return np.asarray(self.rows.mean(axis=0))

    @property
    def error(self) -> Float64[np.ndarray, " P"]:
        r"""Standard error of each mean, \(s/\sqrt n\); NaN with one sample."""
        if self.n < 2:
            return np.full(len(self.slots), np.nan)
        return np.asarray(self.rows.std(axis=0, ddof=1) / np.sqrt(self.n))

    @property
    def binary(self) -> bool:
        """Whether every outcome is 0 or 1; a log-probability never is."""
        return self.metric != "logp"

    @property
    def x(self) -> Float64[np.ndarray, " P"]:
        """Place of each slot in the prompt, 0 first to 1 last; 0 where the prompt has a single slot."""
        return np.array(self.slots, dtype=np.float64) / max(self.of - 1, 1)

    def lines(self) -> list[str]:
        """Sentences on samples left out; none where every sample is complete."""
        if self.n == self.offered:
            return []
        why = "; ".join(f"{reason}: {count}" for reason, count in list(self.reasons.items())[:REASONS])
        rest = sum(list(self.reasons.values())[REASONS:])
        why = f"{why}; {rest} more for {len(self.reasons) - REASONS} other reasons" if rest else why
        return [
            f"{self.offered - self.n} of {self.offered} samples were not scored at every slot and are left out "
            f"(cells by reason: {why}). Cells missing by slot: {', '.join(map(str, self.missing))}."
        ]

    def table(self) -> str:
        """One line per slot: mean, band, standard error, cells missing."""
        rows: list[tuple[str, ...]] = [("slot", self.metric, "95 %", "s.e.", "missing")]
        for j, slot in enumerate(self.slots):
            band = f"{self.low[j]:.3f} to {self.high[j]:.3f}" if np.isfinite(self.low[j]) else "unknown"
            error = f"{self.error[j]:.3f}" if self.n > 1 else "unknown"
            rows.append((str(slot), f"{self.mean[j]:.3f}", band, error, str(self.missing[j])))
        return align(rows)

    def to_dict(self) -> dict[str, object]:
        """The curve as JSON values, without its rows."""
        return {
            "metric": self.metric, "slots": list(self.slots), "of": self.of, "n": self.n, "offered": self.offered,
            "mean": self.mean.tolist(), "low": [finite(v) for v in self.low], "high": [finite(v) for v in self.high],
            "standard_error": [finite(v) for v in self.error], "missing": list(self.missing),
            "available_mean": [finite(v) for v in self.available], "reasons": dict(self.reasons),
        }  # fmt: skip


def slot_curve(outcomes: Outcomes, metric: str = "logp", seed: int = 0, resamples: int = RESAMPLES) -> SlotCurve:
    r"""The curve of one metric of outcomes.

    Bands are 95 % bootstrap intervals over samples (whole rows, so slots stay paired), widened for a small number of
    samples. Of a binary metric they are Wilson's, \(\frac{\hat p+z^2/2n\pm z\sqrt{\hat p(1-\hat p)/n+z^2/4n^2}}
    {1+z^2/n}\), which keep their width where every sample agrees and a bootstrap has none.

    Raises:
        InvalidInput: for an unknown metric, or where no sample was scored at every slot.
    """
    rows = outcomes.complete(metric)
    table = np.asarray(outcomes.values[metric])
    scored = np.isfinite(table)
    counted = Counter(
        outcomes.skipped[i][j] or "not scored, no reason recorded" for i, j in zip(*np.nonzero(~scored), strict=True)
    )
    if not len(rows):
        why = "; ".join(f"{reason} ({count})" for reason, count in counted.most_common(REASONS))
        raise invalid("samples", f"must hold one that was scored at every slot by {metric}", "none", why)
    sums, counts = np.where(scored, table, 0).sum(axis=0), scored.sum(axis=0)
    low, high = _bands(rows, metric != "logp", seed, resamples)
    return SlotCurve(
        metric, tuple(int(slot) for slot in outcomes.slots), outcomes.of, rows, low, high, len(table),
        tuple(int(count) for count in (~scored).sum(axis=0)), np.asarray(sums / np.maximum(counts, 1)),
        dict(counted.most_common()),
    )  # fmt: skip


def resampled(rows: Float64[np.ndarray, "n P"], seed: int = 0, resamples: int = RESAMPLES) -> Resampled:
    """Means of ``resamples`` draws of n rows with replacement (Efron 1979); the same seed gives the same draws."""
    n = len(rows)
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    return np.asarray((weights / n) @ rows)


def wilson(share: Float64[np.ndarray, " P"], n: int, z: float = 1.959964) -> Float64[np.ndarray, "2 P"]:
    """Wilson's 95 % interval of shares of n samples, lower and upper."""
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return np.asarray(np.clip(np.stack([centre - half, centre + half]), 0.0, 1.0))


def _bands(
    rows: Float64[np.ndarray, "n P"], binary: bool, seed: int, resamples: int
) -> tuple[Float64[np.ndarray, " P"], Float64[np.ndarray, " P"]]:
    mean = rows.mean(axis=0)
    if binary:
        low, high = wilson(mean, len(rows))
        return low, high
    if len(rows) < 2:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    draws = resampled(rows, seed, resamples)
    ends = [interval(float(mean[j]), draws[:, j], len(rows)) for j in range(len(mean))]
    return np.array([low for low, _ in ends]), np.array([high for _, high in ends])
