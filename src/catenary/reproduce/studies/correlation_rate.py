"""Correlations of the particle system against the closed form, and the rate at which they meet as N grows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from catenary.kinetic import retrieval_profile
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.growing import sampled_correlations
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer


def correlation_rate(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Relative gap of N Cov to the closed form, averaged over sources in [.3, .9], for growing N.

    Settings: ``tokens`` and ``samples`` (as many), ``lam``, ``beta``, ``t``, ``M``, ``seed``.
    """
    lam, beta, t, vocabulary = (float(settings[name]) for name in ("lam", "beta", "t", "M"))
    sizes, samples = list(map(int, settings["tokens"])), list(map(int, settings["samples"]))
    gaps, errors, rows = [], [], []
    for tokens, run in sampled_correlations(settings, observer):
        middle = (run.sigma0 >= 0.3) & (run.sigma0 <= 0.9)
        limit = np.asarray(retrieval_profile(run.sigma0[middle], lam=lam, beta=beta, t=t, M=vocabulary))
        off = (run.draws[:, middle] / limit - 1).mean(axis=1)
        gaps.append(float(off.mean()))
        errors.append(float(off.std(ddof=1)) / math.sqrt(off.size))
        rows.append((tokens, off.size, gaps[-1], errors[-1]))
    binned = run.binned(16)
    points = [
        (float(s), float(v), float(v - 1.96 * e), float(v + 1.96 * e))
        for s, v, e in zip(binned.sigma0, binned.value, binned.stderr, strict=True)
    ]
    rate = power_law(np.array(sizes, float), np.abs(gaps), np.array(errors))
    last, error = abs(gaps[-1]), errors[-1]
    readings = (
        Reading("exponent", rate.exponent, "of |N Cov / closed form - 1| against N", rate.low, rate.high),
        Reading("gap at the largest N", last, f"at N = {sizes[-1]}, sources .3 to .9",
                max(0.0, last - 1.96 * error), last + 1.96 * error),
    )  # fmt: skip
    grid = np.linspace(0.03, 1, 98)
    exact = np.asarray(retrieval_profile(grid, lam=lam, beta=beta, t=t, M=vocabulary))
    chart = lines(
        [("closed form", [(float(s), float(v)) for s, v in zip(grid, exact, strict=True)]),
         (f"particles, N = {sizes[-1]}", points)],
        x="source position in the prompt", y="N times the correlation",
    )  # fmt: skip
    caption = f"Sampled correlations in bins of 16 tokens with 95 % bands, and the closed form; decay {lam:g}, t {t:g}."
    return Finding(
        f"N = {sizes}, prompts {samples}, decay {lam:g}, beta {beta:g}, t = {t:g}, M = {vocabulary:g}, float64",
        readings, (Plate("profile", chart, caption, caption),), ("tokens", "prompts", "gap", "stderr"), rows,
    )  # fmt: skip


STUDIES.register("correlation-rate", correlation_rate)
