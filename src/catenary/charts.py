"""Profiles to charts as Vega-Lite JSON: what is drawn and how it looks. Computes nothing but drawing data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from catenary.block_line import BlockLine, block_line
from catenary.drawing import PALETTE, Curve, clean, curves, digits, kept, rows
from catenary.errors import invalid
from catenary.profile import Profile
from catenary.sample import Sample

if TYPE_CHECKING:
    from catenary.comparison import Comparison

INK, MUTED, FAINT, NOISE = "#1d242c", "#59636e", "#e3e7eb", "#b9c1c9"
"""Titles, axis text, grid lines and the noise band. The page maps each to its dark twin by this exact value."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

HOVER = "hover"
"""The name of the layer that answers the pointer; still pictures are drawn without it."""

Spec = dict[str, Any]

TIP: Spec = {"expr": "(datum.datum || datum).tip"}
"""The tooltip of a row; on the areas that answer the nearest point the row is one level down."""
RANGE = "isValid(datum.low) ? format(datum.low, '.4~g') + ' \u2013 ' + format(datum.high, '.4~g') : 'none'"
NOISE_OF_A_TOKEN = "isValid(datum.noise) ? format(datum.noise, '.3f') : 'not known'"

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""Names the grammar's version; nothing is fetched from there."""

FRONT: Spec = {"name": "front", "select": {"type": "point", "fields": ["curve"]}, "bind": "legend", "views": ["line"]}
NEAR: Spec = {
    "name": "near", "views": [HOVER],
    "select": {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout"},
}


def overlay(
    items: Sequence[Profile | Sample], *, log: bool = True, tokens: tuple[int, int] | None = None
) -> Spec:
    """The overlay that ``catenary.figures.overlay`` documents."""
    drawn = curves(items)
    lengths = {len(curve.profile) for curve in drawn}
    if tokens is not None:
        _check(tokens, lengths)
    behind_first = sorted(drawn, key=lambda curve: curve.predicted)
    data = [row for curve in behind_first for row in _visible(curve, tokens)]
    banded = any("low" in row for row in data)
    x = _x_axis(lengths, tokens)
    y = {
        "field": "shown", "type": "quantitative", "title": f"influence on the last token, {_symbol(drawn)}",
        "scale": {"type": "log", "nice": False, "padding": 8} if log else {"type": "linear", "zero": True},
        "axis": {"format": ".4~g"} | ({"values": round_values(data)} if log else {"tickCount": 6}),
    }
    key = {"legend": {"title": None, "symbolType": "stroke", "symbolOpacity": 1}}
    colour = _channel(drawn, "colour") | key
    forward, faint = ({"condition": {"param": "front", "value": full}, "value": full / 6} for full in (1.0, 0.42))
    near = {"condition": {"param": "near", "empty": False, "value": 1.0}, "value": 0.0}
    layers: list[Spec] = []
    if banded:
        shown = "bands && isValid(datum.low) && (datum.low > 0 || !logarithmic)"
        span = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": colour}
        layers.append({
            "name": "band",
            "transform": [{"filter": f"{shown} && !isValid(datum.marker) && !isValid(datum.detail)"}],
            "mark": {"type": "area", "opacity": 0.17, "aria": False},
            "encoding": span,
        })
        layers.append({
            "name": "last-band",
            "transform": [{"filter": f"{shown} && isValid(datum.marker)"}],
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.35, "aria": False},
            "encoding": span,
        })
    dashed = {"x": x, "y": y, "color": colour, "strokeDash": _channel(drawn, "dash") | key}
    if any("detail" in row for row in data):
        layers.append({
            "name": "tokens",
            "transform": [{"filter": "tokens && isValid(datum.detail) && !isValid(datum.marker)"}],
            "mark": {"type": "line", "strokeWidth": 0.8, "aria": False, "invalid": "break-paths-show-domains"},
            "encoding": {"x": x, "y": y, "color": colour, "opacity": faint},
        })
        layers.append({
            "name": "start",
            "transform": [{"filter": "isValid(datum.start) && isValid(datum.shown)"}],
            "mark": {"type": "point", "size": 32, "filled": True, "opacity": 1, "aria": False},
            "encoding": {"x": x, "y": y, "color": colour, "opacity": forward,
                         "shape": {"field": "start", "type": "nominal", "scale": None, "legend": None}},
        })
    layers.append({
        "name": "line",
        "transform": [{"filter": "!isValid(datum.marker) && !isValid(datum.detail)"}],
        "mark": {"type": "line", "strokeWidth": 2.2, "strokeJoin": "round", "aria": False,
                 "invalid": "break-paths-show-domains"},
        "encoding": dashed | {"opacity": forward},
    })
    if any("marker" in row for row in data):
        layers.append({
            "name": "last",
            "transform": [{"filter": "isValid(datum.marker) && isValid(datum.shown)"}],
            "mark": {"type": "point", "size": 75, "strokeWidth": 2.2, "opacity": 1, "aria": False},
            "encoding": {"x": x, "y": y, "color": colour, "opacity": forward,
                         "shape": {"field": "marker", "type": "nominal", "scale": None, "legend": None}},
        })
    layers.append({
        "name": HOVER,
        "transform": [
            {"filter": "isValid(datum.shown) && (tokens || !isValid(datum.detail) || isValid(datum.start) "
                       "|| isValid(datum.marker))"},
            _tip({"curve": "datum.curve", "token": _position(x), "influence": "format(datum.value, '.4~g')"}
                 | ({"p16\u2013p84": RANGE} if banded else {})),
        ],
        "mark": {"type": "point", "size": 50, "filled": True, "aria": False, "tooltip": TIP},
        "encoding": {"x": x, "y": y, "color": colour, "opacity": near},
    })
    spec = {
        "description": describe(items),
        "params": [{"name": "hidden", "value": []}, {"name": "bands", "value": True}, {"name": "tokens", "value": True},
                   {"name": "logarithmic", "value": log}, FRONT, NEAR],
        "transform": [
            {"filter": "indexof(hidden, datum.curve) < 0"},
            {"calculate": "datum.value > 0 || !logarithmic ? datum.value : null", "as": "shown"},
        ],
        "layer": layers,
    }
    note = ". ".join(filter(None, [averaging(items), thinning(items)])) if tokens is None else ""
    data = _axis_only(data, x["field"])
    return framed(spec, data, width=720 if tokens is None else 330, height=380 if tokens is None else 250, note=note)


