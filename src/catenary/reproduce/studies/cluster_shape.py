"""Prompts near one point: under which condition the response is a U, and what a variance profile or a curve does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.kinetic import cluster_response, near_deterministic, response_slope, source_at
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.studies.positional_turns import turning_points
from catenary.study.observer import Observer

Row = Float64[np.ndarray, " n"]

VARIANCES: dict[str, Callable[[Row], Row]] = {
    "v = 1": np.ones_like, "v = sigma0": np.asarray, "v = 1.2 - sigma0": lambda s: 1.2 - s,
}  # fmt: skip
"""Variance profiles of the perturbation: the same everywhere, none at the first token, least at the last."""


def cluster_shape(settings: Mapping[str, Any], observer: Observer) -> Finding:
    r"""Slopes of \(g_{a_*}\), \(a_*t = \beta e^\beta t\), for random parameters, and turning points of one case.

    Settings: ``cases``, ``seed``, ``lam`` and ``beta`` as [lowest, highest], ``grid``; of the one case ``one_lam``,
    ``one_beta``, ``one_t`` and ``bend`` (height of the curve), read at ``points`` sources from .03 on.
    """
    rng, n, count = np.random.default_rng(int(settings["seed"])), int(settings["cases"]), int(settings["grid"])
    (slowest, fastest), (weakest, strongest) = settings["lam"], settings["beta"]
    lam = 10 ** rng.uniform(np.log10(slowest), np.log10(fastest), n)
    beta = rng.uniform(weakest, strongest, n)
    part = rng.uniform(0.01, 1, n)
    sharp = -2 * np.expm1(-lam)
    under = part * np.minimum(3 - np.sqrt(3), sharp) / rate(beta)
    between = (0.01 + 0.98 * part) * sharp / rate(beta)
    cases = list(zip(lam, beta, strict=True))
    past = [float(response_slope(1.001 * c / rate(b), 1.0, 1.0, a=rate(b), lam=x)) > 0
            for (x, b), c in zip(cases, sharp, strict=True)]  # fmt: skip
    shares = [np.mean([one_minimum(x, b, time, count) for (x, b), time in zip(cases, times, strict=True)])
              for times in (under, between)]  # fmt: skip
    at, curves = _one_case(settings)
    turns = {name: turning_points(at, values) for name, values in curves.items()}
    readings = (
        Reading("share of U under the condition", float(shares[0]), f"of {n} random (decay, beta, t)", floor=0.0),
        Reading("share of U up to 2(1 - e^-decay)", float(shares[1]), f"of {n} random (decay, beta, t) below it",
                floor=0.0),
        Reading("rises past 2(1 - e^-decay)", float(np.mean(past)),
                "share of cases that still rise at the end at 1.001 of it", floor=0.0),
        *(Reading(f"turning points, {name}", float(len(found)), _places(found), floor=0.0)
          for name, found in turns.items()),
        Reading("most turning points, other variances",
                float(max(len(turns[name]) for name in VARIANCES if name != "v = 1")),
                "turning points of the response, the larger number of the two variances", floor=0.0),
    )  # fmt: skip
    drawn = [(name, [(float(s), float(v / values[-1])) for s, v in zip(at, values, strict=True)])
             for name, values in curves.items()]  # fmt: skip
    chart = lines(drawn, x="source position in the prompt", y="response over its end value")
    caption = "Responses of near-deterministic prompts: one point with three variance profiles, and a curve."
    return Finding(
        f"{n} random (decay, beta, t), decay in {settings['lam']}, beta in {settings['beta']}, seed "
        f"{settings['seed']}; decay {settings['one_lam']}, beta {settings['one_beta']}, t = {settings['one_t']}, curve "
        f"{settings['bend']} sin(2 pi sigma)",
        readings, (Plate("responses", chart, caption, caption),), ("sigma0", *curves),
        [(float(s), *(float(values[k]) for values in curves.values())) for k, s in enumerate(at)],
    )  # fmt: skip


def rate(beta: Any) -> Any:
    r"""\(a_* = -w''_\beta(0) = \beta e^\beta\)."""
    return beta * np.exp(beta)


def one_minimum(lam: float, beta: float, t: float, count: int) -> bool:
    """Whether the response's slopes are negative up to one source and positive behind it, up to the end."""
    near = np.asarray(source_at(np.geomspace(1e-9, 700, count), lam=lam))
    at = np.unique(np.concatenate([near[near > 1e-280], np.linspace(0.01, 1, count)]))
    rising = np.asarray(response_slope(t, 1.0, at, a=rate(beta), lam=lam)) > 0
    return bool(not rising[0] and rising[-1] and (np.diff(rising.astype(int)) != 0).sum() == 1)


def _one_case(settings: Mapping[str, Any]) -> tuple[Row, dict[str, Row]]:
    lam, beta, t, bend = (float(settings[name]) for name in ("one_lam", "one_beta", "one_t", "bend"))
    at = np.linspace(0.03, 1.0, int(settings["points"]))
    plain = np.asarray(cluster_response(t, 1.0, at, beta=beta, lam=lam))
    curved = near_deterministic(
        lambda s: bend * np.sin(2 * np.pi * s), sigma0=at, lam=lam, beta=beta, t=t, positions=40, nodes=40
    )
    return at, {**{name: v(at) * plain for name, v in VARIANCES.items()}, "curve": curved.last}


def _places(turns: list[float]) -> str:
    return f"of v R inside (0, 1), at {', '.join(f'{x:.2f}' for x in turns)}" if turns else "of v R inside (0, 1)"


STUDIES.register("cluster-shape", cluster_shape)
