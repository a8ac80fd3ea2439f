"""From parameters of the kinetic theory to what its verbs show: a verdict in words, numbers, charts and data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.kinetic.arguments import one_number, positive
from catenary.kinetic.closed_form.minimum import REGIMES
from catenary.kinetic.closed_form.phase import phase_diagram
from catenary.kinetic.closed_form.retrieval import retrieval_profile
from catenary.kinetic.closed_form.several_heads import Extremum, Head, extrema, heads_profile
from catenary.kinetic.closed_form.thresholds import t_crit, t_monotone, t_sufficient
from catenary.kinetic.correlations.estimators import EstimatorName, correlate
from catenary.kinetic.correlations.result import Correlations
from catenary.kinetic.depth.birth import BirthKinetics
from catenary.kinetic.depth.stacks import Stack, bridge, stack_limit, stack_response
from catenary.kinetic.particles.circle import Circle
from catenary.kinetic.particles.integrate import trajectory
from catenary.kinetic.particles.readout import gaussian_readout
from catenary.page import kinetic_charts as charts
from catenary.page.kinetic import Exhibit, Plate
from catenary.reading import finite, number

Progress = Callable[[int, int], None]

POSITIONS = np.unique(np.concatenate([np.geomspace(2e-3, 0.1, 60), np.linspace(0.1, 1.0, 241)]))
"""Where curves are drawn: finer near the first token, where all of them are steep."""

MOST_CURVES = 6
"""Colours there are."""

LIMITS: dict[Stack, str] = {
    "additive": "independent uniform tokens, c = a t", "convex": "tokens of one cluster, c = beta e^beta t",
}  # fmt: skip
"""Which tokens of the kinetic theory a deep stack behaves like."""

Start = Literal["uniform", "clusters"]
STARTS: tuple[Start, ...] = ("uniform", "clusters")

SPREAD = 0.075
"""Standard deviation of the start in clusters, in radians."""


def profile_exhibit(*, heads: Sequence[Head], times: Sequence[float], M: float) -> Exhibit:
    """The retrieval profile of one or several heads at up to six times, with its extrema and regime."""
    if not 1 <= len(times) <= MOST_CURVES:
        raise invalid("time", f"must be given 1 to {MOST_CURVES} times", len(times))
    curves, marked, rows, data, found = [], [], [], [], []
    for t in times:
        values = np.asarray(heads_profile(POSITIONS, heads=heads, t=t, M=M))
        bends = extrema(heads=heads, t=t, M=M)
        name, shape = f"t = {t:g}", shape_of(bends, values)
        curves.append((name, values))
        marked += [(name, bend.kind, bend.sigma, bend.value) for bend in bends]
        data += [(t, float(x), float(v)) for x, v in zip(POSITIONS, values, strict=True)]
        found.append({"t": t, "shape": shape, "last": float(values[-1]), "extrema": [vars(bend) for bend in bends]})
        rows += [
            (name, shape, str(bend.kind), f"{bend.sigma:.6g}", f"{bend.value:.6g}", f"{bend.curvature:.4g}",
             f"{values[-1] - bend.value:.4g}")
            for bend in bends
        ] or [(name, shape, "none", "", "", "", "")]  # fmt: skip
    verdict = shape_words(extrema(heads=heads, t=times[0], M=M), curves[0][1])
    verdict += f" (t = {times[0]:g})" if len(times) > 1 else ""
    bounds = _bounds(heads[0], M) if len(heads) == 1 else {}
    numbers = [(words, number(value)) for words, value in bounds.items()]
    notes = (
        "A soft read-out at the last of N tokens finds the source with the density 1 + 2 S/N relative to chance, to "
        "first order in 1/N: S is where the source's position enters.",
    )
    words = "; ".join(f"weight {w:g}, lambda {lam:g}, beta {b:g}" for w, lam, b in heads)
    chart = charts.profiles(POSITIONS, curves, marked)
    plate = Plate(
        "profile", chart, f"Retrieval profile over the source's position. {verdict}",
        "Retrieval of a source by its position in the prompt; points mark the interior extrema.",
    )  # fmt: skip
    return Exhibit(
        name="profile", kicker="Kinetic theory", title="Retrieval profile", verdict=verdict, notes=notes,
        numbers=(("heads", words), ("token angles M", f"{M:g}"), *numbers), plates=(plate,),
        caption="Interior extrema", rows=tuple(rows),
        columns=("time", "shape", "extremum", "position", "S", "curvature", "below the last"),
        fields=("t", "sigma0", "S"), data=data,
        parameters={"heads": [list(head) for head in heads], "times": list(times), "M": M},
        results={"bounds": bounds, "profiles": found},
    )  # fmt: skip


def shape_of(bends: Sequence[Extremum], values: Float64[np.ndarray, " n"]) -> str:
    """The shape's name from its extrema in order, and from its ends where it has none."""
    kinds = "".join(bend.kind[1] for bend in bends)
    names = {"i": "U", "ia": "hump", "iai": "W", "a": "inverted U"}
    if kinds:
        return names.get(kinds, f"{len(kinds)} extrema")
    return "primacy" if values[0] > values[-1] else "recency"


