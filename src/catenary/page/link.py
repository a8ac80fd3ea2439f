"""The link on the page of a retrieval study: which predictor goes with the curve here, and which does not."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from catenary.charts import INK, Spec, framed
from catenary.drawing import PALETTE, digits
from catenary.page.exhibit import Plate, Table
from catenary.page.retrieve import Section
from catenary.reading import number
from catenary.retrieval.link.agreement import Agreement, Link
from catenary.retrieval.link.predictors import PREDICTORS
from catenary.retrieval.link.table import LinkTable
from catenary.retrieval.link.verdict import LinkVerdict, judge_link
from catenary.retrieval.outcomes import WORDS

SHOWN = ("jacobian", "logit", "attention", "birth")
"""Predictors whose curves are drawn; the JSON file holds all."""


def link_section(
    links: Mapping[str, Link], table: LinkTable, notes: tuple[str, ...] = (), refused: Mapping[str, str] | None = None
) -> Section:
    """The section of the links of one table with the curves of several metrics, the first of them foremost.

    Args:
        links: by metric, from ``agree``.
        table: what they were read from.
        notes: what was left out in reading it.
        refused: metrics whose curve has no link, and why.
    """
    verdicts = {metric: judge_link(link) for metric, link in links.items()}
    prompts = f"{table.n} held-out prompts"
    said = [f"Link with the curve by {WORDS[m]}, {prompts}. {verdict.words}" for m, verdict in verdicts.items()]
    details = [note for verdict in verdicts.values() for note in verdict.notes]
    why = [f"No link with the curve by {WORDS[metric]}: {reason}" for metric, reason in (refused or {}).items()]
    plates = [_curves(links, table)]
    if links:
        plates.insert(0, _coefficients(links, next(iter(verdicts.values()))))
    return Section(
        "link", tuple(plates), (*said, *dict.fromkeys(details), *why, *notes),
        (("held-out prompts of the link", str(table.n)),),
        {
            "by_metric": {m: link.to_dict() | {"verdict": verdicts[m].to_dict()} for m, link in links.items()},
            "prompts": table.n, "gold_slots": [table.slots[g] for g in table.gold], "slots": list(table.slots),
            "rows": {
                name: [[None if math.isnan(v) else float(v) for v in row] for row in rows]
                for name, rows in table.rows.items()
            },
            "missing": dict(table.missing), "skipped": dict(table.skipped), "refused": dict(refused or {}),
        },
        tuple(_table(link, verdicts[metric]) for metric, link in links.items()),
    )  # fmt: skip


COLUMNS = (
    "predictor", "Spearman", "without slot 0", "permutation p", "Pearson", "reliability (without slot 0)",
    "over edges", "verdict",
)  # fmt: skip


def _table(link: Link, verdict: LinkVerdict) -> Table:
    order = [*verdict.ranking, *(name for name in link.agreements if name not in verdict.ranking)]
    caption = (
        f"Predictors of the curve by {WORDS[link.metric]}: correlation over {link.slots} slots with 95 % percentile "
        f"intervals over {link.samples} scored samples and the held-out prompts; the curve's own reliability is "
        f"{_plain(link.reliability)} ({_plain(link.reliability_rest)})"
    )
    return Table(caption, COLUMNS, tuple(_row(link.agreements[name], verdict) for name in order))


def _row(one: Agreement, verdict: LinkVerdict) -> tuple[str, ...]:
    word = verdict.by[one.predictor]
    if one.reason:
        return (one.label, *("undefined",) * (len(COLUMNS) - 2), one.reason)
    sure = "needs no prompt" if not one.prompts else f"{_plain(one.reliability)} ({_plain(one.reliability_rest)})"
    over = "" if math.isnan(one.over_edges.value) else one.over_edges.text
    said = word if verdict.ranking or word == "unreliable" else f"not ranked ({word})"
    return (
        one.label, one.spearman.text, one.spearman_rest.text, _p(one.p), one.pearson.text, sure, over, said,
    )  # fmt: skip


def _plain(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.2f}"


def _p(value: float) -> str:
    return "undefined" if math.isnan(value) else "< .001" if value < 0.001 else number(value)


def _coefficients(links: Mapping[str, Link], verdict: LinkVerdict) -> Plate:
    first = next(iter(links.values()))
    order = [one.label for one in first.agreements.values()]
    metrics = [WORDS[metric] for metric in links]
    data: list[Spec] = []
    for metric, link in links.items():
        for one in link.agreements.values():
            for part, coefficient in (("all slots", one.spearman), ("without slot 0", one.spearman_rest)):
                if math.isnan(coefficient.value):
                    continue
                row: Spec = {"predictor": one.label, "curve": WORDS[metric], "slots": part,
                             "value": digits(coefficient.value), "key": f"{WORDS[metric]}, {part}"}
                if not math.isnan(coefficient.low):
                    row |= {"low": digits(coefficient.low), "high": digits(coefficient.high)}
                data.append(row)
    keys = [f"{metric}, {part}" for metric in metrics for part in ("all slots", "without slot 0")]
    x: Spec = {"field": "value", "type": "quantitative", "title": "Spearman's coefficient with the curve",
               "scale": {"domain": [-1, 1]}}
    encoding: Spec = {
        "y": {"field": "predictor", "type": "nominal", "title": None, "sort": order, "axis": {"labelLimit": 260}},
        "yOffset": {"field": "key", "sort": keys},
        "color": {"field": "curve", "type": "nominal", "title": None, "sort": metrics,
                  "scale": {"domain": metrics, "range": list(PALETTE[: len(metrics)])}},
    }  # fmt: skip
    shape: Spec = {"field": "slots", "type": "nominal", "title": None, "sort": ["all slots", "without slot 0"],
                   "scale": {"domain": ["all slots", "without slot 0"], "range": ["circle", "diamond"]}}
    layers: list[Spec] = [
        {"name": "zero", "data": {"values": [{}]}, "mark": {"type": "rule", "color": INK, "strokeDash": [2, 3]},
         "encoding": {"x": {"datum": 0, "type": "quantitative"}}},
        {"name": "interval", "transform": [{"filter": "isValid(datum.low)"}],
         "mark": {"type": "rule", "strokeWidth": 2},
         "encoding": encoding | {"x": {**x, "field": "low"}, "x2": {"field": "high"}}},
        {"name": "coefficient", "mark": {"type": "point", "filled": True, "size": 55},
         "encoding": encoding | {"x": x, "shape": shape}},
    ]  # fmt: skip
    height = 16 * len(keys) * len(order)
    chart = framed({"description": "agreement of predictors with the curve", "params": [], "layer": layers}, data,
                   width=560, height=min(max(height, 260), 640))  # fmt: skip
    return Plate(
        "link", chart, f"Agreement of each predictor with the curve. {verdict.words}",
        "Rank correlation of each predictor's slot profile, from held-out prompts, with the curve; bars are 95 % "
        "percentile intervals over samples and prompts, which lie below the point.",
    )  # fmt: skip


def _curves(links: Mapping[str, Link], table: LinkTable) -> Plate:
    """Slot profiles over their mean; what is missing is not drawn."""
    data: list[Spec] = []
    drawn = []
    for name in SHOWN:
        logs = table.logs(name)
        if isinstance(logs, str):
            continue
        with np.errstate(invalid="ignore"):
            curve = np.exp(np.nanmean(logs, axis=0))
        drawn.append(PREDICTORS[name].label)
        data += [
            {"curve": drawn[-1], "slot": slot, "value": digits(v)}
            for slot, v in zip(table.slots, curve / curve.mean(), strict=True)
        ]
    x: Spec = {"field": "slot", "type": "quantitative", "title": "slot (0 is the first document)",
               "axis": {"values": list(table.slots), "format": "d"}, "scale": {"nice": False}}
    y: Spec = {"field": "value", "type": "quantitative", "title": "over its mean", "scale": {"type": "log"},
               "axis": {"format": ".2~g"}}
    colour: Spec = {"field": "curve", "type": "nominal", "title": None, "sort": drawn,
                    "scale": {"domain": drawn, "range": list(PALETTE[: len(drawn)])}}
    layer: Spec = {"name": "profile", "mark": {"type": "line", "point": True, "strokeWidth": 2},
                   "encoding": {"x": x, "y": y, "color": colour}}
    chart = framed({"description": "slot profiles", "params": [], "layer": [layer]}, data, width=720, height=240)
    return Plate(
        "link-profiles", chart, "Slot profiles of predictors on held-out prompts.",
        "Slot profiles over their mean, geometric mean over held-out prompts.",
    )  # fmt: skip
