"""Charts of the kinetic theory as Vega-Lite JSON: profiles, phase diagrams, trajectories, estimates, depth to time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from jaxtyping import Float64

from catenary.charts import INK, Spec, framed, log_axis, round_values
from catenary.drawing import PALETTE, digits
from catenary.kinetic.closed_form.minimum import REGIMES
from catenary.kinetic.closed_form.phase import PhaseDiagram
from catenary.kinetic.correlations.result import Correlations
from catenary.kinetic.depth.stacks import Bridge

FRACTION: Spec = {
    "field": "x", "type": "quantitative", "title": "position of the source as a fraction of the prompt",
    "scale": {"domain": [0, 1.01], "nice": False}, "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".2~f"},
}  # fmt: skip

POSITIONS = np.unique(np.concatenate([np.geomspace(2e-3, 0.1, 60), np.linspace(0.1, 1.0, 241)]))
"""Where curves are drawn: finer near the first token, where all of them are steep."""

LABEL = 28
"""Points kept free above and below a curve for the labels of its extrema."""

LINE: Spec = {"type": "line", "strokeWidth": 2, "strokeJoin": "round"}

_REGIME_COLOURS = {"U": PALETTE[0], "W": PALETTE[3], "hump": PALETTE[4], "primacy": PALETTE[1]}

BOUNDS = {"U proved below": [2, 2], "recency ends": [1, 0], "hump ends": [6, 3]}
"""The three times of a phase diagram, and how they are drawn."""


def profiles(
    sigma: Float64[np.ndarray, " positions"],
    curves: Sequence[tuple[str, Float64[np.ndarray, " positions"]]],
    marked: Sequence[tuple[str, str, float, float]],
) -> Spec:
    """Curves over the source's position, and their extrema (curve, kind, sigma, value) as labelled points."""
    data: list[Spec] = [
        {"curve": name, "x": digits(x), "value": digits(v)}
        for name, values in curves
        for x, v in zip(sigma.tolist(), values.tolist(), strict=True)
    ]
    data += [
        {"curve": name, "x": digits(x), "value": digits(v), "mark": f"{kind} at {x:.3g}"} for name, kind, x, v in marked
    ]
    positive = min(row["value"] for row in data) > 0
    y = log_axis("retrieval profile S", round_values(data)) if positive else _linear("value", "retrieval profile S")
    y["scale"] |= {"padding": LABEL}
    shared = {"x": FRACTION, "y": y, "color": _colour([name for name, _ in curves])}
    point = {"type": "point", "size": 90, "filled": True, "opacity": 1}
    text = {"type": "text", "fontSize": 12, "color": INK,
            "dy": {"expr": "indexof(datum.mark, 'minimum') == 0 ? 16 : -14"},
            "align": {"expr": "datum.x < 0.1 ? 'left' : datum.x > 0.9 ? 'right' : 'center'"}}  # fmt: skip
    labelled = {"x": FRACTION, "y": y, "text": {"field": "mark"}}
    only = [{"filter": "isValid(datum.mark)"}]
    layers = [
        {"name": "line", "mark": LINE, "transform": [{"filter": "!isValid(datum.mark)"}], "encoding": shared},
        {"name": "extrema", "mark": point, "transform": only, "encoding": shared},
        {"name": "labels", "mark": text, "transform": only, "encoding": labelled},
    ]
    return framed({"description": "Retrieval by position of the source", "params": [], "layer": layers}, data,
                  width=720, height=380)  # fmt: skip


