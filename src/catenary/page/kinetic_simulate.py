"""`kinetic simulate`: interacting tokens on the circle, followed in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from catenary.errors import NotApplicable, invalid
from catenary.kinetic.arguments import one_number, positive
from catenary.kinetic.particles.circle import Circle
from catenary.kinetic.particles.integrate import stiffness, trajectory
from catenary.page import kinetic_charts as charts
from catenary.page.exhibit import Exhibit, Plate
from catenary.reading import number

Progress = Callable[[int, int], None]

Start = Literal["uniform", "clusters"]
STARTS: tuple[Start, ...] = ("uniform", "clusters")

SPREAD = 0.075
"""Standard deviation of the start in clusters, in radians."""

MOST_CLUSTERS = 1000
"""Clusters of a start: beyond it they overlap many times over."""

MOST_KEPT = 64
"""Tokens whose paths are kept and drawn."""

MOST_STEPS = 1e5
"""Steps of time above which the interaction counts as too stiff."""

MOST_WORK = 1e8
"""Tokens times steps above which a run would take more than some six minutes (measured on one core)."""


def simulate_exhibit(
    *, tokens: int, lam: float, beta: float, t: float, frames: int, start: Start, clusters: int, seed: int,
    progress: Progress,
) -> Exhibit:
    """Tokens on the circle from a random start."""
    if start not in STARTS:
        raise invalid("start", f"must be one of {', '.join(STARTS)}", start)
    if isinstance(frames, bool) or not 2 <= frames <= 2000:
        raise invalid("frames", "must be a whole number in 2..2000", frames)
    if isinstance(clusters, bool) or not 1 <= clusters <= MOST_CLUSTERS:
        raise invalid("clusters", f"must be a whole number in 1..{MOST_CLUSTERS}", clusters)
    system, last = Circle(tokens, beta, lam), one_number("time", positive("time", t))
    check_size(tokens, max(frames, stiffness(beta) * last), MOST_WORK, "tokens, frames, beta or time")
    rng = np.random.default_rng(seed)
    if start == "uniform":
        angles = rng.uniform(0, 2 * np.pi, tokens)
    else:
        angles = 2 * np.pi / clusters * rng.integers(clusters, size=tokens) + SPREAD * rng.standard_normal(tokens)
    times = np.linspace(0, last, frames)
    kept = np.unique(np.linspace(0, tokens - 1, min(tokens, MOST_KEPT)).round().astype(int))
    now, seen, order = angles, np.empty((frames, kept.size)), np.empty(frames)
    for frame in range(frames):
        if frame:
            now = trajectory(system, now, [float(times[frame] - times[frame - 1])])[0]
            progress(frame, frames - 1)
        seen[frame], order[frame] = now[kept], np.abs(np.exp(1j * now).mean())
    memory = np.cos(now - angles)
    verdict = (
        f"The order parameter |mean of e^(i angle)| goes from {order[0]:.2f} to {order[-1]:.2f} in t = {last:g}; "
        f"the last token turned by {number(float(seen[-1, -1] - seen[0, -1]))} rad"
    )
    pick = np.unique(np.linspace(0, frames - 1, 11).round().astype(int))
    plate = Plate(
        "simulate", charts.trajectories(times, seen, (kept + 1) / tokens), f"Angles of the tokens over time. {verdict}",
        f"Angles of {kept.size} of {tokens:,} tokens, folded into one period; the first one rests. The data hold the "
        "tokens drawn.",
    )  # fmt: skip
    data = [
        (float(times[k]), j + 1, (j + 1) / tokens, float(seen[k, n])) for k in range(frames)
        for n, j in enumerate(kept.tolist())
    ]
    return Exhibit(
        name="simulate", kicker="Kinetic theory", title=f"{tokens:,} interacting tokens", verdict=verdict,
        notes=(
            "The order parameter is 1 when all tokens stand at one angle, and about 1/sqrt(N) when they are spread "
            "evenly at random.",
        ),
        numbers=(("lambda", f"{lam:g}"), ("beta", f"{beta:g}"), ("start", start), ("seed", str(seed)),
                 ("mean cosine between each token's end and start", f"{memory.mean():.3f}")),
        plates=(plate,), caption="Order parameter over time",
        columns=("time", "order parameter", "angle of the last token"),
        rows=tuple((f"{times[k]:.3g}", f"{order[k]:.4f}", f"{seen[k, -1]:.5f}") for k in pick),
        fields=("t", "token", "sigma", "angle"), data=data,
        parameters={"tokens": tokens, "lam": lam, "beta": beta, "t": last, "frames": frames, "start": start,
                    "clusters": clusters, "seed": seed},
        results={"t": times.tolist(), "order": order.tolist()},
    )  # fmt: skip


def check_size(tokens: int, steps: float, most: float, smaller: str) -> None:
    """Refuse more than ``most`` tokens times steps, or too many steps of the length of the fastest decay."""
    if steps > MOST_STEPS or tokens * steps > most:
        raise NotApplicable(
            f"this needs about {steps:.1e} steps of {tokens:,} tokens, more than {MOST_STEPS:.0e} steps or "
            f"{most:.0e} tokens times steps: take fewer or smaller {smaller}"
        )
