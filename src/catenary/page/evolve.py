"""The page of an evolution: maps of step by position, and valley, floor, ends, smear, joins and loss over steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.charts import Spec, banded_lines, colour_by, framed, round_values
from catenary.drawing import digits
from catenary.evolution import Evolution, Trace
from catenary.page.evolve_words import sentences
from catenary.page.exhibit import Exhibit, Plate
from catenary.reading import number
from catenary.sample import Sample

MOST_STEPS, MOST_PLACES = 41, 64
"""Cells of a map: more would make a page of many megabytes and could not be told apart."""

Series = tuple[str, Sequence[float], Trace | None]


def evolve_exhibit(
    sample: Sample, found: Evolution, losses: Sequence[float], parameters: Mapping[str, Any]
) -> Exhibit:
    """One page for one network in training, or a series of checkpoints.

    Args:
        sample: with dims (condition, step, ...), from ``evolve_model``.
        found: from ``follow_training`` of the same sample.
        losses: before each update, none where nothing was trained.
        parameters: what both were made from, as JSON values.
    """
    said = sentences(found)
    main = "vanilla" if "vanilla" in found.conditions else found.conditions[0]
    plates = [
        *(_map(sample, condition) for condition in found.conditions),
        _plate(found, "valley", [(main, "depth"), (main, "last/mid"), (main, "first/mid")], "ratio", said[0]),
        _relative(found, main, said[2]),
        _plate(
            found, "smear", [(c, f"smear {w}%") for c in found.conditions for w in (10, 15)],
            "end over as much before", said[3],
        ),
    ]  # fmt: skip
    if found.trace("chunked", "boundary") is not None:
        shown = [("chunked", "boundary"), ("chunked", "off boundary"), ("vanilla", "boundary")]
        plates.append(_plate(found, "joins", shown, "ratio to the neighbours", said[4]))
    if losses:
        plates.append(_loss(losses))
    return Exhibit(
        name="evolve", kicker=found.label, title="The profile over training", verdict=said[0],
        notes=(*said[1:], *_notes(found, losses)), plates=tuple(plates),
        numbers=(
            ("tokens", f"{found.length:,}"), ("steps", f"{found.steps[0]:,} to {found.steps[-1]:,}"),
            ("profiles", str(len(found.steps))), ("held-out windows of each kind", str(found.sequences)),
            *((("loss, first ten updates", number(float(np.mean(losses[:10])))),
               ("loss, last ten updates", number(float(np.mean(losses[-10:]))))) if losses else ()),
        ),
        caption="First and last step; changes in log10, with 95 % intervals over windows, paired",
        columns=("condition", "number", "first", "last", "change", "highest at", "meaning"),
        rows=tuple(_row(trace) for trace in found.traces),
        fields=("step", "condition", "number", "value", "low", "high"),
        data=[
            *((step, t.condition, t.name, float(t.values[k]), *_bounds(t, k))
              for t in found.traces for k, step in enumerate(found.steps)),
            *((step, "training", "loss", float(loss), None, None) for step, loss in enumerate(losses)),
        ],
        parameters=parameters, results={**found.to_dict(), "losses": list(losses)},
    )  # fmt: skip


def _notes(found: Evolution, losses: Sequence[float]) -> list[str]:
    notes = [
        f"Curves are log-averages over {found.sequences} held-out windows, the same at every step and with the same "
        "probes. Intervals are over windows: another run of the training is another network and is not covered.",
    ]
    if losses:
        notes.append("No document that is measured was trained on; documents may share passages.")
    return notes


def _bounds(trace: Trace, index: int) -> tuple[float | None, float | None]:
    if trace.low is None or trace.high is None:
        return None, None
    return float(trace.low[index]), float(trace.high[index])


def _row(trace: Trace) -> tuple[str, ...]:
    ends = tuple(
        number(float(trace.values[k])) + ("" if trace.low is None or trace.high is None else
                                          f" [{number(float(trace.low[k]))}, {number(float(trace.high[k]))}]")
        for k in (0, -1)
    )  # fmt: skip
    return (trace.condition, trace.name, *ends, trace.change.text, f"step {trace.highest_step}", trace.meaning)


def _map(sample: Sample, condition: str) -> Plate:
    """log10 of the log-averaged profile over its own mean, by step and by stretch of positions."""
    index = sample.conditions.index(condition)
    logs = 0.5 * np.log10(sample.energy[index, :, 0].mean(axis=2)).mean(axis=1)
    logs = logs - np.log10((10**logs).mean(axis=1, keepdims=True))
    length = sample.length
    edges = np.unique(np.linspace(0, length, min(length, MOST_PLACES) + 1).round().astype(int))
    cells = np.add.reduceat(logs, edges[:-1], axis=1) / np.diff(edges)
    kept = np.unique(np.linspace(0, len(sample.steps) - 1, min(len(sample.steps), MOST_STEPS)).round().astype(int))
    data: list[Spec] = [
        {"step": sample.steps[s], "place": int(edges[p]), "value": digits(float(cells[s, p]))}
        for s in kept for p in range(len(edges) - 1)
    ]
    step = max(1, (len(edges) - 1) // 8)
    spec: Spec = {"description": f"profile by step and position, {condition}", "params": [], "layer": [{
        "name": "cells", "mark": {"type": "rect"},
        "encoding": {
            "x": {"field": "place", "type": "ordinal", "title": "position, from 0",
                  "axis": {"labelAngle": 0, "values": [int(e) for e in edges[:-1:step]]}},
            "y": {"field": "step", "type": "ordinal", "title": "step", "sort": "descending",
                  "axis": {"labelOverlap": True}},
            "color": {"field": "value", "type": "quantitative", "title": None, "scale": {"scheme": "viridis"},
                      "legend": {"format": ".2~g", "orient": "right", "gradientLength": 160}},
        },
    }]}  # fmt: skip
    words = f"log10 of the profile over its own mean, {condition} windows"
    return Plate(
        f"map-{condition}", framed(spec, data, width=600, height=300), f"{words}, by step and position.",
        f"{words}; a cell is the mean over {length // (len(edges) - 1)} positions or so, and step 0 is at the bottom.",
    )


def _plate(found: Evolution, name: str, shown: Sequence[tuple[str, str]], title: str, said: str) -> Plate:
    traces = [t for t in (found.trace(*key) for key in shown) if t is not None]
    series = [(f"{t.name}, {t.condition}", [float(v) for v in t.values], t) for t in traces]
    meanings = list(dict.fromkeys(f"{t.name}: {t.meaning}" for t in traces))
    return Plate(
        name, _lines(found.steps, series, f"{title} (log)"), said,
        f"{'; '.join(meanings)}. Bands are 95 % over windows.",
    )


def _relative(found: Evolution, condition: str, said: str) -> Plate:
    names = ("mid", "floor", "floor share")
    traces = [t for t in (found.trace(condition, name) for name in names) if t is not None]
    series: list[Series] = [(t.name, [float(v / t.values[0]) for v in t.values], None) for t in traces]
    return Plate(
        "floor", _lines(found.steps, series, "over its value at the first step (log)"), said,
        "; ".join(f"{t.name}: {t.meaning}" for t in traces) + f". {condition.capitalize()} windows.",
    )


def _loss(losses: Sequence[float]) -> Plate:
    kept = np.unique(np.linspace(0, len(losses) - 1, min(len(losses), 500)).round().astype(int))
    series: list[Series] = [("loss", [float(losses[k]) for k in kept], None)]
    chart = _lines([int(k) for k in kept], series, "nats per token (log)")
    return Plate("loss", chart, f"Training loss from {losses[0]:.3g} to {losses[-1]:.3g}.",
                 "Cross-entropy of the windows of each update, before it.")


def _lines(steps: Sequence[int], series: Sequence[Series], y_title: str) -> Spec:
    data: list[Spec] = []
    for name, values, trace in series:
        for k, step in enumerate(steps):
            row: Spec = {"curve": name, "step": step, "value": digits(values[k])}
            if trace is not None and trace.low is not None and trace.high is not None:
                row |= {"low": digits(float(trace.low[k])), "high": digits(float(trace.high[k]))}
            data.append(row)
    names = [name for name, _, _ in series]
    colour = colour_by(names)
    x = {"field": "step", "type": "quantitative", "title": "step", "scale": {"nice": False},
         "axis": {"format": ",d", "tickMinStep": 1}}
    y = {"field": "value", "type": "quantitative", "title": y_title,
         "scale": {"type": "log", "nice": False, "padding": 8},
         "axis": {"format": ".3~g", "values": _ticks(data)}}
    layers = banded_lines({"x": x, "y": y, "color": colour}, point=16)
    return framed({"description": y_title, "params": [], "layer": layers}, data, width=660, height=280)


def _ticks(data: Sequence[Spec]) -> list[float]:
    """Round numbers within the data; five of them evenly spread where that leaves fewer than two."""
    ends: Float64[np.ndarray, " n"] = np.array(
        [row[key] for row in data for key in ("value", "low", "high") if key in row], dtype=np.float64
    )
    low, high = float(ends.min()), float(ends.max())
    found = [tick for tick in round_values(data) if low <= tick <= high]
    return found if len(found) > 1 else [float(f"{v:.3g}") for v in np.linspace(low, high, 5)]
