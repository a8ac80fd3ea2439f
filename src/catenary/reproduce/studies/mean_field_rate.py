"""Moments of the particle system against the mean field, for a start that changes along the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from catenary.kinetic import Circle, flow, mean_field
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer, counting

TILT = 0.6
"""Strength of the start's density 1 + .6 cos(theta - pi sigma)."""


def mean_field_rate(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Distance of E e^{-i n theta} from the mean field's moment at the last token, for growing N.

    Settings: ``tokens``, ``samples`` (as many), ``lam``, ``beta``, ``t``, ``mode``, ``seed``. The empirical spread over
    prompts is the propagation of chaos: its own rate, N^-1/2 for the average over tokens, is reported too.
    """
    lam, beta, t = (float(settings[name]) for name in ("lam", "beta", "t"))
    mode, sizes, samples = int(settings["mode"]), list(map(int, settings["tokens"])), list(settings["samples"])
    exact = mean_field(_density, lam=lam, beta=beta, t=t)
    at_end = complex(exact.fourier(mode, 1.0)[0, 0, 0])
    gaps, errors, spreads, rows = [], [], [], []
    with counting(observer, "particle systems", len(sizes)) as progress:
        for done, (tokens, count) in enumerate(zip(sizes, map(int, samples), strict=True), start=1):
            rng = np.random.default_rng(int(settings["seed"]) + tokens)
            ends = flow(Circle(tokens, beta, lam), _starts(tokens, count, rng), t)
            waves = np.exp(-1j * mode * ends)
            off = waves[:, -1].mean() - at_end
            error = float(np.hypot(waves[:, -1].real.std(ddof=1), waves[:, -1].imag.std(ddof=1)) / np.sqrt(count))
            spread = float(np.abs(waves.mean(axis=1) - waves.mean()).std() + 0.0)
            gaps.append(abs(off))
            errors.append(error)
            spreads.append(spread)
            rows.append((tokens, count, abs(off), error, spread))
            progress(done, len(sizes))
    chaos = power_law(np.array(sizes, float), np.array(spreads))
    last = float(gaps[-1])
    readings = (
        Reading("gap at the largest N", last, f"of the moment of mode {mode} at the last token, N = {sizes[-1]}",
                max(0.0, last - 1.96 * errors[-1]), last + 1.96 * errors[-1]),
        Reading("N times the largest gap", max(g * n for g, n in zip(gaps, sizes, strict=True)),
                "N |E e^(-i n theta_N) - mean field|, the largest of all N",
                0.0, max((g + 1.96 * e) * n for g, e, n in zip(gaps, errors, sizes, strict=True))),
        Reading("exponent of the spread", chaos.exponent, "spread over prompts of the average over tokens, against N",
                chaos.low, chaos.high),
    )  # fmt: skip
    chart = lines(
        [("gap of the moment", [(float(n), g, max(g - 1.96 * e, g / 100), g + 1.96 * e)
                                for n, g, e in zip(sizes, map(float, gaps), errors, strict=True)]),
         ("spread over prompts", [(float(n), s) for n, s in zip(sizes, spreads, strict=True)])],
        x="tokens N", y="distance from the mean field", log_x=True, log_y=True,
    )  # fmt: skip
    caption = "Particles against the mean field: the mean's gap (band: 95 %) and one prompt's spread."
    return Finding(
        f"N = {sizes}, prompts {list(samples)}, decay {lam:g}, beta {beta:g}, t = {t:g}, start 1 + {TILT} "
        "cos(theta - pi sigma), float64",
        readings, (Plate("rate", chart, caption, caption),), ("tokens", "prompts", "gap", "stderr", "spread"), rows,
    )  # fmt: skip


def _density(sigma: Any, theta: Any) -> Any:
    return 1 + TILT * np.cos(theta - np.pi * sigma)


def _starts(tokens: int, copies: int, rng: np.random.Generator) -> Any:
    """Angles drawn from the density by inverting its distribution function on a fine grid."""
    grid = np.linspace(0, 2 * np.pi, 4001)
    shares = rng.random((copies, tokens))
    around = np.interp(shares, (grid + TILT * np.sin(grid)) / (2 * np.pi), grid)
    return around + np.pi * np.arange(1, tokens + 1) / tokens


STUDIES.register("mean-field-rate", mean_field_rate)
