"""Correlations for independent tokens that are not uniform, and a token's correlation with its own start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Complex128, Float64

from catenary.kinetic import Circle, correlate_modes, flow, mean_field_correlations, mode_rate, response
from catenary.kinetic.correlations.product import draw_prompts
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer, counting

Draws = Complex128[np.ndarray, " samples"]

TILT = 0.6
"""Strength of the start's density 1 + .6 cos(theta - pi sigma)."""

LOW, HIGH = 0.3, 0.9
"""Sources averaged over."""

NODES = 12
"""Chebyshev nodes between the two, at which the limit is solved: it is smooth in the source."""


def tilted_start(settings: Mapping[str, Any], observer: Observer) -> Finding:
    r"""\(N\,\mathrm{Cov}(e^{-i\theta_N(t)}, e^{i\theta_i(0)})\) against the mean field's C, and
    \(\mathrm{Cov}(e^{-i\theta_N(t)}, e^{i\theta_N(0)})\) against its A, for growing N.

    Settings: ``tokens``, ``samples`` and ``own_samples`` (as many), ``angles`` of the last token, ``lam``, ``beta``,
    ``t``, ``seed``. Gaps of correlations are projections on the limit over sources in [.3, .9], relative.
    """
    lam, beta, t = (float(settings[name]) for name in ("lam", "beta", "t"))
    sizes, counts, own_counts = (list(map(int, settings[name])) for name in ("tokens", "samples", "own_samples"))
    places = _nodes()
    seen = mean_field_correlations(density, wave, sigma0=np.append(places, 1.0), lam=lam, beta=beta, t=t)
    solved = seen.fourier([1])[:-1, 0]
    kept = complex(seen.angles.fourier(seen.own[-1], np.array([1]))[0])
    rows, shown = [], []
    with counting(observer, "particle systems", len(sizes)) as progress:
        for done, (tokens, count, own) in enumerate(zip(sizes, counts, own_counts, strict=True), start=1):
            system, seed = Circle(tokens, beta, lam), int(settings["seed"]) + tokens
            at = np.arange(round(LOW * tokens), round(HIGH * tokens) + 1) / tokens
            run = correlate_modes(system, density, wave, t=t, modes=[1], samples=count, seed=seed, sigma0=at)
            limit = between(run.sigma0, solved)
            off = (run.draws[:, 0] * limit.conj()).mean(axis=1) / (np.abs(limit) ** 2).mean() - 1
            alone = own_covariance(system, t, own, int(settings["angles"]), seed) / kept - 1
            rows.append((tokens, *_gap(off), *_gap(alone)))
            shown = _bins(run.sigma0, run.draws[:, 0].real, 8)
            progress(done, len(sizes))
    table = np.array(rows)
    rate = power_law(table[:, 0], table[:, 3], table[:, 4])
    uniform = np.asarray(response(t, 1.0, places, a=mode_rate(1, beta), lam=lam))
    readings = (
        _reading("gap of correlations at the largest N", f"relative, sources .3 to .9, N = {sizes[-1]}",
                 table[-1, 1:3]),
        _reading("gap of the own correlation at the largest N", f"relative, last token, N = {sizes[-1]}",
                 table[-1, 3:5]),
        Reading("exponent of the own correlation", rate.exponent, "of that gap against N", rate.low, rate.high),
        Reading("gap of the uniform start's closed form", float(np.abs(uniform / solved - 1).mean()),
                "to the limit, relative, mean over sources .3 to .9", floor=1e-6),
    )  # fmt: skip
    grid = np.linspace(LOW, HIGH, 61)
    chart = lines(
        [("mean field", [(float(s), float(v.real)) for s, v in zip(grid, between(grid, solved), strict=True)]),
         ("uniform start", [(float(s), float(v)) for s, v in zip(places[::-1], uniform[::-1], strict=True)]),
         (f"particles, N = {sizes[-1]}", shown)],
        x="source position in the prompt", y="N times the covariance, real part",
    )  # fmt: skip
    caption = "Covariances of mode 1 for a start that is not uniform, 95 % bands, the limit, and the uniform start's."
    return Finding(
        f"N = {sizes}, prompts {counts} and {own_counts}, decay {lam:g}, beta {beta:g}, t = {t:g}, start 1 + {TILT} "
        "cos(theta - pi sigma), float64",
        readings, (Plate("correlations", chart, caption, caption),),
        ("tokens", "gap", "stderr", "own gap", "own stderr"), rows,
    )  # fmt: skip


def density(sigma: Any, theta: Any) -> Any:
    """The start: a bump whose place moves along the prompt."""
    return 1 + TILT * np.cos(theta - np.pi * sigma)


def wave(theta: Any) -> Any:
    r"""\(\varphi(\theta) = e^{i\theta}\)."""
    return np.exp(1j * theta)


def own_covariance(system: Circle, t: float, samples: int, angles: int, seed: int) -> Draws:
    r"""Draws of \(\mathrm{Cov}(e^{-i\theta_N(t)}, e^{i\theta_N(0)})\): the last token on equal steps with a random
    offset, weighed by its law, as nothing else depends on it; the other tokens drawn.
    """
    rng = np.random.default_rng(seed)
    prompts = draw_prompts(density, system.tokens, samples, rng)
    steps = 2 * np.pi / angles * np.arange(angles)
    first = rng.uniform(0, 2 * np.pi, samples)[:, None] + steps
    copies = np.repeat(prompts[:, None], angles, axis=1)
    copies[:, :, -1] = first
    end = np.exp(-1j * flow(system, copies, t)[..., -1])
    law = density(1.0, first)
    mean = (law * wave(first)).mean(axis=1, keepdims=True)
    return np.asarray((law * (wave(first) - mean) * end).mean(axis=1))


def between(sigma: Float64[np.ndarray, " n"], solved: Complex128[np.ndarray, " nodes"]) -> Complex128[np.ndarray, " n"]:
    """The polynomial through what is solved at the nodes."""
    x = (sigma - (LOW + HIGH) / 2) / ((HIGH - LOW) / 2)
    nodes = (_nodes() - (LOW + HIGH) / 2) / ((HIGH - LOW) / 2)
    chebyshev = np.polynomial.chebyshev
    return np.asarray(chebyshev.chebval(x, chebyshev.chebfit(nodes, solved, NODES - 1)))


def _nodes() -> Float64[np.ndarray, " nodes"]:
    return np.asarray((LOW + HIGH) / 2 + (HIGH - LOW) / 2 * np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES))


def _gap(draws: Draws) -> tuple[float, float]:
    """The size of a complex mean and the larger standard error of its parts."""
    error = max(float(part.std(ddof=1)) for part in (draws.real, draws.imag)) / np.sqrt(draws.size)
    return abs(complex(draws.mean())), float(error)


def _reading(name: str, meaning: str, cell: Float64[np.ndarray, " two"]) -> Reading:
    gap, error = map(float, cell)
    return Reading(name, gap, meaning, max(0.0, gap - 1.96 * error), gap + 1.96 * error)


def _bins(
    sigma: Float64[np.ndarray, " n"], draws: Float64[np.ndarray, "samples n"], count: int
) -> list[tuple[float, float, float, float]]:
    points = []
    for part in np.array_split(np.arange(sigma.size), count):
        mean = draws[:, part].mean(axis=1)
        value, half = float(mean.mean()), 1.96 * float(mean.std(ddof=1)) / np.sqrt(mean.size)
        points.append((float(sigma[part].mean()), value, value - half, value + half))
    return points


STUDIES.register("tilted-start", tilted_start)