def phases(diagram: PhaseDiagram) -> Spec:
    """Regimes over decay and time as areas, and the three times that bound them as lines."""
    left, low = _edges(diagram.lam), _edges(diagram.t)
    data: list[Spec] = []
    for k, column in enumerate(diagram.regime.tolist()):
        start = 0
        for word, cells in groupby(column):
            stop = start + len(list(cells))
            data.append({"regime": word, "x": left[k], "x2": left[k + 1], "y": low[start], "y2": low[stop]})
            start = stop
    rows = zip(diagram.lam, diagram.t_sufficient, diagram.t_crit, diagram.t_monotone, strict=True)
    data += [
        {"bound": name, "x": digits(lam), "y": digits(t)}
        for lam, *times in rows
        for name, t in zip(BOUNDS, times, strict=True)
        if t <= low[-1]
    ]
    x = _linear("x", "decay lambda", (left[0], left[-1]))
    y = _linear("y", "time t", (low[0], low[-1]))
    present = [word for word in REGIMES if (diagram.regime == word).any()]
    regime = {"field": "regime", "type": "nominal", "title": None,
              "scale": {"domain": present, "range": [_REGIME_COLOURS[word] for word in present]}}  # fmt: skip
    bound = {"field": "bound", "type": "nominal", "title": None,
             "scale": {"domain": list(BOUNDS), "range": list(BOUNDS.values())}}  # fmt: skip
    areas = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}, "color": regime}
    layers = [
        {"name": "regimes", "mark": {"type": "rect", "opacity": 0.4}, "encoding": areas,
         "transform": [{"filter": "isValid(datum.regime)"}]},
        {"name": "bounds", "mark": LINE | {"color": INK}, "encoding": {"x": x, "y": y, "strokeDash": bound},
         "transform": [{"filter": "isValid(datum.bound)"}]},
    ]  # fmt: skip
    words = "Regimes of the retrieval profile over decay and time"
    return framed({"description": words, "params": [], "layer": layers}, data, width=720, height=380)


def trajectories(
    times: Float64[np.ndarray, " times"], angles: Float64[np.ndarray, "times tokens"],
    sigma: Float64[np.ndarray, " tokens"],
) -> Spec:
    """Angles over time, folded into one period and cut where they pass its edge; colour is the position ``sigma``."""
    data: list[Spec] = []
    for token, position in enumerate(sigma.tolist()):
        turns = np.floor((angles[:, token] + math.pi) / (2 * math.pi)).astype(int)
        folded = angles[:, token] - 2 * math.pi * turns
        data += [
            {"piece": f"{token}/{turn}", "x": digits(t), "value": digits(v), "sigma": digits(position)}
            for t, v, turn in zip(times.tolist(), folded.tolist(), turns.tolist(), strict=True)
        ]
    x = _linear("x", "time t", (0.0, float(times[-1])))
    y = _linear("value", "angle", (-math.pi, math.pi))
    colour = {"field": "sigma", "type": "quantitative", "title": "position in the prompt",
              "scale": {"scheme": "viridis", "domain": [0, 1]},
              "legend": {"direction": "horizontal", "titleColor": INK, "titleFontWeight": "normal"}}  # fmt: skip
    encoding = {"x": x, "y": y, "color": colour, "detail": {"field": "piece", "type": "nominal"}}
    mark = {"type": "line", "strokeWidth": 1.2, "opacity": 0.85}
    words = "Angles of the tokens over time"
    layers = [{"name": "line", "mark": mark, "encoding": encoding}]
    return framed({"description": words, "params": [], "layer": layers}, data, width=720, height=380)


