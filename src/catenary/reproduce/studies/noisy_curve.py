r"""Prompts near a curve at finite noise: covariances of the particles, with N large first and small noise after it.

\(\theta_j(0) = h_\circ(j/N) + \epsilon\xi_j\), the \(\xi_j\) uniform, with a variance v(j/N) that changes along the
prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.kinetic import Circle, cluster_response, near_deterministic, sensitivity
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer, counting

Row = Float64[np.ndarray, " n"]


def noisy_curve(settings: Mapping[str, Any], observer: Observer) -> Finding:
    r"""\(N\,\mathrm{Cov}(\sin\theta_N(t), \sin\theta_i(0))/\epsilon^2\) against \(v R\cos h\cos h_\circ\), and the last
    token's own, without N, against \(v D\cos h\cos h_\circ\), for falling \(\epsilon\).

    Settings: ``tokens``, ``lam``, ``beta``, ``t``, ``bend`` (height of the curve), ``variance`` at positions 0 and 1,
    linear between them, ``sources``, ``noises`` (epsilon, falling), ``samples``, ``steps``, ``seed``.
    """
    lam, beta, t, bend = (float(settings[name]) for name in ("lam", "beta", "t", "bend"))
    at, noises = np.array(settings["sources"], float), list(map(float, settings["noises"]))
    curve = bend * np.sin(2 * np.pi * at)
    seen = near_deterministic(
        lambda s: bend * np.sin(2 * np.pi * s), sigma0=at, lam=lam, beta=beta, t=t, positions=40, nodes=40
    )
    turned = float(np.cos(seen.path_at(1.0)))
    own = float(settings["variance"][1]) * float(seen.memory_at(1.0)) * turned
    limit = np.append(variance(at, settings) * seen.last * np.cos(curve) * turned, own)
    rows, runs = [], []
    with counting(observer, "noises", len(noises) + 1) as progress:
        for done, noise in enumerate(noises, start=1):
            runs.append(covariances(settings, bend, noise) / limit - 1)
            rows += [(noise, float(s), *map(float, cell)) for s, cell in zip([*at, 1.0], _cells(runs[-1]), strict=True)]
            progress(done, len(noises) + 1)
        point = covariances(settings, 0.0, noises[-1])[:, :-1] / np.asarray(
            cluster_response(t, 1.0, at, beta=beta, lam=lam)
        )
        progress(len(noises) + 1, len(noises) + 1)
    worst = int(np.abs(runs[0][:, :-1].mean(axis=0)).argmax())
    cells = np.array([_cells(run) for run in runs])
    rate = power_law(np.array(noises), np.abs(cells[:, worst, 0]), cells[:, worst, 1])
    last = cells[-1, : at.size]
    far = int(np.abs(last[:, 0]).argmax())
    exact = variance(at, settings)
    ratio, error = _ratio(point, exact)
    readings = (
        _size("largest gap at the least noise", f"relative, of {at.size} sources, epsilon = {noises[-1]:g}", last[far]),
        _size("gap of the last token's own", f"relative, epsilon = {noises[-1]:g}", cells[-1, -1]),
        Reading("exponent in the noise", rate.exponent, f"of the relative gap at source {at[worst]:g} against epsilon",
                rate.low, rate.high),
        Reading("variance's rise read back", ratio, "for one point: covariance over response at the last source, over "
                "that at the first, and over the same of v", ratio - 1.96 * error, ratio + 1.96 * error),
    )  # fmt: skip
    chart = lines(
        [("limit", [(float(s), float(v)) for s, v in zip(at, limit, strict=False)]),
         *((f"epsilon = {noise:g}", [(float(s), float(v * (1 + gap)), float(v * (1 + gap - 1.96 * e)),
                                      float(v * (1 + gap + 1.96 * e)))
                                     for s, v, (gap, e) in zip(at, limit, cell, strict=False)])
           for noise, cell in zip(noises, cells, strict=True))],
        x="source position in the prompt", y="N times the covariance over epsilon squared",
    )  # fmt: skip
    caption = "Covariances of the last token with a source, prompts near a curve, by noise; 95 % bands, and the limit."
    return Finding(
        f"N = {settings['tokens']}, decay {lam:g}, beta {beta:g}, t = {t:g}, curve {bend:g} sin(2 pi sigma), variance "
        f"{settings['variance']}, {settings['samples']} prompts a noise, float64",
        readings, (Plate("covariances", chart, caption, caption),), ("epsilon", "sigma0", "gap", "stderr"), rows,
    )  # fmt: skip


def variance(sigma: Any, settings: Mapping[str, Any]) -> Any:
    """v, linear between its values at the ends."""
    first, last = map(float, settings["variance"])
    return first + (last - first) * sigma


def covariances(settings: Mapping[str, Any], bend: float, noise: float) -> Float64[np.ndarray, "samples n"]:
    r"""Draws whose mean is \(N\,\mathrm{Cov}(\sin\theta_N, \sin\theta_i)/\epsilon^2\) at each source, and the last
    token's own without N.

    By parts over one uniform \(\xi\) on [-s, s]: \(\mathrm{Cov}(F, p(\xi)) = \mathrm{E}\,F'(\xi)\tau(\xi)\) with
    \(\tau(x) = \int_x^s (p - \mathrm{E}p)\). What the same draw is at noise 0 in F', whose mean is known, is taken off.
    """
    tokens, count, steps = (int(settings[name]) for name in ("tokens", "samples", "steps"))
    lam, beta, t = (float(settings[name]) for name in ("lam", "beta", "t"))
    sigma = np.arange(1, tokens + 1) / tokens
    path, reach = bend * np.sin(2 * np.pi * sigma), np.sqrt(3 * variance(sigma, settings))
    sources = np.append(np.rint(np.array(settings["sources"]) * tokens).astype(int) - 1, tokens - 1)
    system = Circle(tokens, beta, lam)
    drawn = np.random.default_rng(int(settings["seed"])).uniform(-1, 1, (count, tokens)) * reach
    answer = sensitivity(system, path + noise * drawn, t, steps=steps)
    still = sensitivity(system, path, t, steps=steps)
    kernel, mean = _by_parts(drawn[:, sources], path[sources], noise, reach[sources])
    moving = answer.gradient[:, sources] * np.cos(answer.end[:, -1:])
    resting = still.gradient[sources] * np.cos(still.end[-1])
    weight = np.append(np.full(sources.size - 1, float(tokens)), 1.0)
    return np.asarray(weight * (moving * kernel - resting * (kernel - mean)) / noise)


def _by_parts(x: Any, centre: Row, noise: float, reach: Row) -> tuple[Any, Row]:
    r"""\(\tau\) for \(p(x) = \sin(c + \epsilon x)\), and its mean \(\mathrm{E}\,\xi p(\xi)\)."""
    average = np.sin(centre) * np.sin(noise * reach) / (noise * reach)
    tau = (np.cos(centre + noise * x) - np.cos(centre + noise * reach)) / noise - average * (reach - x)
    swing = noise * reach
    return tau, np.cos(centre) * (np.sin(swing) - swing * np.cos(swing)) / (noise * swing)


def _cells(draws: Float64[np.ndarray, "samples n"]) -> Float64[np.ndarray, "n two"]:
    return np.stack([draws.mean(axis=0), draws.std(axis=0, ddof=1) / np.sqrt(len(draws))], axis=1)


def _size(name: str, meaning: str, cell: Row) -> Reading:
    """The size of a gap, and the interval of the gap without its sign."""
    gap, error = map(float, cell)
    low, high = sorted((abs(gap - 1.96 * error), abs(gap + 1.96 * error)))
    return Reading(name, abs(gap), meaning, 0.0 if abs(gap) < 1.96 * error else low, high)


def _ratio(point: Float64[np.ndarray, "samples n"], exact: Row) -> tuple[float, float]:
    """Last over first of draws' means over ``exact``, and its standard error from the draws."""
    first, last = point[:, 0] / exact[0], point[:, -1] / exact[-1]
    value = float(last.mean() / first.mean())
    return value, float((last - value * first).std(ddof=1) / (abs(first.mean()) * np.sqrt(len(point))))


STUDIES.register("noisy-curve", noisy_curve)
