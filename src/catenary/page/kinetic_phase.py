"""`kinetic phase`: regimes over decay and time, and the times that bound them."""

from __future__ import annotations

import numpy as np

from catenary.errors import invalid
from catenary.kinetic.arguments import one_number, positive
from catenary.kinetic.closed_form.minimum import REGIMES
from catenary.kinetic.closed_form.phase import PhaseDiagram, phase_diagram
from catenary.kinetic.closed_form.thresholds import t_monotone
from catenary.page import kinetic_charts as charts
from catenary.page.exhibit import Exhibit, Plate
from catenary.reading import finite, number

NEAR = 1e-6
"""Relative difference of two times above which there is a hump between them, well above their error."""


def phase_exhibit(*, beta: float, M: float, largest_decay: float, longest: float | None, cells: int) -> Exhibit:
    """Regimes over decay and time at one beta and M."""
    top = one_number("lam_max", positive("lam_max", largest_decay))
    if isinstance(cells, bool) or not 4 <= cells <= 200:
        raise invalid("cells", "must be a whole number in 4..200", cells)
    last = float(t_monotone(top, beta, M)) * 1.1 if longest is None else one_number("t_max", positive("t_max", longest))
    decays, times = np.linspace(top / cells, top, cells), np.linspace(last / cells, last, cells)
    diagram = phase_diagram(lam=decays, t=times, beta=beta, M=M)
    shares = {word: float((diagram.regime == word).mean()) for word in REGIMES if (diagram.regime == word).any()}
    pick = np.unique(np.linspace(0, cells - 1, 12).round().astype(int))
    rows = tuple(
        (f"{decays[k]:.3g}", *(number(float(v[k])) for v in (diagram.t_sufficient, diagram.t_crit, diagram.t_monotone)))
        for k in pick
    )
    cell = (diagram.regime, diagram.sigma, diagram.depth)
    data = [
        (float(lam), float(t), str(word), finite(float(sigma)), finite(float(depth)))
        for lam, *columns in zip(decays, *cell, strict=True)
        for t, word, sigma, depth in zip(times, *columns, strict=True)
    ]
    verdict = phase_words(diagram)
    plate = Plate(
        "phase", charts.phases(diagram), f"Regimes over decay and time. {verdict}",
        "U: primacy, one interior minimum, recency. W: several minima, recency. Hump: the end falls, a maximum stands "
        "before it. Primacy: falling throughout. Lines: the times up to which the U is proved, at which recency ends "
        "and at which the hump ends.",
    )  # fmt: skip
    return Exhibit(
        name="phase", kicker="Kinetic theory", title="Phase diagram of retrieval", verdict=verdict, notes=(),
        numbers=(("beta", f"{beta:g}"), ("token angles M", f"{M:g}"),
                 *((f"share of {word}", f"{100 * share:.0f} %") for word, share in shares.items())),
        plates=(plate,), caption="Times that bound the regimes", rows=rows,
        columns=("lambda", "U proved below", "recency ends", "hump ends"),
        fields=("lam", "t", "regime", "sigma", "depth"), data=data,
        parameters={"beta": beta, "M": M, "lam_max": top, "t_max": last, "cells": cells},
        results={"shares": shares, "lam": decays.tolist(), "t_sufficient": diagram.t_sufficient.tolist(),
                 "t_crit": diagram.t_crit.tolist(), "t_monotone": diagram.t_monotone.tolist()},
    )  # fmt: skip


def phase_words(diagram: PhaseDiagram) -> str:
    """What follows what, within the diagram's times."""
    last = float(diagram.t[-1])
    ends = [
        f"until t = {number(float(end))}" if end < last else f"throughout, to t = {last:g},"
        for end in (diagram.t_crit[0], diagram.t_crit[-1])
    ]
    words = [
        f"Recency lasts {ends[0]} at lambda = {diagram.lam[0]:.3g} and {ends[1]} at lambda = {diagram.lam[-1]:.3g}"
    ]
    humped = (diagram.t_monotone > diagram.t_crit * (1 + NEAR)) & (diagram.t_crit < last)
    if humped.any():
        words.append(f"then a hump where lambda is {diagram.lam[humped][0]:.3g} or more")
    if (diagram.t_monotone < last).any():
        words.append("at last primacy" if humped.any() else "then primacy")
    return "; ".join(words)