def shape_words(bends: Sequence[Extremum], values: Float64[np.ndarray, " n"]) -> str:
    """The shape in a sentence."""
    shape = shape_of(bends, values)
    places = " and ".join(f"{100 * bend.sigma:.0f} %" for bend in bends if bend.kind == "minimum")
    if shape == "U":
        depth = 100 * (1 - bends[0].value / values[-1])
        return f"U shape: primacy, recency, and worst at {places} of the prompt, {depth:.0f} % below the last position"
    if shape == "hump":
        return f"Hump: worst at {places}, best of the rest at {100 * bends[1].sigma:.0f} %, then falling to the end"
    if shape == "W":
        return f"W shape: two wells, at {places} of the prompt"
    if shape == "primacy":
        return "Primacy: retrieval falls from the first token to the last, no interior minimum"
    if shape == "recency":
        return "Recency: retrieval rises from the first token to the last"
    return f"{shape[0].upper()}{shape[1:]} between the first and the last position"


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
    first, final = (number(float(diagram.t_crit[k])) for k in (0, -1))
    verdict = (
        f"Recency lasts until t = {first} at lambda = {decays[0]:.3g} and until t = {final} at lambda = {top:g}; "
        f"then primacy alone{', behind a hump where lambda is large' if 'hump' in shares else ''}"
    )
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


def simulate_exhibit(
    *, tokens: int, lam: float, beta: float, t: float, frames: int, start: Start, clusters: int, seed: int,
    progress: Progress,
) -> Exhibit:
    """Tokens on the circle from a random start."""
    if start not in STARTS:
        raise invalid("start", f"must be one of {', '.join(STARTS)}", start)
    if isinstance(frames, bool) or not 2 <= frames <= 2000:
        raise invalid("frames", "must be a whole number in 2..2000", frames)
    system, last = Circle(tokens, beta, lam), one_number("time", positive("time", t))
    rng = np.random.default_rng(seed)
    if start == "uniform":
        angles = rng.uniform(0, 2 * np.pi, tokens)
    else:
        angles = 2 * np.pi / clusters * rng.integers(clusters, size=tokens) + SPREAD * rng.standard_normal(tokens)
    times = np.linspace(0, last, frames)
    path = [angles]
    for frame in range(1, frames):
        path.append(trajectory(system, path[-1], [float(times[frame] - times[frame - 1])])[0])
        progress(frame, frames - 1)
    seen = np.array(path)
    order = np.abs(np.exp(1j * seen).mean(axis=1))
    memory = np.cos(seen[-1] - seen[0])
    verdict = (
        f"The order parameter |mean of e^(i angle)| goes from {order[0]:.2f} to {order[-1]:.2f} in t = {last:g}; "
        f"the last token turned by {number(float(seen[-1, -1] - seen[0, -1]))} rad"
    )
    pick = np.unique(np.linspace(0, frames - 1, 11).round().astype(int))
    plate = Plate(
        "simulate", charts.trajectories(times, seen), f"Angles of the tokens over time. {verdict}",
        f"Angles of {min(tokens, charts.MOST_LINES)} of {tokens} tokens, folded into one period; the first one rests.",
    )  # fmt: skip
    data = [
        (float(times[k]), j + 1, (j + 1) / tokens, float(seen[k, j])) for k in range(frames) for j in range(tokens)
    ]
    return Exhibit(
        name="simulate", kicker="Kinetic theory", title=f"{tokens:,} interacting tokens", verdict=verdict, notes=(),
        numbers=(("lambda", f"{lam:g}"), ("beta", f"{beta:g}"), ("start", start), ("seed", str(seed)),
                 ("mean cosine between last and first angle", f"{memory.mean():.3f}")),
        plates=(plate,), caption="Order parameter over time",
        columns=("time", "order parameter", "angle of the last token"),
        rows=tuple((f"{times[k]:.3g}", f"{order[k]:.4f}", f"{seen[k, -1]:.5f}") for k in pick),
        fields=("t", "token", "sigma", "angle"), data=data,
        parameters={"tokens": tokens, "lam": lam, "beta": beta, "t": last, "frames": frames, "start": start,
                    "clusters": clusters, "seed": seed},
        results={"t": times.tolist(), "order": order.tolist()},
    )  # fmt: skip


