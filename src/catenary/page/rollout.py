"""The page of a rollout: the row against the Jacobian profile, and what every head does, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.blocks import Span
from catenary.charts import Spec, framed, log_axis, round_values
from catenary.deviation import Deviation, between
from catenary.drawing import PALETTE, digits
from catenary.page.exhibit import Exhibit, Plate
from catenary.reading import counted, finite, number
from catenary.sample import Sample
from catenary.study.rollout import RolloutStudy

MOST_POINTS = 512
"""Positions of a curve that are drawn; the data hold all."""

SPECTRUM = "blues"


def rollout_exhibit(found: RolloutStudy, parameters: Mapping[str, Any]) -> Exhibit:
    """One page for one network on one kind of windows.

    Args:
        found: from ``study_rollout``.
        parameters: what it was made from, as JSON values.
    """
    row, profile = found.rollout.profile("mean").values, found.jacobian.profile("log").values
    mass = row / row.sum()
    shape = profile / profile.sum()
    deviation = between(mass, shape)
    statistics = found.statistics
    strengths = found.rollout.provenance["rollout"]["schedule"]
    verdict = (
        f"The rollout gives {mass[0]:.1%} to the first token and {mass[-1]:.1%} to the last, the Jacobian profile "
        f"{shape[0]:.1%} and {shape[-1]:.1%}; in shape they differ by {number(deviation.median_shape)} dex in the "
        f"median over {len(mass):,} positions"
    )
    plates = (
        Plate(
            "rollout", _curves(mass, shape), f"Rollout and Jacobian profile by position. {verdict}",
            "Both normalised to sum 1: the rollout's mean row over windows, and the log-mean of ||J_j||_F. The rollout "
            "follows weights alone; values, feed-forward layers and attention scores are in the Jacobian only.",
        ),
        _heat("sink", "mass on the sinks", statistics.sink, f"sinks {list(statistics.sinks)}, 0-based"),
        *(
            (_heat("value_sink", "the sinks' share of what is written", statistics.value_sink,
                   "weights times the size of the value behind the output matrix"),)
            if np.isfinite(statistics.value_sink).any() else ()
        ),
        _heat("diagonal", "mass on the query itself", statistics.diagonal, "mean of A_ii over queries"),
    )
    table = _figures(deviation)
    return Exhibit(
        name="rollout", kicker="Measured attention", title=found.rollout.label, verdict=verdict,
        notes=_notes(found, mass), plates=plates,
        numbers=(
            ("windows", f"{found.rollout.sequences} of {found.rollout.length} tokens"),
            ("sum of strengths", number(sum(strengths))),
            ("mean mass on the sinks", number(float(statistics.sink.mean()))),
            ("of uniform causal attention", number(_uniform(statistics.sinks, statistics.length))),
            ("mean row entropy", f"{number(float(statistics.entropy.mean()))} nats"),
            ("sum of the row", number(float(row.sum()))),
        ),
        caption="Rollout against the Jacobian profile, both normalised to sum 1",
        columns=("figure", "value", "meaning"), rows=tuple((n, number(v), m) for n, v, m in table),
        fields=("position", "rollout", "rollout_normalised", "jacobian", "jacobian_normalised"),
        data=[
            (j, float(row[j]), float(mass[j]), float(profile[j]), float(shape[j])) for j in range(len(row))
        ],
        parameters=parameters,
        results={
            "figures": {name: finite(value) for name, value, _ in table},
            "strengths": list(strengths),
            "heads": statistics.records(),
            "violations": [
                {"layer": t, "rate": part.rate, "size": finite(part.size)}
                for t, part in enumerate(statistics.violations)
            ],
            "rows": _windows(found.rollout),
        },
    )  # fmt: skip


def _notes(found: RolloutStudy, mass: Float64[np.ndarray, " L"]) -> tuple[str, ...]:
    notes = [
        "Rank correlation cannot judge: every decreasing curve with a spike at its end scores alike. The errors in dex "
        "and the distances W1 can.",
    ]
    sinks = found.statistics.sink.mean(axis=(0, 2))
    top = int(sinks.argmax())
    notes.append(f"Mass on the sinks is largest in layer {top}: {sinks[top]:.1%} of all attention there.")
    if found.statistics.violations:
        rates = [part.rate for part in found.statistics.violations]
        notes.append(
            f"Later queries give more to the first keys than earlier ones in {min(rates):.1%} to {max(rates):.1%} of "
            "all triples, by layer: attention is not monotone there."
        )
    if found.rollout.sequences < 8:
        few = counted(found.rollout.sequences, "window")
        notes.append(f"{few}: single positions of a trained network scatter by 0.4 dex.")
    return (*notes, *found.statistics.notes)


def _uniform(sinks: tuple[int, ...], length: int) -> float:
    """Mass that uniform causal attention gives to these positions, averaged over queries."""
    seen = 1 / np.arange(1, length + 1)
    return float(sum(seen[position:].sum() for position in sinks) / length)


def _figures(found: Deviation) -> tuple[tuple[str, float, str], ...]:
    return (
        ("median shape", found.median_shape, "median |log10 rollout/Jacobian| after removing one overall factor, dex"),
        ("max shape", found.max_shape, "the largest"),
        ("W1", found.w1, "Wasserstein-1 over x = j/L"),
        ("W1 without last", found.w1_without_last, "the same without the last token"),
        *(
            (f"error {span.name}", float(value), f"median log10 ratio at positions {span.name}, one factor removed")
            for span, value in _by_region(found)
        ),
        ("Spearman", found.spearman, "rank correlation, as the papers print it"),
    )


def _by_region(found: Deviation) -> list[tuple[Span, float]]:
    return list(zip(found.spans, found.regions_shape.tolist(), strict=True))


def _windows(sample: Sample) -> list[list[float]]:
    return np.sqrt(sample.energy[0, 0, 0, :, 0]).tolist()  # type: ignore[no-any-return]  # numpy's own typing


def _curves(mass: Float64[np.ndarray, " L"], shape: Float64[np.ndarray, " L"]) -> Spec:
    length = len(mass)
    kept = np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round().astype(int)).tolist()
    names = ["rollout of attention", "Jacobian profile"]
    data: list[Spec] = [
        {"curve": name, "x": digits((j + 0.5) / length), "value": digits(float(values[j]))}
        for name, values in zip(names, (mass, shape), strict=True) for j in kept if values[j] > 0
    ]
    colour = {"field": "curve", "type": "nominal", "title": None, "sort": names,
              "scale": {"domain": names, "range": list(PALETTE[:2])}}
    y = log_axis("share of the whole", round_values(data))
    x = {"field": "x", "type": "quantitative", "title": "position as a fraction of the context",
         "scale": {"domain": [0, 1.01], "nice": False}, "axis": {"values": [0, 0.25, 0.5, 0.75, 1]}}
    spec: Spec = {"description": "Rollout and Jacobian profile by position", "params": [], "layer": [{
        "name": "line", "mark": {"type": "line", "strokeWidth": 1.6}, "encoding": {"x": x, "y": y, "color": colour},
    }]}
    return framed(spec, data, width=660, height=320)


def _heat(name: str, title: str, values: Float64[np.ndarray, "window layer head"], caption: str) -> Plate:
    mean = values.mean(axis=0)
    layers, heads = mean.shape
    data: list[Spec] = [
        {"layer": t, "head": h, "value": digits(float(mean[t, h]))}
        for t in range(layers) for h in range(heads) if np.isfinite(mean[t, h])
    ]
    axis = {"labelAngle": 0, "labelOverlap": True}
    spec: Spec = {"description": f"{title} by layer and head", "params": [], "layer": [{
        "name": "cells", "mark": {"type": "rect"},
        "encoding": {
            "x": {"field": "layer", "type": "ordinal", "title": "layer, from the bottom", "axis": axis},
            "y": {"field": "head", "type": "ordinal", "title": "head", "axis": axis},
            "color": {"field": "value", "type": "quantitative", "title": None,
                      "scale": {"scheme": SPECTRUM, "domainMin": 0},
                      "legend": {"format": ".2~g", "orient": "right", "gradientLength": 120}},
        },
    }]}
    highest = np.unravel_index(int(np.nanargmax(mean)), mean.shape)
    words = f"{title[0].upper()}{title[1:]}, by layer and head; largest {mean[highest]:.3g} in layer {highest[0]}, "
    chart = framed(spec, data, width=660, height=min(24 * heads + 40, 360))
    return Plate(name, chart, f"{words}head {highest[1]}.", f"{words}head {highest[1]}: {caption}.")
