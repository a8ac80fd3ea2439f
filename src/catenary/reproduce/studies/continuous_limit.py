"""The continuous density against the discrete law: its rate, its exact link, its spike, its word, the first token."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.study.observer import Observer
from catenary.theory.cesaro.beta_link import beta_smoothed
from catenary.theory.cesaro.density import cesaro_density, spike_mass
from catenary.theory.cesaro.row import cesaro_log_point, cesaro_row
from catenary.verdict import judge


def continuous_limit(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Relative errors of rho(j/L)/L for growing L, at fixed x and at the first token.

    Settings: ``layers``, ``mixing``, ``lengths``, ``at`` (fractions that every length divides), ``linked`` (L at which
    every position is smoothed by its Beta distribution, and the law's shape is named), ``judged`` (mixings at which it
    is named).
    """
    layers, mixing = int(settings["layers"]), float(settings["mixing"])
    lengths, at = list(map(int, settings["lengths"])), np.array(settings["at"], dtype=np.float64)
    errors, firsts = [], []
    for length in lengths:
        exact = np.array([_weight(length, layers, mixing, round(x * length) - 1) for x in at])
        errors.append(float(np.abs(cesaro_density(at, layers, mixing) / exact - 1).mean()))
        firsts.append(float(cesaro_density(1 / length, layers, mixing)) / _weight(length, layers, mixing, 0) - 1)
    rate = power_law(np.array(lengths, float), np.array(errors))
    linked, longest = int(settings["linked"]), lengths[-1]
    row = cesaro_row(linked, layers, mixing)
    before = np.arange(linked - 1)
    smooth = beta_smoothed(lambda x: cesaro_density(x, layers, mixing), linked, before)
    last, second = (_weight(longest, layers, mixing, longest - k) for k in (1, 2))
    spikes = [_weight(n, layers, mixing, n - 1) / _weight(n, layers, mixing, n - 2) for n in lengths]
    over = power_law(np.array(lengths, float), np.array(spikes))
    readings = (
        Reading("exponent at fixed x", rate.exponent,
                f"exponent of the mean relative error at x = {at.tolist()} against L", rate.low, rate.high),
        Reading("error at the largest L", errors[-1], f"mean relative error at the same x, L = {longest}", floor=1e-9),
        Reading("first token", firsts[-1], f"relative error at the first token, L = {longest}", floor=1e-9),
        Reading("first token at the shortest L", firsts[0], f"relative error at the first token, L = {lengths[0]}",
                floor=1e-9),
        Reading("Beta gap", float(np.abs(smooth / row[:-1] - 1).max()),
                f"largest relative gap of the Beta-smoothed density to the discrete law, every j < L = {linked}",
                floor=1e-11),
        Reading("spike", last / longest / spike_mass(layers, mixing) - 1,
                f"last token's weight over (1 - alpha)^H, less 1, L = {longest}", floor=1e-12),
        Reading("next to the spike", second / float(cesaro_density(1.0, layers, mixing)) - 1,
                f"second last token's weight over the density's value at x = 1, less 1, L = {longest}", floor=1e-12),
        Reading("exponent of the spike", over.exponent, "exponent of last over second last token against L",
                over.low, over.high),
        Reading("total", _mass(layers, mixing) - 1, "integral of the density by quadrature, plus the spike, less 1",
                floor=1e-12),
        *law_shape(linked, layers, list(map(float, settings["judged"]))),
    )  # fmt: skip
    chart = lines(
        [("at fixed x", list(zip(map(float, lengths), errors, strict=True))),
         ("first token", list(zip(map(float, lengths), map(abs, firsts), strict=True)))],
        x="context length L", y="relative error of the density", log_x=True, log_y=True,
    )  # fmt: skip
    caption = f"Error of the continuous law read at x = j/L, {layers} layers, mixing {mixing:g}."
    return Finding(
        f"H = {layers}, alpha = {mixing:g}, L = {lengths[0]} to {longest}, float64", readings,
        (Plate("error", chart, caption, caption),), ("length", "error_at_fixed_x", "error_at_first"),
        list(zip(lengths, errors, firsts, strict=True)),
    )  # fmt: skip


def law_shape(length: int, layers: int, mixings: Sequence[float]) -> Iterator[Reading]:
    """The discrete law's shape under the rule that names networks, and the largest step up inside its body."""
    at = f"H = {layers}, L = {length}, alpha = {', '.join(f'{mixing:g}' for mixing in mixings)}"
    rows = [cesaro_row(length, layers, mixing) for mixing in mixings]
    verdicts = [judge(row) for row in rows]
    words = " or ".join(dict.fromkeys(verdict.words for verdict in verdicts))
    yield Reading("law, U", sum(verdict.body == "U" for verdict in verdicts) / len(rows),
                  f"share of the mixings at which the law's body is a U, {at}; it is: {words}", floor=0.0)  # fmt: skip
    yield Reading("law, primacy and spike", sum(v.body == "primacy" and v.spike for v in verdicts) / len(rows),
                  f"share of the mixings at which it is primacy with a last-token spike, {at}", floor=0.0)  # fmt: skip
    steps = [float((row[1:-1] / row[:-2]).max()) - 1 for row in rows]
    yield Reading("law, largest step up", max(steps),
                  f"largest of w(j+1)/w(j) - 1 up to the second last token, {at}; below 0: the law falls",
                  floor=1e-13)  # fmt: skip


def _weight(length: int, layers: int, mixing: float, position: int) -> float:
    """L times the discrete weight of one position."""
    return length * math.exp(cesaro_log_point(length, layers, mixing, position))


def _mass(layers: int, mixing: float) -> float:
    """Integral over x plus the spike: Gauss-Laguerre in t = ln(1/x), exact for the polynomial that the density is."""
    nodes, weights = np.polynomial.laguerre.laggauss(layers)
    values: Float64[np.ndarray, " n"] = cesaro_density(np.exp(-nodes), layers, mixing)
    return float(weights @ values) + spike_mass(layers, mixing)


STUDIES.register("continuous-limit", continuous_limit)
