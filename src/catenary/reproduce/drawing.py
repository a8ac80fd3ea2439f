"""One chart for the ledger's figures: named lines over one quantity, with bands where they are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from catenary.charts import Spec, banded_lines, colour_by, framed, round_values
from catenary.drawing import PALETTE, digits
from catenary.errors import invalid

DENSE = 120
"""Points of a line beyond which they are not marked one by one."""

Point = tuple[float, float] | tuple[float, float, float, float]


def lines(
    curves: Sequence[tuple[str, Sequence[Point]]], *, x: str, y: str, log_x: bool = False, log_y: bool = False
) -> Spec:
    """Lines of (x, y) or (x, y, low, high) points by name; ``x`` and ``y`` are the axes' titles.

    Raises:
        InvalidInput: more curves than there are colours.
    """
    names = [name for name, _ in curves]
    if not 1 <= len(names) <= len(PALETTE):
        raise invalid("curves", f"must give 1 to {len(PALETTE)} lines", len(names), "draw the others apart")
    data: list[Spec] = []
    for name, points in curves:
        for point in points:
            row: Spec = {"curve": name, "x": digits(point[0]), "value": digits(point[1])}
            if len(point) == 4:
                row |= {"low": digits(point[2]), "high": digits(point[3])}
            data.append(row)
    vertical = _axis("value", y, log_y)
    if log_y:
        vertical["axis"] = {"format": ".3~g", "values": round_values(data)}
    encoding = {"x": _axis("x", x, log_x), "y": vertical, "color": colour_by(names)}
    dense = max(len(points) for _, points in curves) > DENSE
    layers = banded_lines(encoding, point=0 if dense else 18)
    return framed({"description": f"{y} over {x}", "params": [], "layer": layers}, data, width=720, height=320)


def _axis(field: str, title: str, log: bool) -> Spec:
    scale: Spec = {"type": "log", "nice": False, "padding": 8} if log else {"zero": False, "nice": False}
    return {"field": field, "type": "quantitative", "title": title + (" (log)" if log else ""), "scale": scale}


def from_the_end(values: Float64[np.ndarray, " L"]) -> list[Point]:
    """A hundred positions at most, counted from the last, over the curve's own median."""
    size = len(values)
    taken = np.unique(np.round(np.geomspace(1, size, 100)).astype(int))
    middle = float(np.median(values))
    return [(float(k), float(values[size - k] / middle)) for k in taken]
