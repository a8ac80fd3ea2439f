"""The residual-aware rollout at its authors' own strengths: what residuals, mask, slopes and slips of code each do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.configs.alibi import bloom_heads
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer
from catenary.theory.rollout.attention import Head, head_mean
from catenary.theory.rollout.content import content_diagonal
from catenary.theory.rollout.product import rollout_row
from catenary.theory.rollout.published import one_series_slopes
from catenary.theory.rollout.schedules import Constant, PowerDecay
from catenary.theory.rollout.sides import slope_of

Row = Float64[np.ndarray, " L"]
FLOOR = 1e-9
"""Relative error of a row against the published code's own output, as tested."""


def rollout_published(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Roll out MPT-7B and BLOOM-7B1 from the published strengths, slopes and contents, with parts switched off.

    Settings: ``short`` (L) and ``depths`` (of the rollouts with decaying strengths), ``first`` (their first strength),
    ``constant`` (a strength below 1 for all layers).
    """
    stored = published()
    rows: dict[str, Row] = {}
    for name in ("mpt-7b", "bloom-7b1"):
        rows[name] = roll(stored, name)
        rows[f"{name}, no residual"] = roll(stored, name, residual=False)
        rows[f"{name}, no slopes"] = roll(stored, name, slopes=False)
    rows["mpt-7b, mean content"] = roll(stored, "mpt-7b", content="mean")
    rows["mpt-7b, mean content, as run"] = roll(stored, "mpt-7b", content="mean", only_first_heads=True)
    rows["mpt-7b, all content"] = roll(stored, "mpt-7b", content="all")
    rows["mpt-7b, all content as logits"] = roll(stored, "mpt-7b", content="all", scaled=True)
    readings = (*_shape(stored, rows), *_slips(rows), *by_depth(settings), *at_constant(settings))
    names = ("mpt-7b", "mpt-7b, no residual", "mpt-7b, no slopes", "mpt-7b, all content")
    chart = lines(
        [(name, [(j + 1.0, float(v)) for j, v in enumerate(rows[name]) if v > 1e-12]) for name in names],
        x="position j", y="share of the last row", log_y=True,
    )  # fmt: skip
    caption = "MPT-7B's rollout at the published strengths, and without its residual stream, or without its slopes."
    return Finding(
        "rollouts of MPT-7B (32 layers) and BLOOM-7B1 (30 layers) at the published strengths, L = 256; by depth, one "
        f"head that averages, L = {settings['short']}; float64",
        readings, (Plate("rows", chart, caption, caption),), ("position", *rows),
        [(j + 1, *(float(row[j]) for row in rows.values())) for j in range(stored["length"])],
    )  # fmt: skip


def published() -> dict[str, Any]:
    """Strengths, contents and four results of the published code, GitHub ml-uhh/position-bias, commit a514e09."""
    text = files("catenary.reproduce").joinpath("published_rollout.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def roll(
    stored: Mapping[str, Any], name: str, *, content: str = "none", residual: bool = True, slopes: bool = True,
    scaled: bool = False, only_first_heads: bool = False,
) -> Row:
    """The last row of one model's rollout; ``scaled`` divides the contents by the root of the head size."""
    model = stored["models"][name]
    layers, heads = model["layers"], model["heads"]
    given = {"none": 0.0, "mean": [[model.get("content_mean", 0.0)]], "all": model.get("content", 0.0)}[content]
    prior = content_diagonal(np.array(given) / (model["head_size"] ** 0.5 if scaled else 1.0), layers, heads,
                             only_first_heads)  # fmt: skip
    steep = one_series_slopes(heads) if slopes else np.zeros(heads)
    attentions = [
        head_mean([Head(float(m), content=float(own)) for m, own in zip(steep, row, strict=True)], stored["length"])
        for row in prior
    ]
    strengths = np.array(model["strengths"]) if residual else np.ones(layers)
    return rollout_row(attentions, strengths)


def _shape(stored: Mapping[str, Any], rows: Mapping[str, Row]) -> Iterator[Reading]:
    """Sums, agreement with the published code's output, and which part makes which end."""
    yield Reading("sum gap", max(abs(float(row.sum()) - 1) for row in rows.values()), "largest |sum of a row - 1|",
                  floor=1e-12)  # fmt: skip
    gaps = []
    for known in stored["rows"]:
        row = roll(stored, known["model"], content=known["content"], only_first_heads=known["content"] == "mean")
        gaps += [abs(float(row[at]) / known[end] - 1) for end, at in (("first", 0), ("middle", 128), ("last", -1))]
    yield Reading("gap to the published code", max(gaps), "largest relative gap, 4 rows, 3 places each", floor=FLOOR)
    length = stored["length"]
    for name in ("mpt-7b", "bloom-7b1"):
        full, bare, flat = rows[name], rows[f"{name}, no residual"], rows[f"{name}, no slopes"]
        for label, value, meaning in (
            ("share of the first, no residual", bare[0], "attention alone"),
            ("first over middle", full[0] / full[128], "with residuals, slopes, no content"),
            ("last over middle", full[-1] / full[128], "with residuals, slopes, no content"),
            ("last over middle, no residual", bare[-1] / bare[128], "attention alone, with slopes"),
            ("trough", full.argmin() / length, "x of the lowest token, with residuals and slopes"),
            ("trough, no slopes", flat.argmin() / length, "x of the lowest token, residuals but no slopes"),
            ("before last over middle, no slopes", flat[-2] / flat[128], "token L - 1, residuals but no slopes"),
            ("before last over middle", full[-2] / full[128], "token L - 1, residuals and slopes"),
        ):
            yield Reading(f"{name}, {label}", float(value), meaning, floor=FLOOR * float(value))


def _slips(rows: Mapping[str, Row]) -> Iterator[Reading]:
    """What each slip of the published code does to a number: as run, over as described."""
    described, run = rows["mpt-7b, mean content"], rows["mpt-7b, mean content, as run"]
    yield Reading("mean content, last token", float(run[-1] / described[-1]),
                  f"as run ({run[-1]:.4f}) over as described ({described[-1]:.4f})", floor=FLOOR)  # fmt: skip
    raw, logits = rows["mpt-7b, all content"], rows["mpt-7b, all content as logits"]
    yield Reading("unscaled content, last token", float(raw[-1] / logits[-1]),
                  f"as run ({raw[-1]:.4f}) over content as logits ({logits[-1]:.4f})", floor=FLOOR)  # fmt: skip
    for name, heads, layers, strength, right in (
        ("slopes of 112 heads", 112, 70, 0.056, np.array([slope_of(group.kernel) for group in bloom_heads(112)])),
        ("slopes over the root of the head size", 64, 36, 0.142, one_series_slopes(64) / 8.0),
    ):
        ran, meant = (_uniform_strength(slopes, layers, strength) for slopes in (one_series_slopes(heads), right))
        yield Reading(
            f"{name}, before last over middle", float((ran[-2] / ran[128]) / (meant[-2] / meant[128])),
            f"as run ({ran[-2] / ran[128]:.3g}) over the model's ({meant[-2] / meant[128]:.3g}); {layers} layers, the "
            f"mean published strength {strength:g} in each", floor=FLOOR,
        )  # fmt: skip


def _uniform_strength(slopes: Any, layers: int, strength: float) -> Row:
    made = head_mean([Head(float(slope)) for slope in slopes], 256)
    return rollout_row([made] * layers, Constant(strength).strengths(layers))


def by_depth(settings: Mapping[str, Any]) -> Iterator[Reading]:
    """All but the first token's share against depth, for strengths that decay as (t+1)^-beta."""
    length, depths = int(settings["short"]), list(map(int, settings["depths"]))
    made = head_mean([Head()], length)
    for beta in (0.0, 0.5, 1.0, 1.5, 2.0):
        left = np.array([
            1 - rollout_row([made] * depth, PowerDecay(float(settings["first"]), beta).strengths(depth))[0]
            for depth in depths
        ])
        if beta < 1:
            meaning = f"share of all tokens but the first at {depths[-1]} layers, L = {length}"
            yield Reading(f"left at beta = {beta:g}", float(left[-1]), meaning, floor=1e-12)
            continue
        rate = power_law(np.array(depths, float), left)
        yield Reading(f"exponent at beta = {beta:g}", rate.exponent,
                      f"of the share of all but the first token against depth, {depths[0]} to {depths[-1]} layers",
                      rate.low, rate.high)  # fmt: skip


def at_constant(settings: Mapping[str, Any]) -> Iterator[Reading]:
    r"""The same at one strength in every layer, where the second token keeps \(1 - \lambda/2\) a layer."""
    length, strength = int(settings["short"]), Constant(float(settings["constant"]))
    few, many = (int(settings["depths"][k]) for k in (0, -1))
    made = head_mean([Head()], length)
    left = [float(rollout_row([made] * depth, strength.strengths(depth))[1:].sum()) for depth in (few, many)]
    yield Reading("left at a constant strength", left[0], f"share of all tokens but the first at {few} layers, "
                  f"strength {strength.strength:g}, L = {length}", floor=1e-12)  # fmt: skip
    yield Reading("kept per layer at a constant strength", float((left[1] / left[0]) ** (1 / (many - few))),
                  f"of that share, {few} to {many} layers", floor=1e-9)  # fmt: skip


STUDIES.register("rollout-published", rollout_published)
