"""General self-attention on spheres: whether the sampled retrieval profile is a U."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.kinetic import Spheres, correlate_on_sphere
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.study.observer import Observer


def spheres(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """N Cov of e^{-|x - y|^2} by source, with random query, key and value matrices.

    Settings: ``tokens``, ``dimension``, ``beta``, ``lam``, ``noise``, ``t``, ``sources``, ``samples``, ``seed``. Both
    ends are held against the lowest source between them.
    """
    at = list(map(float, settings["sources"]))
    system = Spheres(
        int(settings["tokens"]), int(settings["dimension"]), float(settings["beta"]), float(settings["lam"]),
        noise=float(settings["noise"]),
    )
    observer.say(f"  {settings['samples']} prompts of {settings['tokens']} tokens")
    found = correlate_on_sphere(
        system, t=float(settings["t"]), sigma0=at, samples=int(settings["samples"]), seed=int(settings["seed"])
    )
    draws, mean = found.draws, np.asarray(found.value)
    lowest = 1 + int(mean[1:-1].argmin())
    readings = []
    for name, end in (("first", 0), ("last", -1)):
        difference = draws[:, end] - draws[:, lowest]
        rise, error = float(difference.mean()), float(difference.std(ddof=1)) / np.sqrt(len(draws))
        readings.append(
            Reading(f"{name} over the lowest", rise, f"N Cov at source {at[end]:g} less that at {at[lowest]:g}",
                    rise - 1.96 * error, rise + 1.96 * error)
        )  # fmt: skip
    readings.append(one_valley(draws))
    points = [
        (s, float(v), float(v - 1.96 * e), float(v + 1.96 * e))
        for s, v, e in zip(found.sigma0, mean, found.stderr, strict=True)
    ]
    chart = lines([("sampled", points)], x="source position in the prompt", y="N times the correlation")
    caption = f"Retrieval profile of general self-attention in dimension {settings['dimension']}, 95 % bands."
    return Finding(
        f"N = {settings['tokens']}, d = {settings['dimension']}, beta {settings['beta']}, decay {settings['lam']}, "
        f"noise {settings['noise']}, t = {settings['t']}, {settings['samples']} prompts, float64",
        tuple(readings), (Plate("profile", chart, caption, caption),), ("sigma0", "value", "low", "high"), points,
    )  # fmt: skip


def one_valley(draws: Float64[np.ndarray, "samples sources"]) -> Reading:
    """The largest step against one valley: up before the lowest source or down behind it, over any distance.

    Relative to the lowest value. The interval is at once for all pairs of sources, by Bonferroni: a profile whose
    largest step is surely below x has no second valley that is deeper than x.
    """
    from scipy.stats import norm

    mean = draws.mean(axis=0)
    lowest, sources = int(mean.argmin()), range(mean.size)
    sides = ([k for k in sources if k <= lowest][::-1], [k for k in sources if k >= lowest])
    pairs = [(near, far) for side in sides for n, near in enumerate(side) for far in side[n + 1 :]]
    steps = np.array([draws[:, near] - draws[:, far] for near, far in pairs]) / mean[lowest]
    value, error = steps.mean(axis=1), steps.std(axis=1, ddof=1) / np.sqrt(len(draws))
    half = float(norm.ppf(1 - 0.025 / len(pairs))) * error
    return Reading("largest step against one valley", float(value.max()), f"over the lowest value, {len(pairs)} pairs",
                   float((value - half).max()), float((value + half).max()))  # fmt: skip


STUDIES.register("spheres", spheres)
