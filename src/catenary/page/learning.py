"""The page of learning by position: accuracy by bin over updates, steps to half against influence at birth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from catenary.charts import INK, Spec, framed
from catenary.drawing import digits
from catenary.learning import HALF, PROPORTIONAL, SMOOTH, Learning, Lesson
from catenary.page.exhibit import Exhibit, Plate
from catenary.reading import number

MOST_POINTS = 200


def learning_exhibit(found: Learning, parameters: Mapping[str, Any]) -> Exhibit:
    """One page for one task on one architecture.

    Args:
        found: from ``learn_by_position``.
        parameters: what it was made from, as JSON values.
    """
    verdict = sentence(found)
    bins, first = bin_names(found), found.lessons[0]
    return Exhibit(
        name=f"learning-{found.task}", kicker=found.label, title=f"Learning by position: {found.task}",
        verdict=verdict, notes=_notes(found),
        numbers=(
            ("tokens", str(found.length)), ("seeds", str(len(found.lessons))),
            ("seeds that learned it everywhere", str(len(found.learned))),
            *((r.name, r.text) for r in (found.elasticity, found.slowest, found.spread)),
        ),
        plates=(
            Plate("steps", _scatter(found), verdict,
                  "Steps to half accuracy against influence at birth, both over the seed's own geometric mean; one "
                  "mark for each bin and seed. The dashed line is what proportional rates would give."),
            Plate("accuracy", _curves(found, first), f"Accuracy by bin of positions, seed {first.seed}.",
                  f"Accuracy over {SMOOTH} updates by bin of the answer's position, seed {first.seed}."),
        ),
        caption="Influence at birth over its mean, and updates to half accuracy, by seed and position",
        columns=("seed", "", *bins), rows=tuple(row for lesson in found.lessons for row in _rows(lesson)),
        fields=("seed", "update", "bin", "right", "asked"),
        data=[
            (lesson.seed, update, bins[b], int(lesson.right[update, b]), int(lesson.asked[update, b]))
            for lesson in found.lessons for update in range(len(lesson.right)) for b in range(len(bins))
        ],
        parameters=parameters, results=found.to_dict(),
    )  # fmt: skip


def sentence(found: Learning) -> str:
    """The elasticity in words, with what it would be if learning were proportional to influence."""
    e = found.elasticity
    if e.reason:
        return f"No elasticity: {e.reason}."
    if e.low is None or e.high is None:
        return f"Elasticity {number(e.value)} in one seed, without an interval; -1 if learning went as influence."
    inside = e.low <= PROPORTIONAL <= e.high
    word = "can be" if inside else "is not"
    return (
        f"Learning speed {word} proportional to influence at birth: steps to half accuracy go as its power "
        f"{number(e.value)} [{number(e.low)}, {number(e.high)}] over {len(found.learned)} seeds, where proportional "
        f"rates would give {PROPORTIONAL:g}."
    )


def bin_names(found: Learning) -> tuple[str, ...]:
    """Bins of positions, from 0."""
    return tuple(f"{a}-{b - 1}" for a, b in zip(found.edges[:-1], found.edges[1:], strict=True))


def _notes(found: Learning) -> tuple[str, ...]:
    notes = [
        f"The task: {found.words}. Accuracy is that of fresh training windows, over {SMOOTH} updates; chance is 1/8.",
        f"Influence at birth differs by a factor of {found.spread.text} over the bins, steps to half accuracy by "
        f"{found.slowest.text}.",
    ]
    missed = len(found.lessons) - len(found.learned)
    if missed:
        notes.append(f"{missed} of {len(found.lessons)} seeds did not learn it in every bin and are left out.")
    return tuple(notes)


def _rows(lesson: Lesson) -> list[tuple[str, ...]]:
    birth = lesson.birth / lesson.birth.mean()
    return [
        (str(lesson.seed), "influence", *(number(float(v)) for v in birth)),
        (str(lesson.seed), "updates", *("not reached" if np.isnan(t) else f"{t:.0f}" for t in lesson.half)),
    ]


def _scatter(found: Learning) -> Spec:
    data: list[Spec] = []
    for lesson in found.learned:
        x, y = (np.exp(np.log(v) - np.log(v).mean()) for v in (lesson.birth, lesson.half))
        data += [
            {"curve": f"seed {lesson.seed}", "x": digits(float(a)), "value": digits(float(b))}
            for a, b in zip(x, y, strict=True)
        ]
    reach = [min((row["x"] for row in data), default=0.5), max((row["x"] for row in data), default=2.0)]
    line = [{"lx": digits(v), "ly": digits(v**PROPORTIONAL)} for v in reach]
    log = {"type": "log", "nice": False, "padding": 12}
    ticks = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10]
    x_axis = {"type": "quantitative", "title": "influence at birth (log)", "scale": log, "axis": {"values": ticks}}
    y_axis = {"type": "quantitative", "title": "steps to half accuracy (log)", "scale": log, "axis": {"values": ticks}}
    names = list(dict.fromkeys(str(row["curve"]) for row in data))
    layers: list[Spec] = [
        {"name": "line", "mark": {"type": "line", "color": INK, "strokeDash": [3, 3]},
         "transform": [{"filter": "isValid(datum.lx)"}],
         "encoding": {"x": {**x_axis, "field": "lx"}, "y": {**y_axis, "field": "ly"}}},
        {"name": "points", "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0.8},
         "transform": [{"filter": "isValid(datum.value)"}],
         "encoding": {"x": {**x_axis, "field": "x"}, "y": {**y_axis, "field": "value"},
                      "shape": {"field": "curve", "type": "nominal", "title": None, "sort": names},
                      "color": {"field": "curve", "type": "nominal", "title": None, "sort": names}}},
    ]  # fmt: skip
    spec = {"description": "steps to half accuracy against influence at birth", "params": [], "layer": layers}
    return framed(spec, data + line, width=520, height=320)


def _curves(found: Learning, lesson: Lesson) -> Spec:
    accuracy, names = lesson.accuracy, bin_names(found)
    kept = np.unique(np.linspace(0, len(accuracy) - 1, min(len(accuracy), MOST_POINTS)).round().astype(int))
    data: list[Spec] = [
        {"update": int(t), "curve": name, "value": digits(float(accuracy[t, b]))}
        for b, name in enumerate(names) for t in kept
    ]
    colour = {"field": "curve", "type": "nominal", "title": "position", "sort": list(names),
              "scale": {"scheme": "viridis"}}
    layers: list[Spec] = [
        {"name": "half", "mark": {"type": "rule", "color": INK, "strokeDash": [2, 3]},
         "encoding": {"y": {"datum": HALF}}},
        {"name": "line", "mark": {"type": "line", "strokeWidth": 1.6}, "encoding": {
            "x": {"field": "update", "type": "quantitative", "title": "update", "scale": {"nice": False}},
            "y": {"field": "value", "type": "quantitative", "title": "accuracy", "scale": {"domain": [0, 1]}},
            "color": colour}},
    ]  # fmt: skip
    return framed({"description": "accuracy by position", "params": [], "layer": layers}, data, width=620, height=300)
