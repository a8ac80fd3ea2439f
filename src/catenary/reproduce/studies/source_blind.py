"""How the whole dependence of the retrieval observable on the source's position shrinks with N."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.growing import sampled_correlations
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer

MIDDLE = (0.45, 0.55)
EARLY = (0.15, 0.25)


def source_blind(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """The observable 1 + 2 Cov at sources near .2 less that at sources near .5, for growing N.

    Settings: ``tokens``, ``samples`` (as many), ``lam``, ``beta``, ``t``, ``M``, ``seed``.
    """
    lam, beta, t, vocabulary = (float(settings[name]) for name in ("lam", "beta", "t", "M"))
    sizes, samples = list(map(int, settings["tokens"])), list(map(int, settings["samples"]))
    rows = []
    for tokens, run in sampled_correlations(settings, observer):
        observable = 2 * run.draws / tokens
        parts = [
            observable[:, (run.sigma0 >= low) & (run.sigma0 <= high)].mean(axis=1) for low, high in (EARLY, MIDDLE)
        ]
        difference = parts[0] - parts[1]
        rows.append((tokens, float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(difference.size))))
    table = np.array(rows)
    rate = power_law(table[:, 0], np.abs(table[:, 1]), table[:, 2])
    last, error = table[-1, 1:]
    readings = (
        Reading("exponent of the dependence", rate.exponent, "of the observable's difference between sources near .2 "
                "and near .5, against N", rate.low, rate.high),
        Reading("dependence at the largest N", float(last), f"the difference at N = {sizes[-1]}; the mean is 1",
                float(last - 1.96 * error), float(last + 1.96 * error)),
    )  # fmt: skip
    points = [(float(n), abs(float(v)), abs(float(v)) - 1.96 * e, abs(float(v)) + 1.96 * e) for n, v, e in rows]
    chart = lines([("difference", points)], x="tokens N", y="difference of the observable", log_x=True, log_y=True)
    caption = "What the source's position changes in the observable, of which the mean field sees nothing."
    return Finding(
        f"N = {sizes}, prompts {samples}, decay {lam:g}, beta {beta:g}, t = {t:g}, M = {vocabulary:g}, float64",
        readings, (Plate("rate", chart, caption, caption),), ("tokens", "difference", "stderr"), rows,
    )  # fmt: skip


STUDIES.register("source-blind", source_blind)