def correlate_exhibit(
    *, tokens: int, lam: float, beta: float, t: float, M: float, samples: int, estimator: EstimatorName, bins: int,
    seed: int, progress: Progress,
) -> Exhibit:
    """Correlations sampled from the particles, beside the closed form."""
    system, readout = Circle(tokens, beta, lam), gaussian_readout(M)
    costly = estimator in ("pair", "conditional")
    sources = None if not costly else np.unique(np.ceil((np.arange(bins) + 0.5) / bins * (tokens - 1))) / tokens
    parts = max(1, min(10, samples // 200))
    sizes = [samples * (k + 1) // parts - samples * k // parts for k in range(parts)]
    seeds = np.random.SeedSequence(seed).generate_state(parts).tolist()
    draws = []
    for k, (size, own) in enumerate(zip(sizes, seeds, strict=True)):
        part = correlate(system, t=t, readout=readout, samples=size, seed=own, sigma0=sources, estimator=estimator)
        draws.append(part.draws)
        progress(k + 1, parts)
    found = Correlations(part.estimator, part.sigma0, np.concatenate(draws), part.runs_per_sample, seed)
    exact = np.asarray(retrieval_profile(found.sigma0, lam=lam, beta=beta, t=t, M=M))
    if not costly:
        width = max(1, (tokens - 1) // bins)
        found = found.binned(width)
        exact = exact[: found.sigma0.size * width].reshape(-1, width).mean(axis=1)
    offset = (found.value - exact) / found.stderr
    away = float(np.sqrt(np.mean(offset**2)))
    relative = float(np.median(found.stderr / np.abs(exact)))
    verdict = (
        f"{samples:,} samples of {tokens:,} tokens give the correlations to {100 * relative:.2g} % (median); they lie "
        f"{away:.1f} standard errors (root mean square) from the limit of many tokens"
    )
    plate = Plate(
        "correlate", charts.estimates(found, POSITIONS[POSITIONS > 0.02], np.asarray(
            retrieval_profile(POSITIONS[POSITIONS > 0.02], lam=lam, beta=beta, t=t, M=M))),
        f"Estimates and closed form. {verdict}",
        "Points: sampled, with bars of two standard errors" + ("" if costly else ", averaged over neighbouring sources")
        + ". Line: the closed form. Their difference beyond the bars is of order 1/N.",
    )  # fmt: skip
    values = list(zip(found.sigma0.tolist(), found.value.tolist(), found.stderr.tolist(), exact.tolist(), strict=True))
    return Exhibit(
        name="correlate", kicker="Kinetic theory", title="Correlations of the last token with every source",
        verdict=verdict, notes=(),
        numbers=(("lambda", f"{lam:g}"), ("beta", f"{beta:g}"), ("time", f"{t:g}"), ("token angles M", f"{M:g}"),
                 ("estimator", estimator), ("forward runs", f"{found.runs_per_sample * samples:,.0f}")),
        plates=(plate,), caption="N times the correlation",
        columns=("source", "estimate", "standard error", "closed form", "in standard errors"),
        rows=tuple((f"{s:.4f}", f"{v:.4f}", f"{e:.4f}", f"{x:.4f}", f"{(v - x) / e:+.1f}") for s, v, e, x in values),
        fields=("sigma0", "estimate", "stderr", "closed_form"), data=values,
        parameters={"tokens": tokens, "lam": lam, "beta": beta, "t": t, "M": M, "samples": samples,
                    "estimator": estimator, "bins": bins, "seed": seed},
        results={"rms_offset": away, "median_relative_stderr": relative, "runs": found.runs_per_sample * samples},
    )  # fmt: skip


def bridge_exhibit(
    *, c: float, lam: float, stack: Stack, layers: Sequence[int], birth: BirthKinetics | None = None
) -> Exhibit:
    """Residual stacks of growing depth beside the kinetic closed form."""
    seen = bridge(c=c, lam=lam, layers=layers, stack=stack)
    at = POSITIONS[POSITIONS < 1]
    shown = sorted({0, len(seen.layers) // 2, len(seen.layers) - 1})
    curves = [
        (f"{seen.layers[k]:,} layers",
         np.asarray(stack_response(at, c=c, lam=lam, layers=int(seen.layers[k]), stack=stack)))
        for k in shown
    ]  # fmt: skip
    plates = (
        Plate("bridge", charts.stacks(at, curves, np.asarray(stack_limit(at, c=c, lam=lam, stack=stack))),
              f"Response of {stack} stacks over the source's position, and their limit.",
              "The response at the last position to a source, per unit of position: residual stacks of one total "
              "mixing and growing depth, and the kinetic closed form they tend to."),
        Plate("bridge-order", charts.depth_errors(seen), seen.words(),
              "Points: relative difference from the limit. Dashed: the exact coefficient of 1/H, over H."),
    )  # fmt: skip
    rows = tuple(
        (f"{x:.3g}", f"{limit:.6g}", f"{seen.layers[-1] * error:.5g}", f"{fitted:.6f}", f"{exact:.6f}")
        for x, limit, error, fitted, exact in zip(
            seen.sigma0, seen.limit, seen.error[-1], seen.fitted_coefficient, seen.coefficient, strict=True)
    )  # fmt: skip
    data = [
        (int(depth), float(x), float(v), float(limit), float(coefficient))
        for depth, values in zip(seen.layers, seen.values, strict=True)
        for x, v, limit, coefficient in zip(seen.sigma0, values, seen.limit, seen.coefficient, strict=True)
    ]
    about: dict[str, Any] = {}
    if birth is not None:
        about = {
            "name": birth.name, "length": birth.length, "c": birth.c, "distance": birth.distance,
            "strength": birth.strength, "gains": birth.gains.tolist(), "heads": [vars(head) for head in birth.heads],
        }  # fmt: skip
    return Exhibit(
        name="bridge", kicker="Kinetic theory", title="From depth to kinetic time", verdict=seen.words(),
        notes=() if birth is None else (birth.words(),),
        numbers=(("total mixing c", f"{c:.4g}"), ("lambda", f"{lam:.4g}"), ("stack", stack), ("limit", LIMITS[stack]),
                 ("fitted order in 1/H", f"{seen.order:.3f}")),
        plates=plates, caption="First order in 1/H", rows=rows,
        columns=("source", "limit", f"H times error, H = {seen.layers[-1]}", "fitted coefficient", "exact coefficient"),
        fields=("layers", "sigma0", "response", "limit", "coefficient"), data=data,
        parameters={"c": c, "lam": lam, "stack": stack, "layers": seen.layers.tolist()},
        results={"order": seen.order, "fitted_coefficient": seen.fitted_coefficient.tolist(),
                 "coefficient": seen.coefficient.tolist(), "birth": about},
    )  # fmt: skip


def _bounds(head: Head, M: float) -> dict[str, float]:
    _, lam, beta = head
    named = {"U proved below t": t_sufficient, "recency ends at t": t_crit, "hump ends at t": t_monotone}
    return {words: float(bound(lam, beta, M)) for words, bound in named.items() if math.isfinite(bound(lam, beta, M))}
