"""How a profile changes over training steps: valley, floor, ends, recency smear and joins, with paired intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.blocks import Blocks
from catenary.boundaries import Layout
from catenary.errors import invalid
from catenary.reading import Reading, finite
from catenary.sample import Sample
from catenary.statistics import RESAMPLES, interval, small_sample_factor

Curves = Float64[np.ndarray, "n L"]
Numbers = Float64[np.ndarray, " n"]

SMEARS = (0.10, 0.15)
"""The shares of the context over which arXiv 2603.10123 says that training smears the recency anchor backward."""


@dataclass(frozen=True, eq=False)
class Frame:
    """What the numbers of one condition and step share: blocks, and which are the highest and the lowest.

    Both stay fixed while resampling: picked anew in every draw, their ratio would be biased upwards.
    """

    blocks: Blocks
    peak: int
    trough: int
    joins: Layout | None

    def between(self, low: float, high: float) -> slice:
        """Positions with low <= x < high, the last one left out; at least one."""
        length = self.blocks.length
        start = min(round(low * length), length - 3)
        return slice(start, max(start + 1, min(round(high * length), length - 1)))


@dataclass(frozen=True)
class Measure:
    r"""One number of a profile at one step, from \(\ln\rho\), itself a logarithm (natural)."""

    name: str
    meaning: str
    formula: Callable[[Curves, Frame], Numbers]


def _block(logs: Curves, frame: Frame, index: int) -> Numbers:
    edges = frame.blocks.edges
    return np.asarray(logs[:, edges[index] : edges[index + 1]].mean(axis=1))


def _mid(logs: Curves, frame: Frame) -> Numbers:
    return np.asarray(logs[:, frame.between(0.45, 0.55)].mean(axis=1))


def _smear(logs: Curves, frame: Frame, width: float) -> Numbers:
    end, before = frame.between(1 - width, 1.0), frame.between(1 - 2 * width, 1 - width)
    return np.asarray(logs[:, end].mean(axis=1) - logs[:, before].mean(axis=1))


def _joins(logs: Curves, frame: Frame, shift: int) -> Numbers:
    assert frame.joins is not None
    return np.asarray(frame.joins.ratios(np.exp(logs), shift).mean(axis=1))


def _smear_measure(width: float) -> Measure:
    return Measure(
        f"smear {width:.0%}",
        f"log-mean over the last {width:.0%} without the last token, over that of as many tokens before",
        lambda logs, frame: _smear(logs, frame, width),
    )


SHAPE: tuple[Measure, ...] = (
    Measure("depth", "highest block over lowest block of the body",
            lambda logs, f: _block(logs, f, f.peak) - _block(logs, f, f.trough)),
    Measure("first/mid", "first token over the middle", lambda logs, f: logs[:, 0] - _mid(logs, f)),
    Measure("last/mid", "last token over the middle: the depth below the last token",
            lambda logs, f: logs[:, -1] - _mid(logs, f)),
    Measure("mid", "log-mean of ||J_j||_F over x in [.45, .55]: the middle itself", _mid),
    Measure("floor", "log-mean of ||J_j||_F over the lowest block", lambda logs, f: _block(logs, f, f.trough)),
    Measure("floor share", "the lowest block over the mean of the profile",
            lambda logs, f: _block(logs, f, f.trough) - np.log(np.exp(logs).mean(axis=1))),
    *(_smear_measure(width) for width in SMEARS),
)  # fmt: skip
JOINS: tuple[Measure, ...] = (
    Measure("boundary", "first token of a chunk over its neighbours; elsewhere the same places, a control",
            lambda logs, f: _joins(logs, f, 0)),
    Measure("off boundary", "the same half a chunk later: a control",
            lambda logs, f: _joins(logs, f, f.joins.chunk // 2 if f.joins else 0)),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Trace:
    """One number of one condition over the steps, as a ratio or a norm, with 95 % intervals where there are several.

    Attributes:
        change: its log10 at the last step minus that at the first, paired by sequence.
        highest: the same for the step where it is largest; its interval holds for all steps at once.
        highest_step: which step that is.
    """

    condition: str
    name: str
    meaning: str
    values: Float64[np.ndarray, " s"]
    low: Float64[np.ndarray, " s"] | None
    high: Float64[np.ndarray, " s"] | None
    change: Reading
    highest: Reading
    highest_step: int


@dataclass(frozen=True, eq=False)
class Evolution:
    """Every trace of a Sample over steps. ``sequences`` is the number of sequences that intervals are over."""

    label: str
    length: int
    steps: tuple[int, ...]
    conditions: tuple[str, ...]
    sequences: int
    chunk: int | None
    troughs: Mapping[str, tuple[float, ...]]
    traces: tuple[Trace, ...]

    def trace(self, condition: str, name: str) -> Trace | None:
        """One trace, None where that condition has none of that name."""
        return next((t for t in self.traces if (t.condition, t.name) == (condition, name)), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "label": self.label, "length": self.length, "steps": list(self.steps), "sequences": self.sequences,
            "chunk": self.chunk, "lowest_block": {c: list(x) for c, x in self.troughs.items()},
            "traces": [
                {
                    "condition": t.condition, "name": t.name, "meaning": t.meaning,
                    "values": [finite(float(v)) for v in t.values],
                    "low": None if t.low is None else [float(v) for v in t.low],
                    "high": None if t.high is None else [float(v) for v in t.high],
                    "change": t.change.to_dict(), "highest": t.highest.to_dict(), "highest_step": t.highest_step,
                }
                for t in self.traces
            ],
        }  # fmt: skip


def follow_training(sample: Sample, chunk: int | None = None, *, seed: int = 0) -> Evolution:
    r"""Follow a profile over the steps of a Sample.

    At every step the curve is the log-average over sequences, \(\ln\rho_j=\langle\ln\|J_j\|\rangle\), since single
    tokens of a trained network scatter by 0.4 dex. A bootstrap over sequences (1000 draws, ``seed``) takes the same
    draw at every step, so changes are paired. Intervals are 95 %, widened for few sequences. ``highest`` is the step
    with the largest value: its interval is simultaneous over all steps, \(D_t\pm c\,\text{se}_t\) with c the 95 %
    quantile of \(\max_t|D^*_t-D_t|/\text{se}_t\), so that "rises at some step" is said falsely in 5 % at most.

    Args:
        sample: one network, at least one step; steps ascend.
        chunk: c, where a condition is ``chunked``; the ratio at its joins is then followed in every condition.
        seed: of the bootstrap.

    Raises:
        InvalidInput: several networks, steps out of order, an energy of exactly 0, or a chunk that does not fit.

    Uncertainty is over sequences alone: another training run of the same recipe is not covered. Derived here, after
    figure 3 of arXiv 2603.10123.
    """
    if sample.nets != 1:
        raise invalid("sample", "must hold one network", sample.nets)
    if list(sample.steps) != sorted(set(sample.steps)):
        raise invalid("steps", "must ascend", sample.steps)
    energy = sample.energy[:, :, 0].mean(axis=3)
    if not (energy > 0).all():
        raise invalid("sample", "must have every energy > 0", "an energy of exactly 0", "use more probes")
    logs = 0.5 * np.log(energy)
    joins = Layout.of(sample.length, chunk) if chunk is not None and "chunked" in sample.conditions else None
    n = sample.sequences
    weights = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n if n > 1 else None
    measures = (*SHAPE, *(JOINS if joins is not None and joins.places().size else ()))
    traces: list[Trace] = []
    troughs: dict[str, tuple[float, ...]] = {}
    for index, condition in enumerate(sample.conditions):
        values, draws, places = _condition(logs[index], weights, joins, measures)
        troughs[condition] = places
        traces += [
            _trace(condition, measure, values[:, k], None if draws is None else draws[:, :, k], sample.steps, n)
            for k, measure in enumerate(measures)
        ]
    return Evolution(sample.label, sample.length, sample.steps, sample.conditions, n, chunk, troughs, tuple(traces))


def _condition(
    logs: Float64[np.ndarray, "s n L"], weights: Float64[np.ndarray, "r n"] | None, joins: Layout | None,
    measures: tuple[Measure, ...],
) -> tuple[Float64[np.ndarray, "s m"], Float64[np.ndarray, "s r m"] | None, tuple[float, ...]]:
    """Natural logarithms of every measure at every step, the same for every draw, and x of the lowest block."""
    blocks = Blocks(logs.shape[-1])
    values, draws, places = [], [], []
    for rows in logs:
        curve = rows.mean(axis=0, keepdims=True)
        b = blocks.means(curve)[0]
        frame = Frame(blocks, int(b.argmax()), int(b.argmin()), joins)
        places.append(float(blocks.centres[frame.trough]))
        values.append(np.concatenate([m.formula(curve, frame) for m in measures]))
        if weights is not None:
            drawn = weights @ rows
            draws.append(np.stack([m.formula(drawn, frame) for m in measures], axis=1))
    return np.stack(values), np.stack(draws) if weights is not None else None, tuple(places)


def _trace(
    condition: str, measure: Measure, values: Float64[np.ndarray, " s"], draws: Float64[np.ndarray, "s r"] | None,
    steps: tuple[int, ...], count: int,
) -> Trace:
    to_dex = 1 / np.log(10)
    gaps = (values - values[0]) * to_dex
    change = Reading("change", float(gaps[-1]), "log10, last step minus first, paired by sequence")
    top = 1 + int(gaps[1:].argmax()) if len(steps) > 1 else 0
    said = "log10, the step where it is largest minus the first"
    if draws is None:
        highest = Reading("highest", float(gaps[top]), said)
        return Trace(condition, measure.name, measure.meaning, np.exp(values), None, None, change, highest, steps[top])
    ends = [interval(float(v), d, count) for v, d in zip(values, draws, strict=True)]
    paired = (draws - draws[0]) * to_dex
    if len(steps) > 1:
        low, high = interval(float(gaps[-1]), paired[-1], count)
        change = Reading(change.name, change.value, change.meaning, low, high)
    reach = _simultaneous(paired[1:], count) if len(steps) > 1 else np.zeros(1)
    width = float(reach[max(top - 1, 0)])
    highest = Reading("highest", float(gaps[top]), said, float(gaps[top]) - width, float(gaps[top]) + width)
    low_ends, high_ends = np.exp(np.array(ends)).T
    return Trace(
        condition, measure.name, measure.meaning, np.exp(values), low_ends, high_ends, change, highest, steps[top]
    )


def _simultaneous(paired: Float64[np.ndarray, "s r"], count: int) -> Float64[np.ndarray, " s"]:
    """Half widths of intervals that hold for all steps at once."""
    away = paired - paired.mean(axis=1, keepdims=True)
    error = np.sqrt((away**2).mean(axis=1))
    ratio = np.abs(np.divide(away, error[:, None], out=np.zeros_like(away), where=error[:, None] > 0))
    critical = float(np.quantile(ratio.max(axis=0), 0.95))
    return np.asarray(critical * error * small_sample_factor(count))