def estimates(
    found: Correlations, sigma: Float64[np.ndarray, " n"], exact: Float64[np.ndarray, " n"],
    expected: Float64[np.ndarray, " sources"],
) -> Spec:
    """Estimates with bars of two standard errors, over the closed form: a line, and rings averaged as they are."""
    names = ["closed form, N to infinity", f"{found.estimator}, {found.samples:,} samples"]
    data: list[Spec] = [
        {"curve": names[0], "x": digits(x), "value": digits(v)}
        for x, v in zip(sigma.tolist(), exact.tolist(), strict=True)
    ]
    rows = zip(found.sigma0.tolist(), found.value.tolist(), found.stderr.tolist(), strict=True)
    data += [
        {"curve": names[1], "x": digits(x), "value": digits(v), "low": digits(v - 2 * e), "high": digits(v + 2 * e)}
        for x, v, e in rows
    ]
    data += [
        {"curve": names[0], "x": digits(x), "value": digits(v), "ring": True}
        for x, v in zip(found.sigma0.tolist(), expected.tolist(), strict=True)
    ]
    y = _linear("value", "N times the correlation")
    shared = {"x": FRACTION, "y": y, "color": _colour(names)}
    bars = shared | {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
    point = {"type": "point", "filled": True, "size": 40, "opacity": 1}
    measured = [{"filter": "isValid(datum.low)"}]
    layers = [
        {"name": "line", "mark": LINE, "encoding": shared,
         "transform": [{"filter": "!isValid(datum.low) && !isValid(datum.ring)"}]},
        {"name": "rings", "mark": {"type": "point", "filled": False, "size": 90, "opacity": 1}, "encoding": shared,
         "transform": [{"filter": "isValid(datum.ring)"}]},
        {"name": "bars", "mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": bars, "transform": measured},
        {"name": "points", "mark": point, "encoding": shared, "transform": measured},
    ]
    words = "Estimated correlation with every source, and the closed form"
    return framed({"description": words, "params": [], "layer": layers}, data, width=720, height=380)


def stacks(
    sigma: Float64[np.ndarray, " n"],
    curves: Sequence[tuple[str, Float64[np.ndarray, " n"]]],
    limit: Float64[np.ndarray, " n"],
) -> Spec:
    """The response of stacks of some depths, over their limit as a dashed line."""
    data: list[Spec] = [
        {"curve": name, "x": digits(x), "value": digits(v)}
        for name, values in (*curves, ("kinetic closed form", limit))
        for x, v in zip(sigma.tolist(), values.tolist(), strict=True)
    ]
    names = [*(name for name, _ in curves), "kinetic closed form"]
    y = log_axis("response to the source", round_values(data))
    dash = {"field": "curve", "type": "nominal", "title": None, "sort": names,
            "scale": {"domain": names, "range": [[1, 0]] * len(curves) + [[5, 3]]}}  # fmt: skip
    encoding = {"x": FRACTION, "y": y, "color": _colour(names), "strokeDash": dash}
    words = "Residual stacks of growing depth and their limit"
    layers = [{"name": "line", "mark": LINE, "encoding": encoding}]
    return framed({"description": words, "params": [], "layer": layers}, data, width=720, height=380)


def depth_errors(seen: Bridge) -> Spec:
    """The relative difference from the limit over depth, and the exact first order as dashed lines."""
    names = [f"source at {x:.3g}" for x in seen.sigma0.tolist()]
    data: list[Spec] = []
    for k, name in enumerate(names):
        for depth, error in zip(seen.layers.tolist(), seen.error[:, k].tolist(), strict=True):
            data += [
                {"curve": name, "x": depth, "value": digits(abs(error)), "kind": "seen"},
                {"curve": name, "x": depth, "value": digits(abs(float(seen.coefficient[k])) / depth), "kind": "order"},
            ]
    x = {"field": "x", "type": "quantitative", "title": "layers H (log)",
         "scale": {"type": "log", "nice": False, "padding": 12},
         "axis": {"values": seen.layers.tolist(), "format": ",d", "labelOverlap": "greedy"}}  # fmt: skip
    y = log_axis("relative difference from the limit", round_values(data))
    encoding = {"x": x, "y": y, "color": _colour(names)}
    layers = [
        {"name": "order", "mark": LINE | {"strokeDash": [5, 3], "strokeWidth": 1.2}, "encoding": encoding,
         "transform": [{"filter": "datum.kind == 'order'"}]},
        {"name": "points", "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1}, "encoding": encoding,
         "transform": [{"filter": "datum.kind == 'seen'"}]},
    ]  # fmt: skip
    words = "Relative difference of stacks from their limit over depth"
    return framed({"description": words, "params": [], "layer": layers}, data, width=720, height=300)


def _linear(field: str, title: str, domain: tuple[float, float] | None = None) -> Spec:
    """A field on a linear axis, over the data or exactly over ``domain``."""
    scale: Spec = {"zero": False} if domain is None else {"domain": list(domain), "nice": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": {"tickCount": 7}}


def _colour(names: Sequence[str]) -> Spec:
    """A colour per curve, from the palette in order."""
    shown = [*PALETTE[: len(names)]]
    return {"field": "curve", "type": "nominal", "title": None, "sort": list(names),
            "scale": {"domain": list(names), "range": shown}}  # fmt: skip


def _edges(centres: Float64[np.ndarray, " n"]) -> list[float]:
    """Edges of cells around rising centres; the outer ones end at the centres' own ends."""
    inner = (centres[1:] + centres[:-1]) / 2
    return [digits(v) for v in (centres[0], *inner.tolist(), centres[-1])]