def residuals(a: Profile | Sample, b: Profile | Sample, held: Comparison | None = None) -> Spec:
    """The log ratio by position that ``catenary.figures.residuals`` documents.

    With the ``Comparison`` that the two come from, its overall factor is removed where it compares shape alone, and
    the band is twice its noise floor, region by region, instead of two standard errors of a token.
    """
    drawn = curves([a, b])
    if len(drawn) != 2:
        raise invalid("a and b", "must be one curve each", f"{len(drawn)} curves", "call .select(condition, step)")
    first, second = (curve.profile for curve in drawn)
    if len(first) != len(second):
        raise invalid("a and b", "must have one length", f"{len(first)} and {len(second)}")
    lines = [line for line in (block_line(first), block_line(second)) if line]
    factor = held.deviation.factor if held is not None and held.shape_only else 1.0
    offset = float(np.log10(factor)) if np.isfinite(factor) and factor > 0 else 0.0
    data: list[Spec] = []
    for j in np.union1d(kept(first), kept(second)):
        if not (first.values[j] > 0 and second.values[j] > 0):
            continue
        ratio = float(np.log10(first.values[j] / second.values[j])) - offset
        row: Spec = {"token": int(j) + 1, "ratio": digits(ratio)}
        if held is None and (first.standard_error is not None or second.standard_error is not None):
            row["noise"] = digits(2 * float(np.hypot(_relative(first, j), _relative(second, j))) / float(np.log(10)))
        if j == len(first) - 1:
            row["last"] = True
        elif lines:
            row["detail"] = 1
            if j == 0:
                row["start"] = 1
        data.append(row)
    if lines:
        data += _block_ratios(lines[0], first, second, offset)
    if held is not None:
        data += [{"from": s.start + 0.5, "to": s.stop + 0.5, "noise": digits(2 * floor)}
                 for s, floor in zip(held.deviation.spans, _floors(held), strict=True) if np.isfinite(floor)]
    x = _x_axis({len(first)}, None)
    title = "log10 ratio (dex)" if offset == 0 else "log10 ratio, shape only (dex)"
    y = {"field": "ratio", "type": "quantitative", "title": title, "axis": {"tickCount": 5}}
    colour = {"value": drawn[0].colour}
    noise: list[Spec] = [{"filter": "isValid(datum.noise)"}, {"calculate": "-datum.noise", "as": "below"}]
    span = {"y": y | {"field": "below"}, "y2": {"field": "noise"}}
    steps = {"x": x | {"field": "from"}, "x2": {"field": "to"}}
    layers: list[Spec] = [
        {"name": "noise", "transform": noise,
         "mark": {"type": "area" if held is None else "rect", "color": NOISE, "opacity": 0.55, "aria": False},
         "encoding": span | ({"x": x} if held is None else steps)},
        {"name": "zero", "data": {"values": [{}]}, "mark": {"type": "rule", "color": MUTED, "aria": False},
         "encoding": {"y": {"datum": 0, "type": "quantitative"}}},
        {"name": "tokens", "transform": [{"filter": "isValid(datum.detail)"}],
         "mark": {"type": "line", "strokeWidth": 0.8, "opacity": 0.42, "aria": False},
         "encoding": {"x": x, "y": y, "color": colour}},
        {"name": "line", "transform": [{"filter": "isValid(datum.ratio) && !datum.last && !isValid(datum.detail)"}],
         "mark": {"type": "line", "strokeWidth": 2 if lines else 1.2, "strokeJoin": "round", "aria": False},
         "encoding": {"x": x, "y": y, "color": colour}},
        {"name": "last", "transform": [{"filter": "datum.last === true || isValid(datum.start)"}],
         "mark": {"type": "point", "size": 60, "filled": True, "opacity": 1, "aria": False},
         "encoding": {"x": x, "y": y, "color": colour}},
        {"name": HOVER,
         "transform": [{"filter": "isValid(datum.ratio)"},
                       _tip({"token": _position(x), "log10 ratio": "format(datum.ratio, '+.3f')"}
                            | ({} if held else {"2 standard errors": NOISE_OF_A_TOKEN}))],
         "mark": {"type": "point", "size": 50, "filled": True, "aria": False, "tooltip": TIP},
         "encoding": {
             "x": x, "y": y, "color": colour,
             "opacity": {"condition": {"param": "near", "empty": False, "value": 1.0}, "value": 0.0}}},
    ]
    words = f"log10 ratio of {drawn[0].label} to {drawn[1].label} by token position"
    spec = {"description": words, "params": [NEAR], "layer": layers}
    note = ". ".join(filter(None, [_averaging(lines), thinning([a])]))
    return framed(spec, data, width=720, height=200, note=note)


