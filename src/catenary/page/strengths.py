"""The page of strengths: what each branch of each layer adds to the stream, predicted and measured, and the sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catenary.charts import Spec, framed
from catenary.drawing import PALETTE, digits
from catenary.page.exhibit import Exhibit, Plate
from catenary.strengths import Branch, Strengths
from catenary.study.strengths import StrengthsStudy


def strengths_exhibit(found: StrengthsStudy, parameters: Mapping[str, Any]) -> Exhibit:
    """One page for the strengths of one model: a figure for each kind of branch, with a line per column.

    Args:
        found: from ``study_strengths``.
        parameters: what it was made from, as JSON values.
    """
    first = found.columns[0]
    depth = len({row.layer for row in first.rows})
    sums = {branch: [found.total(column, branch) for column in found.columns] for branch in first.branches}
    sentences = {
        branch: f"{branch} " + ", ".join(
            f"{total} ({column.label})" for column, total in zip(found.columns, totals, strict=True)
        )
        for branch, totals in sums.items()
    }  # fmt: skip
    records = found.records()
    head, *rows = found.rows()
    return Exhibit(
        name="strengths", kicker=found.model, title="What each branch adds to the stream",
        verdict=f"Sum of strengths over {depth} layers: {'; '.join(sentences.values())}",
        notes=(
            "The strength of a branch is |b|/(|x|+|b|), with b what it adds and x the stream that it is added to, "
            "averaged over tokens. Energies follow |b|^2/(|x|^2+|b|^2), which is smaller.",
            *found.statements, *found.skipped,
        ),
        numbers=(("tokens", f"{first.length:,}"), ("layers", str(depth))),
        plates=tuple(_plate(found.columns, branch, sentences[branch]) for branch in first.branches),
        caption="Strength by layer and branch, ± standard error", columns=head, rows=tuple(rows),
        fields=tuple(records[0]), data=[tuple(record.values()) for record in records],
        parameters=parameters, results=found.to_dict(),
    )  # fmt: skip


def _plate(columns: Sequence[Strengths], branch: Branch, sums: str) -> Plate:
    labels = [column.label for column in columns]
    data: list[Spec] = []
    for column in columns:
        for row in column.of(branch):
            drawn: Spec = {"curve": column.label, "layer": row.layer, "value": digits(row.strength)}
            if row.standard_error is not None:
                drawn["low"] = digits(row.strength - 2 * row.standard_error)
                drawn["high"] = digits(row.strength + 2 * row.standard_error)
            data.append(drawn)
    dashes = [[5, 3] if label.startswith("predicted") else [1, 0] for label in labels]
    x = {"field": "layer", "type": "quantitative", "title": "layer, from the bottom",
         "scale": {"nice": False, "padding": 8}, "axis": {"tickMinStep": 1, "format": "d"}}  # fmt: skip
    y = {"field": "value", "type": "quantitative", "title": f"strength of {branch}", "scale": {"domainMin": 0}}
    colour = {"field": "curve", "type": "nominal", "title": None, "sort": labels,
              "scale": {"domain": labels, "range": list(PALETTE[: len(labels)])}}  # fmt: skip
    dash = {"field": "curve", "type": "nominal", "title": None, "sort": labels,
            "scale": {"domain": labels, "range": dashes}}  # fmt: skip
    encoding = {"x": x, "y": y, "color": colour}
    bars = encoding | {"y": y | {"field": "low"}, "y2": {"field": "high"}}
    line = {"type": "line", "strokeWidth": 2, "point": {"size": 18}}
    layers = [
        {"name": "bars", "mark": {"type": "rule"}, "encoding": bars, "transform": [{"filter": "isValid(datum.low)"}]},
        {"name": "line", "mark": line, "encoding": encoding | {"strokeDash": dash}},
    ]
    chart = framed({"description": f"strength of {branch}", "params": [], "layer": layers}, data, width=720, height=300)
    return Plate(
        branch, chart, f"Strength of {branch} by layer. Sums: {sums}.",
        f"{branch.capitalize()}: mean of |b|/(|x|+|b|) by layer, bars of two standard errors. Sums: {sums}.",
    )  # fmt: skip
