"""The page of joins: how far the first token of a chunk stands out, and the curve inside chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from catenary.boundaries import BoundaryEffect
from catenary.charts import INK, Spec, banded_lines, colour_by, framed, log_axis
from catenary.drawing import PALETTE, digits
from catenary.page.exhibit import Exhibit, Plate
from catenary.reading import number

MOST_CURVES = len(PALETTE)

RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20)
"""Ticks of an axis of ratios: closer near 1, where most of them are."""


def boundary_exhibit(effects: Mapping[str, BoundaryEffect], parameters: Mapping[str, Any]) -> Exhibit:
    """One page for the curves of a run, those with joins first.

    Args:
        effects: by the curve's name, from ``join_effects``; the first ``MOST_CURVES`` are drawn.
        parameters: what the run was made from, as JSON values.
    """
    first = next(iter(effects.values()))
    sentences = [sentence(name, effect) for name, effect in effects.items()]
    drawn = dict(list(effects.items())[:MOST_CURVES])
    plates = (
        Plate(
            "alignments", _alignments(drawn), "Ratio to the neighbours by distance from the join. " + sentences[0],
            "A token's influence over that of its neighbours, by its distance behind a join; 0 is the first token of a "
            "chunk, and every other distance is a control.",
        ),
        Plate(
            "inside", _inside(drawn), "Influence by place inside a chunk, relative to the chunk's mean.",
            "The average curve inside whole chunks, over the chunk's own log-mean, with its 95 % band.",
        ),
    )  # fmt: skip
    columns = ("curve", "boundary ratio", "misaligned", "rank", "> 2", "> 5")
    rows = tuple(
        (name, *(effect[r].text for r in ("boundary ratio", "misaligned ratio", "alignment rank")),
         *(number(effect[f"share above {bound}"].value) for bound in (2, 5)))
        for name, effect in effects.items()
    )  # fmt: skip
    return Exhibit(
        name="boundaries", kicker="Joined excerpts", title="What joins do to the profile", verdict=sentences[0],
        notes=(
            *sentences[1:],
            f"Neighbours are the tokens {first.layout.near} to {first.layout.far} away on both sides, so a slope "
            f"across a join cancels. Intervals are 95 % over {first.unit}s. A curve without joins is a control: "
            "it shows what the same places show by chance.",
        ),
        numbers=(("tokens", f"{first.layout.length:,}"), ("chunk", str(first.layout.chunk)),
                 ("joins looked at", str(first.layout.places().size))),
        plates=plates, caption="First token of a chunk over its neighbours", columns=columns, rows=rows,
        fields=("curve", "place", "ratio_to_chunk", "low", "high", "ratio_to_neighbours"),
        data=[
            (name, record["place"], record["ratio_to_chunk"], record["low"], record["high"],
             None if np.isnan(aligned) else float(aligned))
            for name, effect in effects.items()
            for record, aligned in zip(effect.records(), effect.alignments, strict=True)
        ],
        parameters=parameters, results={name: effect.to_dict() for name, effect in effects.items()},
    )  # fmt: skip


def sentence(name: str, effect: BoundaryEffect) -> str:
    """What one curve shows at its joins, in a sentence that claims no more than its interval."""
    ratio, rank = effect["boundary ratio"], effect["alignment rank"]
    if ratio.low is None or ratio.high is None:
        return f"{name}: the first token of a chunk is {ratio.text} times its neighbours, without an interval."
    shown = f"{number(ratio.value)} times its neighbours (95 %: {number(ratio.low)} to {number(ratio.high)})"
    if ratio.low <= 1 <= ratio.high:
        return f"{name}: no spike at joins can be told from noise; the first token of a chunk is {shown}."
    known = int(np.isfinite(effect.alignments).sum())
    if rank.value not in (1, known):
        return (
            f"{name}: the first token of a chunk is {shown}, but it is number {rank.value:.0f} of {known} alignments: "
            "other places in the chunk stand out as much, so joins are not the reason."
        )
    word, extreme = ("spike", "largest") if ratio.value > 1 else ("dip", "smallest")
    return f"{name}: a {word} at joins; the first token of a chunk is {shown}, the {extreme} of {known} alignments."


def _alignments(effects: Mapping[str, BoundaryEffect]) -> Spec:
    data: list[Spec] = []
    for name, effect in effects.items():
        chunk = effect.layout.chunk
        for shift in range(-(chunk // 2), chunk - chunk // 2):
            value = float(effect.alignments[shift % chunk])
            if np.isfinite(value):
                data.append({"curve": name, "x": shift, "value": digits(value)})
    return _lines(data, list(effects), "tokens behind the join", "ratio to the neighbours")


def _inside(effects: Mapping[str, BoundaryEffect]) -> Spec:
    data: list[Spec] = []
    for name, effect in effects.items():
        for record in effect.records():
            row: Spec = {"curve": name, "x": record["place"], "value": digits(record["ratio_to_chunk"])}
            if record["low"] is not None:
                row |= {"low": digits(record["low"]), "high": digits(record["high"])}
            data.append(row)
    return _lines(data, list(effects), "place in the chunk", "ratio to the chunk's mean")


def _lines(data: list[Spec], names: Sequence[str], x_title: str, y_title: str) -> Spec:
    x = {"field": "x", "type": "quantitative", "title": x_title, "scale": {"nice": False}}
    ends = [row[key] for row in data for key in ("value", "low", "high") if key in row]
    ticks = [tick for tick in RATIOS if min(ends) <= tick <= max(ends)]
    y = log_axis(y_title, ticks)
    one = {"name": "one", "mark": {"type": "rule", "color": INK, "strokeDash": [2, 3]}, "encoding": {"y": {"datum": 1}}}
    layers = banded_lines({"x": x, "y": y, "color": colour_by(names)}, between=[one])
    return framed({"description": y_title, "params": [], "layer": layers}, data, width=720, height=300)
