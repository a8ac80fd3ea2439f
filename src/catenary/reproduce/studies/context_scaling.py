"""How primacy grows with the length of the context: a power of ln L, or of L, in the laws and in networks at birth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.blocks import Blocks
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import Point, lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import over_networks, slopes, small_network, std_for
from catenary.study.observer import Observer, counting
from catenary.theory.cesaro.row import cesaro_log_point

TEXT = 0.0105
"""Probability that two tokens are equal, of Zipf's law over 152 thousand words, as ``zipf_windows`` draws them."""


def context_scaling(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """First token over the middle at growing L: local exponents d ln(first/mid) / d ln L.

    Settings: ``model``, ``lengths`` (of the laws), ``layers`` and ``mixing`` (of the paper's law), ``paper_length`` (at
    which the birth law's peak over trough is read under every definition);
    ``width``, ``network_layers``, ``network_lengths``, ``nets``, ``windows``, ``probes``, ``variance``.
    """
    lengths = list(map(int, settings["lengths"]))
    architecture = ct.read_config(str(settings["model"]))
    layers, mixing = int(settings["layers"]), float(settings["mixing"])
    paper = [math.exp(cesaro_log_point(n, layers, mixing, 0) - cesaro_log_point(n, layers, mixing, n // 2))
             for n in lengths]  # fmt: skip
    laws = {"paper's law": paper}
    ends, profiles = {}, {}
    length = int(settings["paper_length"])
    for name, repeats in (("birth law, no repeats", 0.0), ("birth law, as text repeats", TEXT)):
        found = [
            ct.predict(architecture, length=n, repeat_probability=repeats, method="coarse").values for n in lengths
        ]
        laws[name] = [float(v[0] / v[n // 2]) for v, n in zip(found, lengths, strict=True)]
        ends[name] = float(found[-1][-2] / found[-1][lengths[-1] // 2])
        profiles[name] = ct.predict(architecture, length=length, repeat_probability=repeats, method="coarse").values
    readings = []
    for name, ratios in laws.items():
        local = math.log(ratios[-1] / ratios[-2]) / math.log(lengths[-1] / lengths[-2])
        # Against the logarithm the exponent of a power of ln L stays; that of a power of L grows as ln L.
        in_log = [math.log(b / a) / math.log(math.log(n) / math.log(m))
                  for (a, b), (m, n) in zip(pairwise(ratios), pairwise(lengths), strict=True)]  # fmt: skip
        readings += [
            Reading(f"{name}, exponent in L", local,
                    f"exponent of first over middle in L, L = {lengths[-2]} to {lengths[-1]}", floor=0.005),
            Reading(f"{name}, growth of the exponent in ln L", in_log[-1] / in_log[0],
                    "exponent in ln L at the last pair of lengths over the first; 1 for a power of ln L", floor=0.02),
        ]  # fmt: skip
    readings += [Reading(f"{name}, second last over middle", value,
                         f"second last token over the middle one, L = {lengths[-1]}", floor=0.005)
                 for name, value in ends.items()]
    readings += [reading for name, curve in profiles.items() for reading in peak_over_trough(name, curve)]
    short, measured, spikes, predicted = _networks(settings, observer)
    readings.append(over_networks("networks, exponent in L", slopes(short, np.log(measured)),
                                  f"exponent of first over middle in L, {short[0]} to {short[-1]}, a fit per network"))
    expected = float(slopes(short, np.log(predicted)[:, None])[0])
    readings += [
        over_networks("networks less the birth law", slopes(short, np.log(measured)) - expected,
                      f"exponent of first over middle in L less the predicted one, {expected:.3f}"),
        over_networks("networks, exponent of the last over the middle", slopes(short, np.log(spikes)),
                      "exponent of last over middle in L, a fit per network"),
    ]  # fmt: skip
    curves: list[tuple[str, list[Point]]] = [
        (name, [(float(n), r) for n, r in zip(lengths, ratios, strict=True)]) for name, ratios in laws.items()
    ]
    curves.append(("small networks", [(float(n), float(np.exp(np.log(row).mean())))
                                      for n, row in zip(short, measured, strict=True)]))
    chart = lines(curves, x="context length L", y="first token over middle", log_x=True, log_y=True)
    caption = "First token over the middle by length: laws of Qwen2-0.5B's depth, and measured small networks."
    return Finding(
        f"laws at L = {lengths[0]} to {lengths[-1]} ({settings['model']}; paper's with H = {layers}, alpha = "
        f"{mixing:g}); Llama-like networks, width {settings['width']}, {settings['network_layers']} layers, logit "
        f"variance {settings['variance']}, L = {short[0]} to {short[-1]}, {settings['nets']} networks, "
        f"{settings['windows']} windows of random vectors, {settings['probes']} probes",
        tuple(readings), (Plate("primacy", chart, caption, caption),), ("length", *laws),
        [(n, *(ratios[k] for ratios in laws.values())) for k, n in enumerate(lengths)],
    )  # fmt: skip


def peak_over_trough(name: str, values: Float64[np.ndarray, " L"]) -> Iterator[Reading]:
    """A predicted profile's peak over trough under every definition that networks are measured by.

    The floor is a hundredth of the value: the law on a coarse grid of positions against every position.
    """
    at = f"L = {len(values)}"
    first, last = _over_middle(values)
    blocks = Blocks(len(values)).log_means(values)
    for label, value, meaning in (
        ("highest over lowest", values.max() / values.min(), "highest over lowest token"),
        ("body, highest over lowest", values[1:-1].max() / values[1:-1].min(), "highest over lowest without both ends"),
        ("first over middle", first, "first token over x in [.45, .55]"),
        ("last over middle", last, "last token over x in [.45, .55]"),
        ("last over second last", values[-1] / values[-2], "last token over second last"),
        ("blocks", 10 ** (blocks.max() - blocks.min()), "highest over lowest block of the body (log-means)"),
    ):
        yield Reading(f"{name}, {label}", float(value), f"{meaning}, {at}", floor=0.01 * float(value))


def _networks(
    settings: Mapping[str, Any], observer: Observer
) -> tuple[
    list[int], Float64[np.ndarray, "length net"], Float64[np.ndarray, "length net"], Float64[np.ndarray, " length"]
]:
    """First and last over middle, measured by (length, network), and the first over middle predicted."""
    width, nets = int(settings["width"]), int(settings["nets"])
    short = list(map(int, settings["network_lengths"]))
    measured, spikes = (np.empty((len(short), nets)) for _ in range(2))
    predicted = np.empty(len(short))
    with counting(observer, "networks", nets) as progress:
        for seed in range(nets):
            network = small_network(width, max(1, width // 64), int(settings["network_layers"]),
                                    std=std_for(width, float(settings["variance"])), seed=seed)  # fmt: skip
            for k, length in enumerate(short):
                windows = ct.random_windows(length, int(settings["windows"]), seed)
                sample = ct.measure_jacobian(network, windows, probes=int(settings["probes"]), seed=seed)
                measured[k, seed], spikes[k, seed] = _over_middle(sample.profile("rms").values)
                if seed == 0:
                    predicted[k] = _over_middle(ct.predict(network.architecture, length=length).values)[0]
            progress(seed + 1, nets)
    return short, measured, spikes, predicted


def _over_middle(values: Float64[np.ndarray, " L"]) -> tuple[float, float]:
    """First and last token over the log-mean of x in [.45, .55]."""
    size = len(values)
    middle = np.exp(np.log(values[round(0.45 * size) : round(0.55 * size)]).mean())
    return float(values[0] / middle), float(values[-1] / middle)


STUDIES.register("context-scaling", context_scaling)
