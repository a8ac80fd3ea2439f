"""The page of an order of documents: the curve it comes from, who stands where, and what the order gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catenary.charts import INK, Spec, framed
from catenary.drawing import PALETTE, digits
from catenary.page.exhibit import Exhibit, Plate
from catenary.reading import finite
from catenary.retrieval.order.advice import Advice
from catenary.retrieval.order.gain import Gains, separation_name
from catenary.retrieval.outcomes import WORDS

POINTS = ("circle", "diamond", "triangle-up")
"""Shapes of the gains of the first six orders, the next six, and so on."""
FIELDS = ("table", "name", "slot", "separation", "value", "low", "high", "over_low", "over", "over_high")


def order_exhibit(advice: Advice, parameters: Mapping[str, Any]) -> Exhibit:
    """One page for one order.

    Args:
        advice: from ``catenary.retrieval.order.advice.advise``.
        parameters: what it was made from, as JSON values.
    """
    weights = advice.weights.at(advice.documents)
    relevance = None if advice.scored is None or advice.order is None else [
        advice.scored.relevance[document] for document in advice.order
    ]  # fmt: skip
    names = advice.names
    plates = [
        Plate("slots", _slots(advice), f"Measured {advice.metric} by slot. " + advice.verdict.words,
              f"Mean {advice.metric} by slot of the fact's document; the band is 95 % over samples.")
    ]  # fmt: skip
    if advice.gains is not None:
        plates.append(
            Plate("gains", gains_chart(advice.gains), advice.verdict.words,
                  "Held-out gain of each order over documents in an order that tells nothing, by the retriever's "
                  "strength d'; bars are 95 % over samples.")
        )  # fmt: skip
    return Exhibit(
        name="order", kicker=f"{advice.documents} documents", title="What order to put documents in",
        verdict=advice.verdict.words,
        notes=("First to last: " + ", ".join(names), *advice.notes),
        numbers=_numbers(advice), plates=tuple(plates), caption="Slot 0 is the first; the question follows the last",
        columns=("slot", f"{advice.metric} there", "document", *(("relevance",) if relevance else ())),
        rows=tuple(
            (str(slot), f"{weights[slot]:.3f}", names[slot], *((f"{relevance[slot]:g}",) if relevance else ()))
            for slot in range(advice.documents)
        ),
        fields=FIELDS, data=_data(advice), parameters=parameters, results=advice.to_dict(),
    )  # fmt: skip


def _numbers(advice: Advice) -> tuple[tuple[str, str], ...]:
    shown = [("documents", str(advice.documents)), ("metric", advice.metric)]
    if advice.curve is not None:
        shown.append(("samples", str(advice.curve.n)))
    if advice.gains is not None:
        at = advice.gains.separations.index(advice.separation)
        where = f"gain at d' = {separation_name(advice.separation)}"
        shown.append(("given order", f"{advice.gains.given:.3f}"))
        shown += [(f"{where}, {name}", row[at].text) for name, row in advice.gains.gain.items()]
    return tuple(shown)


def _data(advice: Advice) -> list[tuple[float | int | str | None, ...]]:
    """Every number behind the figures: the slots, then the gains by order and retriever."""
    weights = advice.weights.at(advice.documents)
    rows: list[tuple[float | int | str | None, ...]] = [
        ("slot", name, slot, None, float(weights[slot]), None, None, None, None, None)
        for slot, name in enumerate(advice.names)
    ]
    if advice.gains is not None:
        for name, row in advice.gains.gain.items():
            over = advice.gains.over.get(name)
            for k, d in enumerate(advice.gains.separations):
                against = (over[k].low, over[k].value, over[k].high) if over else (None, None, None)
                rows.append(
                    ("gain", name, None, separation_name(d), row[k].value, row[k].low, row[k].high, *against)
                )
    return rows


def _slots(advice: Advice) -> Spec:
    data: list[Spec] = []
    for j, x in enumerate(advice.weights.x):
        row: Spec = {"x": digits(x), "value": digits(advice.weights.weights[j])}
        if advice.curve is not None and finite(float(advice.curve.low[j])) is not None:
            row |= {"low": digits(float(advice.curve.low[j])), "high": digits(float(advice.curve.high[j]))}
        data.append(row)
    x_axis = {"field": "x", "type": "quantitative", "title": "place in the prompt (0 first, 1 last)"}
    title = WORDS.get(advice.metric, advice.metric)
    y_axis = {"field": "value", "type": "quantitative", "title": title, "scale": {"zero": False}}
    encoding: Spec = {"x": x_axis, "y": y_axis}
    layers = [
        {"name": "band", "mark": {"type": "area", "opacity": 0.15, "color": PALETTE[0]},
         "encoding": encoding | {"y": {**y_axis, "field": "low"}, "y2": {"field": "high"}},
         "transform": [{"filter": "isValid(datum.low)"}]},
        {"name": "line", "mark": {"type": "line", "strokeWidth": 2, "color": PALETTE[0], "point": {"size": 30}},
         "encoding": encoding},
    ]  # fmt: skip
    return framed({"description": "score by slot", "params": [], "layer": layers}, data, width=720, height=260)


def gains_chart(gains: Gains) -> Spec:
    """Gain of each order with its interval, by the retriever's strength."""
    names = list(gains.gain)
    retrievers = [separation_name(d) for d in gains.separations]
    data: list[Spec] = [
        {"order": name, "retriever": retrievers[k],
         **{end: digits(getattr(e, end)) for end in ("value", "low", "high")}}
        for name, row in gains.gain.items() for k, e in enumerate(row)
    ]  # fmt: skip
    x: Spec = {"field": "retriever", "type": "ordinal", "title": "retriever's strength d'", "sort": retrievers,
               "axis": {"labelAngle": 0}}
    y: Spec = {"field": "value", "type": "quantitative", "title": f"gain in {WORDS.get(gains.metric, gains.metric)}"}
    colour: Spec = {"field": "order", "type": "nominal", "title": None, "sort": names,
                    "scale": {"domain": names, "range": [PALETTE[k % len(PALETTE)] for k in range(len(names))]}}
    encoding: Spec = {"x": x, "xOffset": {"field": "order", "sort": names}, "color": colour}
    # colours come round after six orders; a shape then tells them apart
    shapes = [POINTS[k // len(PALETTE) % len(POINTS)] for k in range(len(names))]
    shape: Spec = {"field": "order", "type": "nominal", "title": None, "sort": names,
                   "scale": {"domain": names, "range": shapes}}
    layers = [
        {"name": "zero", "data": {"values": [{}]}, "mark": {"type": "rule", "color": INK, "strokeDash": [2, 3]},
         "encoding": {"y": {"datum": 0, "type": "quantitative"}}},
        {"name": "interval", "mark": {"type": "rule", "strokeWidth": 2},
         "encoding": encoding | {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
        {"name": "gain", "mark": {"type": "point", "filled": True, "size": 50},
         "encoding": encoding | {"y": y, "shape": shape}},
    ]  # fmt: skip
    return framed({"description": "gain by order and retriever", "params": [], "layer": layers}, data,
                  width=640, height=280)  # fmt: skip
