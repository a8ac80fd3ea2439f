"""The page of a retrieval study: accuracy and log-probability by position of the fact, rates, baselines, verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.charts import Spec, framed
from catenary.drawing import PALETTE, digits
from catenary.errors import InvalidInput
from catenary.page.exhibit import Exhibit, Plate, Table
from catenary.reading import finite, number
from catenary.retrieval.outcomes import METRICS, WORDS, Outcomes
from catenary.retrieval.scoring.metrics import Disagreement
from catenary.retrieval.statistics import Summary, metrics_of, summarise
from catenary.retrieval.statistics.summary import extent
from catenary.retrieval.statistics.verdict import SMALLEST
from catenary.study.retrieve import RetrieveStudy

SHOWN = 5
"""Disagreements of metrics that the page quotes; the JSON file holds all."""


@dataclass(frozen=True, eq=False)
class Section:
    """More about the same curve, from another measurement: its figures, sentences, numbers and tables."""

    name: str
    plates: tuple[Plate, ...] = ()
    notes: tuple[str, ...] = ()
    numbers: tuple[tuple[str, str], ...] = ()
    results: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()


def retrieve_exhibit(
    found: RetrieveStudy, metric: str, parameters: Mapping[str, Any], *, smallest: float | None = None, seed: int = 0,
    sections: Sequence[Section] = (),
) -> Exhibit:  # fmt: skip
    """One page for one model and task.

    Args:
        found: from ``score_samples`` or ``study_retrieve``.
        metric: whose verdict heads the page.
        parameters: what it was made from, as JSON values.
        smallest: difference that the verdict ``flat`` excludes; as ``summarise`` has it if None.
        seed: of the bootstrap.
        sections: other measurements of the same curve.
    """
    outcomes = found.outcomes
    judged = {name: _summary(outcomes, name, seed, smallest) for name in metrics_of(outcomes)}
    order = [metric, *(name for name in judged if name != metric)]
    verdict = _head(judged[metric], metric)
    others = tuple(_head(judged[name], name) for name in order[1:])
    evidence = tuple(_evidence(judged[metric]))
    unusual = any(np.nansum(getattr(found.rates, name)) > 0 for name in _DRAWN)
    plates = [_rates(found)] if unusual else []
    if "logp" in judged and not isinstance(judged["logp"], str):
        plates.insert(0, _logp(outcomes, judged["logp"]))
    if any(not isinstance(one, str) for name, one in judged.items() if name != "logp"):
        plates.insert(0, _accuracy(outcomes, judged, metric, verdict))
    return Exhibit(
        name="retrieve", kicker="Retrieval by position", title=_title(outcomes, parameters), verdict=verdict,
        notes=(
            *others, *evidence, *found.notes, *_said(found), *_quoted(found.disagreed),
            *(note for section in sections for note in section.notes),
        ),
        numbers=(
            *_numbers(outcomes, judged, metric), *(pair for section in sections for pair in section.numbers),
        ),
        plates=(*plates, *(plate for section in sections for plate in section.plates)),
        caption="By slot of the fact's document (0 is the first), mean with 95 % band over samples",
        columns=("slot", *(WORDS[name] for name in order), *_DRAWN),
        rows=tuple(_row(found, judged, order, column) for column in range(len(outcomes.slots))),
        fields=("sample", "slot", *judged, "tokens", "skipped", "answer"),
        data=[
            (
                sample, slot, *(finite(float(outcomes.values[name][row, column])) for name in judged),
                outcomes.tokens[row][column], outcomes.skipped[row][column], outcomes.answers[row][column],
            )
            for row, sample in enumerate(outcomes.samples) for column, slot in enumerate(outcomes.slots)
        ],
        parameters=parameters,
        results={
            "metrics": {name: one.to_dict() if isinstance(one, Summary) else one for name, one in judged.items()},
            "rates": {name: [finite(float(x)) for x in getattr(found.rates, name)] for name in _RATES},
            "disagreements": [vars(one) for one in found.disagreed],
            "first_prompt": found.prompt, "notes": list(found.notes), "provenance": dict(outcomes.provenance),
            **{section.name: dict(section.results) for section in sections},
        },
        tables=tuple(table for section in sections for table in section.tables),
    )  # fmt: skip


_DRAWN = ("skipped", "empty", "truncated")
_RATES = (*_DRAWN, "apart")

Judged = Summary | str
"""The statistics of a metric, or why there are none."""


def _summary(outcomes: Outcomes, metric: str, seed: int, smallest: float | None) -> Judged:
    try:
        return summarise(outcomes, metric, seed, SMALLEST if smallest is None else smallest)
    except InvalidInput as reason:
        return f"no verdict: {reason}"


def _words(judged: Judged) -> str:
    return judged if isinstance(judged, str) else judged.verdict.words


def _head(judged: Judged, metric: str) -> str:
    return f"By {WORDS[metric]}: {_words(judged)}."


def _evidence(judged: Judged) -> list[str]:
    return [] if isinstance(judged, str) else [*judged.verdict.evidence, *judged.notes]


def _title(outcomes: Outcomes, parameters: Mapping[str, Any]) -> str:
    asked = parameters.get("model") or parameters.get("endpoint_model") or "black box"
    return f"{asked}: {outcomes.task}"


def _numbers(outcomes: Outcomes, judged: Mapping[str, Judged], metric: str) -> list[tuple[str, str]]:
    shown = [("samples", f"{len(outcomes.samples):,}"), ("positions", f"{len(outcomes.slots)} of {outcomes.of}")]
    tokens = [count for row in outcomes.tokens for count in row if count]
    if tokens:
        shown.append(("tokens of a prompt", extent(min(tokens), max(tokens))))
    for base, metrics in outcomes.baselines.items():
        for name in judged:
            values = metrics[name][np.isfinite(metrics[name])]
            if len(values):
                shown.append((f"{base}, {WORDS[name]}", f"{number(float(values.mean()))} (n = {len(values)})"))
    head = judged[metric]
    if not isinstance(head, str):
        if np.isfinite(head.occupancy):
            shown.append(("share of the context in use", f"{head.occupancy:.1%}"))
        power = f"difference seen with 80 % power, {WORDS[metric]}"
        if np.isfinite(head.detectable):
            shown.append((power, number(head.detectable)))
        elif head.paired_sd == 0:
            shown.append((power, "unknown: no sample differs between slots"))
    return shown


def _said(found: RetrieveStudy) -> list[str]:
    """What is unusual in how texts came about."""
    lines = []
    for name, words in (
        ("skipped", "of prompts were skipped"), ("empty", "of generations are empty"),
        ("truncated", "of generations did not end within their limit"),
        ("apart", "of answers were tokenised apart, as they would have merged with the prompt"),
    ):  # fmt: skip
        values = getattr(found.rates, name)
        known = values[np.isfinite(values)]
        if len(known) and known.max() > 0:
            low, high = f"{known.min():.0%}", f"{known.max():.0%}"
            span = f"{low} {words} at every position" if low == high else f"{low} to {high} {words}, by position"
            lines.append(f"{span}.")
    return lines


def _quoted(disagreed: Sequence[Disagreement]) -> list[str]:
    if not disagreed:
        return []
    lines = [f"The metrics disagree on {len(disagreed):,} generations; the first of them:"]
    for one in disagreed[:SHOWN]:
        counted = ", ".join(WORDS[name] for name, value in one.metrics.items() if value) or "none"
        text = " ".join(one.text.split())[:80]
        lines.append(f"{one.sample}, slot {one.slot}: {text!r} for {one.answers[0]!r} counts by {counted}.")
    return lines


def _row(found: RetrieveStudy, judged: Mapping[str, Judged], order: Sequence[str], column: int) -> tuple[str, ...]:
    cells = [str(found.outcomes.slots[column])]
    for name in order:
        one = judged[name]
        if isinstance(one, str):
            cells.append("undefined")
            continue
        curve = one.curve
        band = f" [{number(curve.low[column])}, {number(curve.high[column])}]" if np.isfinite(curve.low[column]) else ""
        cells.append(number(float(curve.mean[column])) + band)
    for name in _DRAWN:
        value = float(getattr(found.rates, name)[column])
        cells.append(f"{value:.0%}" if np.isfinite(value) else "undefined")
    return tuple(cells)


def _accuracy(outcomes: Outcomes, judged: Mapping[str, Judged], metric: str, verdict: str) -> Plate:
    names = [name for name in judged if name != "logp"]
    bases = {
        f"{base}, {WORDS['best_subspan']}": metrics["best_subspan"] for base, metrics in outcomes.baselines.items()
        if np.isfinite(metrics["best_subspan"]).any()
    }  # fmt: skip
    banded = metric if metric in names else "best_subspan"
    curves = {WORDS[name]: judged[name] for name in names}
    chart = _by_slot(outcomes, curves, "share right", bases, WORDS[banded], share=True)
    caption = f"Share of samples whose generation is right, by slot of the fact; 95 % band of {WORDS[banded]}."
    if bases:
        caption += " Dashed: without documents (closed book) and with the fact's document alone (oracle)."
    return Plate("accuracy", chart, f"Accuracy by position. {verdict}", caption)


def _logp(outcomes: Outcomes, judged: Judged) -> Plate:
    bases = {base: metrics["logp"] for base, metrics in outcomes.baselines.items()}
    bases = {base: values for base, values in bases.items() if np.isfinite(values).any()}
    name = WORDS["logp"]
    chart = _by_slot(outcomes, {name: judged}, f"{name} per token, nats", bases, name, share=False)
    return Plate(
        "logp", chart, f"Log-probability of the answer by position. {_words(judged)}",
        f"{METRICS['logp'].capitalize()}: mean with 95 % band over samples that were scored at every position.",
    )  # fmt: skip


def _by_slot(
    outcomes: Outcomes, curves: Mapping[str, Judged], title: str,
    lines: Mapping[str, Float64[np.ndarray, " n"]], banded: str, *, share: bool,
) -> Spec:  # fmt: skip
    data: list[Spec] = []
    for name, one in curves.items():
        if not isinstance(one, str):
            for column, slot in enumerate(outcomes.slots):
                row: Spec = {"curve": name, "slot": slot, "value": digits(one.curve.mean[column])}
                if name == banded and np.isfinite(one.curve.low[column]):
                    row |= {"low": digits(one.curve.low[column]), "high": digits(one.curve.high[column])}
                data.append(row)
    for name, values in lines.items():
        level = digits(float(values[np.isfinite(values)].mean()))
        data += [{"curve": name, "slot": slot, "value": level, "base": 1} for slot in outcomes.slots]
    drawn = [*(name for name, one in curves.items() if not isinstance(one, str)), *lines]
    scale: Spec = {"domain": [0, 1]} if share else {"zero": False}
    x: Spec = {"field": "slot", "type": "quantitative", "title": "slot of the fact (0 is the first document)",
               "axis": {"values": list(outcomes.slots), "format": "d"}, "scale": {"nice": False}}
    y: Spec = {"field": "value", "type": "quantitative", "title": title, "scale": scale}
    colour: Spec = {"field": "curve", "type": "nominal", "title": None, "sort": drawn,
                    "legend": {"title": None, "symbolType": "stroke", "symbolOpacity": 1},
                    "scale": {"domain": drawn, "range": [PALETTE[n % len(PALETTE)] for n in range(len(drawn))]}}
    layers: list[Spec] = [
        {
            "name": "band", "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "area", "opacity": 0.15, "aria": False},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "name": "curve", "transform": [{"filter": "!isValid(datum.base)"}],
            "mark": {"type": "line", "point": True, "strokeWidth": 2}, "encoding": {"x": x, "y": y, "color": colour},
        },
        {
            "name": "base", "transform": [{"filter": "isValid(datum.base)"}],
            "mark": {"type": "line", "strokeDash": [5, 4], "strokeWidth": 1.4},
            "encoding": {"x": x, "y": y, "color": colour},
        },
    ]  # fmt: skip
    return framed({"description": f"{title} by slot", "params": [], "layer": layers}, data, width=720, height=300)


def _rates(found: RetrieveStudy) -> Plate:
    names = list(_DRAWN)
    data: list[Spec] = [
        {"curve": name, "slot": slot, "value": digits(float(getattr(found.rates, name)[column]))}
        for name in names for column, slot in enumerate(found.outcomes.slots)
        if np.isfinite(getattr(found.rates, name)[column])
    ]  # fmt: skip
    encoding: Spec = {
        "x": {"field": "slot", "type": "ordinal", "title": "slot of the fact", "axis": {"labelAngle": 0}},
        "xOffset": {"field": "curve"},
        "y": {"field": "value", "type": "quantitative", "title": "share", "scale": {"domain": [0, 1]}},
        "color": {"field": "curve", "type": "nominal", "title": None, "sort": names,
                  "scale": {"domain": names, "range": list(PALETTE[: len(names)])}},
    }  # fmt: skip
    bars = {"name": "rates", "mark": {"type": "bar"}, "encoding": encoding}
    chart = framed({"description": "rates by slot", "params": [], "layer": [bars]}, data, width=720, height=180)
    return Plate(
        "rates", chart, "Skipped prompts, empty and truncated generations by position.",
        "Prompts that were skipped, as a share of all; empty and truncated generations, as a share of those scored.",
    )  # fmt: skip
