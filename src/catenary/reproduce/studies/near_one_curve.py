"""Near-deterministic prompts: the particle system's own derivative against the limiting responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from catenary.kinetic import Circle, cluster_memory, cluster_response, near_deterministic, sensitivity
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer


def near_one_curve(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """N dtheta_N/dtheta_i for a start on a curve, for growing N, and the closed form for a start at one point.

    Settings: ``tokens``, ``lam``, ``beta``, ``t``, ``sources``, ``bend`` (height of the curve), ``steps``.
    """
    lam, beta, t, bend = (float(settings[name]) for name in ("lam", "beta", "t", "bend"))
    at = np.array(settings["sources"], float)
    sizes, steps = list(map(int, settings["tokens"])), int(settings["steps"])
    limit = near_deterministic(
        lambda s: bend * np.sin(2 * np.pi * s), sigma0=at, lam=lam, beta=beta, t=t, positions=40, nodes=40
    )
    gaps, rows = [], []
    for tokens in sizes:
        start = bend * np.sin(2 * np.pi * np.arange(1, tokens + 1) / tokens)
        found = sensitivity(Circle(tokens, beta, lam), start, t, steps=steps)
        values = tokens * found.gradient[np.rint(at * tokens).astype(int) - 1]
        gaps.append(float(np.abs(values / limit.last - 1).max()))
        rows += [(tokens, float(s), float(v), float(r)) for s, v, r in zip(at, values, limit.last, strict=True)]
    rate = power_law(np.array(sizes, float), np.array(gaps))
    still = near_deterministic(lambda s: 0 * s, sigma0=at, lam=lam, beta=beta, t=t, positions=40, nodes=40)
    closed = np.asarray(cluster_response(t, 1.0, at, beta=beta, lam=lam))
    memory = float(cluster_memory(t, beta=beta))
    cluster = max(float(np.abs(still.last / closed - 1).max()), abs(float(still.memory[-1]) / memory - 1))
    readings = (
        Reading("exponent", rate.exponent, "of the largest relative gap over sources against N", rate.low, rate.high),
        Reading("gap at the largest N", gaps[-1], f"relative, largest over sources, N = {sizes[-1]}", floor=1e-6),
        Reading("cluster gap", cluster, "solved responses of a start at one point against the closed form",
                floor=1e-9),
    )  # fmt: skip
    largest = [(s, v) for n, s, v, _ in rows if n == sizes[-1]]
    chart = lines(
        [("limit", [(float(s), float(v)) for s, v in zip(at, limit.last, strict=True)]),
         (f"N = {sizes[-1]}", largest)],
        x="source position in the prompt", y="N times the derivative",
    )  # fmt: skip
    caption = "The last token's derivative by a source's start, particles and limit, for a start on a curve."
    return Finding(
        f"N = {sizes}, decay {lam:g}, beta {beta:g}, t = {t:g}, curve {bend:g} sin(2 pi sigma), float64",
        readings, (Plate("response", chart, caption, caption),), ("tokens", "sigma0", "value", "limit"), rows,
    )  # fmt: skip


STUDIES.register("near-one-curve", near_one_curve)
