"""Recency under any positional kernel: what the slope of b at distance 0 decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from catenary.kinetic import Weighting, positional_profile, positional_t_crit
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.study.observer import Observer


def positional_slope(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """The rise of the profile at its end for kernels b(x) = 1 + s x + k x^2 at small times, by finite differences.

    Settings: ``slopes`` of b at 0, ``bends`` k, ``beta``, ``M``, ``part`` of the critical time (of 1 where there is
    none), ``step`` of the difference.
    """
    beta, vocabulary, part, step = (float(settings[name]) for name in ("beta", "M", "part", "step"))
    rows = []
    curves: list[tuple[str, list[tuple[float, float]]]] = []
    for s in map(float, settings["slopes"]):
        for k in map(float, settings["bends"]):
            kernel = Weighting(_parabola(s, k), slope_at_0=s)
            critical = float(positional_t_crit(kernel, beta=beta, M=vocabulary))
            t = part * (critical if critical > 0 else 1.0)
            pair = np.asarray(positional_profile([1 - step, 1.0], kernel=kernel, beta=beta, t=t, M=vocabulary))
            rows.append((s, k, t, float(pair[1] - pair[0]) / step, critical))
        grid = np.linspace(0.05, 1, 60)
        values = np.asarray(positional_profile(grid, kernel=kernel, beta=beta, t=t, M=vocabulary))
        if len(curves) < 5:
            curves.append((f"b'(0) = {s:g}", [(float(x), float(v / values[-1]))
                                              for x, v in zip(grid, values, strict=True)]))  # fmt: skip
    falling = [row[3] > 0 for row in rows if row[0] < 0]
    others = [row[3] > 0 for row in rows if row[0] >= 0]
    readings = (
        Reading("recency where b falls", float(np.mean(falling)), f"share of {len(falling)} kernels with b'(0) < 0 "
                "whose profile rises at the end", floor=0.0),
        Reading("recency where b does not fall", float(np.mean(others)), f"share of {len(others)} kernels with "
                "b'(0) >= 0 whose profile rises at the end", floor=0.0),
    )  # fmt: skip
    chart = lines(curves, x="source position in the prompt", y="profile over its end value")
    caption = f"Profiles at {part:g} of the critical time, by the slope of the positional kernel at distance 0."
    return Finding(
        f"b = 1 + s x + k x^2, s in {settings['slopes']}, k in {settings['bends']}, beta {beta:g}, M {vocabulary:g}, "
        f"{part:g} of the critical time",
        readings, (Plate("profiles", chart, caption, caption),), ("slope", "bend", "t", "rise", "critical"), rows,
    )  # fmt: skip


def _parabola(s: float, k: float) -> Callable[[Any], Any]:
    return lambda x: 1 + s * x + k * x**2


STUDIES.register("positional-slope", positional_slope)
