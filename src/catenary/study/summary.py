"""What a finished run says on the terminal: a line of shape per curve, a line of agreement per comparison."""

from __future__ import annotations

import numpy as np

from catenary.comparison import Comparison, compare
from catenary.reading import align, number
from catenary.shape import Shape, describe
from catenary.store import Run
from catenary.study.curves import comparable_pairs, single_curves

SHAPE_COLUMNS = ("curve", "shape", "highest/lowest block", "last/middle")
"""Heads of a table of shapes on the terminal."""


def summary(run: Run) -> str:
    """Verdicts, agreements and what was skipped, as plain text."""
    single = single_curves(run.curves)
    shapes = {name: describe(curve) for name, curve in single.items()}
    rows = [SHAPE_COLUMNS, *map(_shape_row, shapes.values())]
    parts = [align(rows)]
    pairs = list(comparable_pairs(single))
    if pairs:
        head = ("held against each other", "median error, dex", "noise floor", "farthest off by region (its floor)")
        parts.append(align([head, *(_pair_row(compare(single[a], single[b])) for a, b in pairs)]))
    skipped = [f"skipped {entry['name']}: {entry['reason']}" for entry in run.result.get("skipped", [])]
    return "\n\n".join([*parts, *(["\n".join(skipped)] if skipped else [])])


def _shape_row(shape: Shape) -> tuple[str, str, str, str]:
    return shape.label, shape.verdict.words, shape["peak/trough"].text, shape["last/mid"].text


def _pair_row(held: Comparison) -> tuple[str, str, str, str]:
    known = [region for region in held.regions if not np.isnan(region.value)]
    worst = max(known, key=lambda region: abs(region.value), default=None)
    kind = " in shape" if held.shape_only else ""
    floor = "unknown" if np.isnan(held.noise_floor) else number(held.noise_floor)
    error = "undefined" if np.isnan(held.median_error) else number(held.median_error)
    where = ""
    if worst is not None:
        beside = "" if worst.floor is None else f" ({number(worst.floor)})"
        where = f"{worst.value:+.3f} {worst.name.removeprefix('shape ').removeprefix('error ')}{beside}"
    return f"{held.a.label} ~ {held.b.label}{kind}", error, floor, where
