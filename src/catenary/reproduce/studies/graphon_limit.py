"""Weights of the particle system against the limiting graphon, and why no bound holds for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.kinetic import graphon
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer

Matrix = Float64[np.ndarray, "tokens tokens"]


def graphon_limit(settings: Mapping[str, Any], observer: Observer) -> Finding:
    r"""\(K_N(\sigma, \sigma') = N\omega_{\lceil N\sigma\rceil,\lceil N\sigma'\rceil}\) against \(k_\lambda\), by N.

    Settings: ``tokens``, ``lam``, ``sigmas`` (of the later token), ``points`` at which \(\sigma'\) is read.
    """
    lam, sizes = float(settings["lam"]), list(map(int, settings["tokens"]))
    sigmas = list(map(float, settings["sigmas"]))
    rows, at = [], (np.arange(int(settings["points"])) + 0.5) / int(settings["points"])
    for tokens in sizes:
        scaled = tokens * weights(tokens, lam)
        largest = float((np.arange(1, tokens + 1)[:, None] / tokens * scaled).max())
        farthest, squares = 0.0, 0.0
        for sigma in sigmas:
            before = at[at < sigma]
            gap = read(scaled, sigma, before) - np.asarray(graphon(sigma, before, lam=lam))
            seen = np.ceil(tokens * before) < cell(tokens, sigma)
            farthest = max(farthest, float(np.abs(gap[seen]).max()))
            squares = max(squares, float(np.sqrt((gap**2).sum() / at.size)))
        rows.append((tokens, farthest, squares, float(scaled.max()), largest))
    table = np.array(rows)
    named = (
        ("exponent of the gap", "largest |K_N - k| over earlier tokens, against N"),
        ("exponent of the mean square gap", "root of the integral of (K_N - k)^2 over sigma', against N"),
        ("exponent of the largest weight", "largest K_N of all pairs, against N"),
        ("exponent of the largest weight times position", "largest sigma K_N of all pairs, against N"),
    )
    rates = [power_law(table[:, 0], table[:, column]) for column in range(1, 5)]
    readings = tuple(Reading(name, rate.exponent, meaning, rate.low, rate.high)
                     for (name, meaning), rate in zip(named, rates, strict=True))  # fmt: skip
    names = ("gap", "mean square gap", "largest weight", "times position")
    chart = lines([(name, [(float(n), float(v)) for n, v in zip(sizes, column, strict=True)])
                   for name, column in zip(names, table[:, 1:].T, strict=True)],
                  x="tokens N", y="scaled weights", log_x=True, log_y=True)  # fmt: skip
    caption = "Scaled weights against the graphon; the largest of them grows without bound, times its position not."
    return Finding(
        f"N = {sizes}, decay {lam:g}, sigma in {sigmas}, float64", readings,
        (Plate("weights", chart, caption, caption),), ("tokens", *names), rows,
    )  # fmt: skip


def weights(tokens: int, lam: float) -> Matrix:
    r"""\(\omega_{j,k}\), 0-based; the first token, which sees none, has zeros."""
    lag = np.subtract.outer(np.arange(tokens), np.arange(tokens))
    raw = np.where(lag > 0, np.exp(-lam / tokens * np.maximum(lag, 0)), 0.0)
    total = raw.sum(axis=1, keepdims=True)
    return np.asarray(raw / np.where(total > 0, total, 1.0))


def cell(tokens: int, sigma: float) -> int:
    r"""\(\lceil N\sigma\rceil\), where a product such as 200 times .1 may lie above a whole number by rounding."""
    return int(np.ceil(tokens * sigma - 1e-9))


def read(scaled: Matrix, sigma: float, before: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    r"""A matrix as a step function: cell \((\lceil N\sigma\rceil, \lceil N\sigma'\rceil)\)."""
    tokens = len(scaled)
    return np.asarray(scaled[cell(tokens, sigma) - 1, np.ceil(tokens * before).astype(int) - 1])


STUDIES.register("graphon-limit", graphon_limit)
