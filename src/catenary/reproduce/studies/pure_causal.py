"""Attention without residual: flat at one layer, a power of a logarithm at few, the first token alone at many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer
from catenary.theory.cesaro.density import cesaro_density
from catenary.theory.cesaro.powers import cesaro_powers
from catenary.theory.cesaro.row import cesaro_log_point, cesaro_row


def pure_causal(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Powers of the Cesàro matrix by depth.

    Settings: ``length``, ``layers`` (most), ``long`` (L at which the divergence is fitted), ``positions`` (1-based, of
    the fit), ``depths`` (of the fit), ``mixing`` (for the first token with residuals).
    """
    length, deepest = int(settings["length"]), int(settings["layers"])
    powers = cesaro_powers(length, deepest)
    share = powers[:, 0]
    left = 1 - share
    flat = float(np.abs(length * powers[0] - 1).max())
    x = np.linspace(0.01, 1, 100)
    flat = max(flat, float(np.abs(cesaro_density(x, 1, 1.0) - 1).max()))
    depths = list(map(int, settings["depths"]))
    long, places = int(settings["long"]), list(map(int, settings["positions"]))
    t = np.log(long / np.array(places, float))
    rates = []
    for depth in depths:
        logs = np.array([cesaro_log_point(long, depth, 1.0, j - 1) for j in places])
        rates.append(power_law(t, np.exp(logs) * long))
    worst = max(range(len(depths)), key=lambda k: abs(rates[k].exponent - depths[k] + 1))
    with_residual = cesaro_row(length, deepest, float(settings["mixing"]))
    chains = [math.comb(length + depth - 2, depth - 1) for depth in range(1, deepest + 1)]
    readings = (
        Reading("flatness", flat, "largest deviation of L M_Lj and of the density from 1 at one layer", floor=1e-14),
        Reading("share of the first token", float(share[-1]),
                f"first token's share of row L of M^H, H = {deepest}, L = {length}", floor=1e-12),
        Reading("remainder per layer", float(left[-1] / left[-2]),
                f"share of all other tokens at layer {deepest} over that at layer {deepest - 1}", floor=1e-6),
        Reading("share with residuals", float(with_residual[0]),
                f"first token's share of row L of N^H, alpha = {settings['mixing']}, H = {deepest}, L = {length}",
                floor=1e-12),
        *(Reading(f"exponent at depth {depth}", rate.exponent,
                  f"exponent of L (M^{depth})_Lj against ln(L/j), L = {long:g}, j = {places[0]} to {places[-1]}",
                  rate.low, rate.high) for depth, rate in zip(depths, rates, strict=True)),
        Reading("largest gap of an exponent", rates[worst].exponent - depths[worst] + 1,
                f"exponent of L (M^H)_Lj against ln(L/j) less H - 1, furthest from 0 of H = {depths}",
                rates[worst].low - depths[worst] + 1, rates[worst].high - depths[worst] + 1),
        Reading("growth of chains", float(chains[-1] / chains[-2]),
                f"causal chains from the first to the last token, H = {deepest} over H = {deepest - 1}, L = {length}",
                floor=1e-9),
    )  # fmt: skip
    chart = lines(
        [(f"H = {depth}", [(float(a), float(long * math.exp(cesaro_log_point(long, depth, 1.0, j - 1))))
                           for a, j in zip(t, places, strict=True)]) for depth in depths],
        x="ln(L/j)", y="L (M^H)_Lj", log_x=True, log_y=True,
    )  # fmt: skip
    caption = f"Influence without residuals against ln(1/x), L = {long:g}."
    return Finding(
        f"H = 1 to {deepest} at L = {length}; H = {depths} at L = {long:g}; float64", readings,
        (Plate("divergence", chart, caption, caption),), ("layers", "share_of_first"),
        [(k + 1, float(s)) for k, s in enumerate(share)],
    )  # fmt: skip


STUDIES.register("pure-causal", pure_causal)