def _block_ratios(line: BlockLine, a: Profile, b: Profile, offset: float) -> list[Spec]:
    """The mean of log10 a/b in each block; the blocks with a zero are left out."""
    made = []
    for span in line.spans:
        x, y = (profile.values[span.start : span.stop] for profile in (a, b))
        if x.all() and y.all():
            made.append({"token": (span.start + 1 + span.stop) / 2, "block": f"{span.name}, mean",
                         "ratio": digits(float(np.log10(x / y).mean()) - offset)})
    return made


def _floors(held: Comparison) -> Sequence[float]:
    return [float(f) for f in (held.floor.regions_shape if held.shape_only else held.floor.regions)]


def describe(items: Sequence[Profile | Sample]) -> str:
    """Say what an overlay of these curves shows, with its numbers: the text alternative of the chart."""
    drawn = curves(items)
    parts = []
    for curve in drawn:
        v, lowest = curve.profile.values, int(curve.profile.values[1:-1].argmin()) + 1 if len(curve.profile) > 2 else 0
        parts.append(
            f"{curve.label}: first token {v[0]:.3g}, middle {v[len(v) // 2]:.3g}, lowest inside {v[lowest]:.3g} "
            f"at token {lowest + 1} of {len(v)}, last {v[-1]:.3g}"
        )
    return f"Influence {_symbol(drawn)} of each token on the last one. " + ". ".join(parts) + "."


