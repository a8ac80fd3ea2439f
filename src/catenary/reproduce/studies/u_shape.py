"""The U-shape theorem of the kinetic theory: what its condition guarantees, how sharp it is, and what ends recency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from catenary.kinetic import (
    interior_minimum,
    mode_rate,
    retrieval_profile,
    retrieval_slope,
    source_at,
    t_crit,
)
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.study.observer import Observer


def u_shape(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Random parameters under the theorem's condition and beyond it, read on a grid that the closed form does not use.

    Settings: ``cases``, ``seed``; ``lam``, ``beta``, ``M`` as [lowest, highest]; ``grid`` points in the source.
    """
    rng, n = np.random.default_rng(int(settings["seed"])), int(settings["cases"])
    (slowest, fastest), (weakest, strongest), (fewest, most) = (settings[name] for name in ("lam", "beta", "M"))
    lam = 10 ** rng.uniform(np.log10(slowest), np.log10(fastest), n)
    beta = rng.uniform(weakest, strongest, n)
    vocabulary = rng.integers(fewest, most, n).astype(float)
    bound = np.array([_condition(*case) for case in zip(lam, beta, strict=True)])
    exact = np.asarray(t_crit(lam, beta, vocabulary))
    under = rng.uniform(0.05, 1, n) * bound
    between = bound + rng.uniform(0.05, 0.99, n) * (exact - bound)
    at = np.concatenate([np.geomspace(1e-12, 0.05, int(settings["grid"]) // 2),
                         np.linspace(0.05, 1, int(settings["grid"]) // 2)[1:]])  # fmt: skip
    shaped = _u_share(lam, beta, vocabulary, under, at)
    beyond = _u_share(lam, beta, vocabulary, between, at)
    over = np.asarray(retrieval_slope(1.0, lam=lam, beta=beta, t=1.001 * exact, M=vocabulary))
    flat = np.asarray(retrieval_slope(1.0, lam=0.0, beta=beta, t=under, M=vocabulary))
    near, far = (
        np.asarray(retrieval_profile(s, lam=lam, beta=beta, t=under, M=vocabulary)) for s in (1e-60, 1e-6)
    )
    ratio = exact / bound
    readings = (
        Reading("share of U under the condition", shaped, f"of {n} random cases, by slopes on a grid", floor=0.0),
        Reading("share of U up to the exact time", beyond,
                f"of {n} random cases between the condition and the time where recency ends", floor=0.0),
        Reading("smallest room", float(ratio.min()), "least ratio of the exact time to the condition's", floor=1e-12),
        Reading("largest room", float(ratio.max()), "largest ratio of the exact time to the condition's", floor=1e-12),
        Reading("rises past the exact time", float((over > 0).mean()),
                "share of cases that still rise at the end at 1.001 of the exact time", floor=0.0),
        Reading("rises without decay", float((flat > 0).mean()), "share of cases that rise at the end at decay 0",
                floor=0.0),
        Reading("rising towards the first token", float((near > far).mean()),
                "share of cases whose profile at 1e-60 exceeds that at 1e-6", floor=0.0),
    )  # fmt: skip
    edge = np.geomspace(slowest, fastest, 60)
    curves = [
        (f"beta = {b:g}", [(float(x), float(t_crit(x, b, 8)) / _condition(float(x), b)) for x in edge])
        for b in (0.1, 1.0, 4.0)
    ]
    chart = lines(curves, x="decay", y="exact time over the condition's", log_x=True)
    caption = "How much longer the profile stays a U than the theorem's condition says, vocabulary of 8."
    return Finding(
        f"{n} random (decay, beta, M) in {settings['lam']} x {settings['beta']} x {settings['M']}, seed "
        f"{settings['seed']}; slopes on {len(at)} sources from 1e-12 to 1",
        readings, (Plate("room", chart, caption, caption),), ("decay", "beta", "M", "exact", "condition"),
        [tuple(map(float, row)) for row in zip(lam, beta, vocabulary, exact, bound, strict=True)],
    )  # fmt: skip


def _condition(lam: float, beta: float) -> float:
    r"""The largest t with \(t \sup_n a_n \le \min(3-\sqrt3, 2(1-e^{-\lambda}))\); beyond 64 modes rates only fall."""
    largest = float(np.asarray(mode_rate(np.arange(1, 65), beta)).max())
    return float(min(3 - np.sqrt(3), -2 * np.expm1(-lam)) / largest)


def _u_share(lam: Any, beta: Any, vocabulary: Any, t: Any, at: Any) -> float:
    """Share of cases whose values on the grid fall, then rise, with one turn; the minimum may lie before the grid."""
    good = 0
    for case in zip(lam, beta, vocabulary, t, strict=True):
        one, b, m, time = map(float, case)
        inside = np.asarray(source_at(np.geomspace(1e-8, 60 + one, 400), lam=one))
        grid = np.unique(np.concatenate([at, inside[inside > 1e-250]]))
        rising = np.asarray(retrieval_slope(grid, lam=one, beta=b, t=time, M=m)) > 0
        turns = int((np.diff(rising.astype(int)) != 0).sum())
        before = float(interior_minimum(lam=one, beta=b, t=time, M=m).sigma) < grid[0]
        good += bool(rising[-1] and (turns == 1 or (turns == 0 and before)))
    return good / len(lam)


STUDIES.register("u-shape", u_shape)
