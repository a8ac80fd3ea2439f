"""How many turning points a profile has where the positional kernel is not monotone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.kinetic import Weighting, positional_profile, positional_t_crit
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.study.observer import Observer


def positional_turns(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Turning points inside (0, 1) of the profile of b(x) = e^-x + h e^-((x - c)/w)^2, by bumps' heights h.

    Settings: ``heights``, ``centre`` c, ``width`` w, ``beta``, ``M``, ``part`` of the critical time, ``points`` of the
    grid. The readings are of the highest bump, and of none.
    """
    beta, vocabulary, part = (float(settings[name]) for name in ("beta", "M", "part"))
    centre, width = float(settings["centre"]), float(settings["width"])
    grid = np.linspace(0.02, 1.0, int(settings["points"]))
    rows, curves, turns, slopes = [], [], {}, {}
    for height in map(float, settings["heights"]):
        slopes[height] = -1 + height * 2 * centre / width**2 * math.exp(-((centre / width) ** 2))
        kernel = Weighting(_bumped(height, centre, width), slope_at_0=slopes[height])
        t = part * float(positional_t_crit(kernel, beta=beta, M=vocabulary))
        values = np.asarray(positional_profile(grid, kernel=kernel, beta=beta, t=t, M=vocabulary))
        turns[height] = turning_points(grid, values)
        rows += [(height, t, float(x), float(v)) for x, v in zip(grid, values, strict=True)]
        scaled = [(float(x), float(v)) for x, v in zip(grid, values / values[-1], strict=True)]
        curves.append((f"h = {height:g}", scaled))
    high = max(turns)
    places = ", ".join(f"{x:.3f}" for x in turns[high])
    readings = [
        Reading("turning points with the bump", float(len(turns[high])), f"inside (0, 1), at {places}", floor=0.0),
        Reading("slope of the bumped kernel", slopes[high], "b'(0)", floor=1e-12),
    ]
    if 0.0 in turns:
        readings.append(Reading("turning points without", float(len(turns[0.0])), "the same for b = e^-x", floor=0.0))
    chart = lines(curves, x="source position in the prompt", y="profile over its end value")
    caption = f"Profiles at {part:g} of the critical time for b = e^-x + h e^-((x - {centre:g})/{width:g})^2."
    return Finding(
        f"b = e^-x + h e^-((x - {centre:g})/{width:g})^2, h in {settings['heights']}, beta {beta:g}, M {vocabulary:g}, "
        f"{part:g} of the critical time, {len(grid)} points",
        tuple(readings), (Plate("profiles", chart, caption, caption),), ("height", "t", "x", "profile"), rows,
    )  # fmt: skip


def _bumped(height: float, centre: float, width: float) -> Callable[[Any], Any]:
    return lambda x: np.exp(-x) + height * np.exp(-(((x - centre) / width) ** 2))


def turning_points(x: Float64[np.ndarray, " n"], values: Float64[np.ndarray, " n"]) -> list[float]:
    """Grid points at which a curve goes from falling to rising or back."""
    signs = np.sign(np.diff(values))
    return [float(x[k + 1]) for k in np.flatnonzero(signs[:-1] * signs[1:] < 0)]


STUDIES.register("positional-turns", positional_turns)