def averaging(items: Sequence[Profile | Sample]) -> str:
    """Say what the lines of scattering curves are, or nothing where every line goes through tokens."""
    return _averaging([curve.blocks for curve in curves(items) if curve.blocks])


def _averaging(lines: Sequence[BlockLine]) -> str:
    sizes = " or ".join(dict.fromkeys(line.sizes for line in lines))
    return f"Line: means of blocks of {sizes} tokens; faint: single tokens" if sizes else ""


def thinning(items: Sequence[Profile | Sample]) -> str:
    """Say how many positions an overlay draws, or nothing when it draws them all."""
    thinned = {(len(kept(c.profile)), len(c.profile)) for c in curves(items) if len(kept(c.profile)) < len(c.profile)}
    if not thinned:
        return ""
    drawn, length = max(thinned)
    return f"{drawn:,} of {length:,} positions drawn, denser at both ends; first, last and extremes kept"


def framed(spec: Spec, data: list[Spec], *, width: int, height: int, note: str = "") -> Spec:
    """A layered chart of ``data`` with the size, fonts and colours that all our charts share; ``note`` stands above."""
    axis = {
        "labelColor": MUTED, "titleColor": INK, "gridColor": FAINT, "domainColor": FAINT, "tickColor": FAINT,
        "labelFont": FONT, "titleFont": FONT, "labelFontSize": 12, "titleFontSize": 12.5, "titleFontWeight": 500,
        "titlePadding": 10, "labelPadding": 6, "tickSize": 4,
    }
    title = {"title": {"text": "", "subtitle": note, "anchor": "start"}} if note else {}
    return title | spec | {
        "$schema": SCHEMA, "data": {"name": "drawn"}, "datasets": {"drawn": data}, "width": width, "height": height,
        "background": "white", "padding": 10,
        "config": {
            "view": {"stroke": None}, "axis": axis, "axisX": {"grid": False}, "font": FONT,
            "title": {"subtitleColor": MUTED, "subtitleFont": FONT, "subtitleFontSize": 12},
            "legend": {"orient": "top", "direction": "vertical", "labelColor": INK, "labelFont": FONT,
                       "labelFontSize": 12.5, "labelLimit": 640, "symbolSize": 130, "symbolStrokeWidth": 2},
        },
    }


def _x_axis(lengths: set[int], tokens: tuple[int, int] | None) -> Spec:
    if len(lengths) > 1:
        return {"field": "x", "type": "quantitative", "title": "position as a fraction of the context",
                "scale": {"domain": [0, 1.015], "nice": False}, "axis": {"values": [0, 0.25, 0.5, 0.75, 1]}}
    first, last = tokens or (1, next(iter(lengths)))
    pad = 0.015 * (last - first)
    return {"field": "token", "type": "quantitative", "title": "token position (1 = first)",
            "scale": {"domain": [first - pad, last + pad], "nice": False},
            "axis": {"values": _round_tokens(first, last), "format": ",d", "labelOverlap": "greedy"}}


def _round_tokens(first: int, last: int) -> list[int]:
    """The first and last token, and round numbers between them that keep away from both."""
    step = next(s for k in range(12) for s in (10**k, 2 * 10**k, 5 * 10**k) if (last - first) / s <= 7)
    inner = range(step, last, step)
    return [first, *(t for t in inner if first + 0.6 * step < t < last - 0.6 * step), last]


def log_axis(title: str, ticks: Sequence[float]) -> Spec:
    """The field "value" on a logarithmic y axis with these ticks, such as ``round_values`` gives."""
    return {"field": "value", "type": "quantitative", "title": f"{title} (log)",
            "scale": {"type": "log", "nice": False, "padding": 10},
            "axis": {"format": ".3~g", "values": list(ticks)}}


def colour_by(names: Sequence[str]) -> Spec:
    """The field "curve" as one colour per name, in the order of ``names``; full strokes in the legend."""
    return {"field": "curve", "type": "nominal", "title": None, "sort": list(names),
            "scale": {"domain": list(names), "range": list(PALETTE[: len(names)])},
            "legend": {"symbolType": "stroke", "symbolOpacity": 1}}


def banded_lines(encoding: Spec, *, between: Sequence[Spec] = (), point: int = 18) -> list[Spec]:
    """Layers of lines, behind them ``between``, behind those bands from "low" to "high" where rows have them.

    ``point``: size of the marks on the lines, none if 0.
    """
    marks = {"point": {"size": point}} if point else {}
    band = encoding | {"y": {**encoding["y"], "field": "low"}, "y2": {"field": "high"}}
    return [
        {"name": "band", "mark": {"type": "area", "opacity": 0.15}, "encoding": band,
         "transform": [{"filter": "isValid(datum.low)"}]},
        *between,
        {"name": "line", "mark": {"type": "line", "strokeWidth": 2, **marks}, "encoding": encoding},
    ]


def round_values(data: Sequence[Spec]) -> list[float]:
    """Round numbers for a logarithmic axis: 1-2-5 steps below three decades, whole decades above."""
    seen = [v for row in data for v in (row.get("value"), row.get("low"), row.get("high")) if v]
    low, high = np.log10(min(seen)), np.log10(max(seen))
    every = max(1, round(high - low) // 6)
    steps = (1, 2, 5) if high - low < 3 else (1,)
    decades = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    return [float(f"{m}e{k}") for k in decades if k % every == 0 for m in steps]


def _channel(drawn: Sequence[Curve], attribute: str) -> Spec:
    values = [list(v) if isinstance(v := getattr(curve, attribute), tuple) else v for curve in drawn]
    return {"field": "curve", "type": "nominal", "scale": {"domain": [curve.label for curve in drawn], "range": values},
            "legend": None}


def _position(x: Spec) -> str:
    """The expression for a row's position in a tooltip: its token, or the tokens of its block."""
    token = "format(datum.token, ',d')" if x["field"] == "token" else "'x = ' + format(datum.x, '.3f')"
    return f"isValid(datum.block) ? datum.block : {token}"


def _tip(lines: dict[str, str]) -> Spec:
    """The transform that gives every row its tooltip, an object of names and texts.

    A list of fields would not do: on the areas that answer the nearest point, Vega-Lite 6 reads text fields from the
    wrong level and shows ``undefined``.
    """
    return {"calculate": "{" + ", ".join(f"'{name}': {value}" for name, value in lines.items()) + "}", "as": "tip"}


def _visible(curve: Curve, tokens: tuple[int, int] | None) -> list[Spec]:
    if tokens is None:
        return rows(curve)
    return [row for row in rows(curve, limit=None, blocks=False) if tokens[0] <= row["token"] <= tokens[1]]


def _axis_only(data: list[Spec], axis: str) -> list[Spec]:
    """Rows without the position field that no axis reads: a fifth of a page's size."""
    unread = "token" if axis == "x" else "x"
    return [{name: value for name, value in row.items() if name != unread} for row in data]


def _check(tokens: tuple[int, int], lengths: set[int]) -> None:
    if len(lengths) > 1 or not 1 <= tokens[0] < tokens[1] <= min(lengths):
        raise invalid("tokens", f"must be an interval inside 1..L of profiles of one length {sorted(lengths)}", tokens)


def _relative(profile: Profile, j: int) -> float:
    return 0.0 if profile.standard_error is None else float(profile.standard_error[j] / profile.values[j])


def _symbol(drawn: Sequence[Curve]) -> str:
    return clean(drawn[0].profile.quantity.symbol)
