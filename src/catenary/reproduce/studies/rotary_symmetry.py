"""Whether RoPE leaves an untrained profile exactly alone: one network, the mean of many, and tokens that repeat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import catenary as ct
from catenary.page.exhibit import Plate
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import over_networks, small_network, std_for
from catenary.study.observer import Observer, counting


def rotary_symmetry(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """log10 of the profile with RoPE over the same network's without, same windows and probes.

    Settings: ``width``, ``heads``, ``layers``, ``length``, ``nets``, ``windows``, ``probes``, ``variances`` (of a
    logit).
    """
    from catenary.models.rope import rotary_off

    length, nets, count = int(settings["length"]), int(settings["nets"]), int(settings["windows"])
    probes, width = int(settings["probes"]), int(settings["width"])
    variances = list(map(float, settings["variances"]))
    inputs: dict[str, Callable[[int], ct.Windows]] = {
        "distinct": lambda seed: ct.random_windows(length, count, seed),
        "repeating": lambda seed: replace(ct.zipf_windows(length, count, seed, vocabulary=200), vectors="gaussian"),
    }
    readings, curves, rows = [], [], []
    near, middle = slice(length - length // 8, length - 1), slice(round(0.4 * length), round(0.6 * length))
    with counting(observer, "networks", nets * len(variances) * len(inputs)) as progress:
        done = 0
        for variance in variances:
            for name, make in inputs.items():
                ratios = np.empty((nets, length))
                for seed in range(nets):
                    network = small_network(
                        width, int(settings["heads"]), int(settings["layers"]), std=std_for(width, 0.1), seed=seed,
                        score_std=std_for(width, variance),
                    )
                    windows = make(seed)
                    on = ct.measure_jacobian(network, windows, probes=probes, seed=seed).profile("rms").values
                    with rotary_off(network.module):
                        off = ct.measure_jacobian(network, windows, probes=probes, seed=seed).profile("rms").values
                    ratios[seed] = np.log10(on / off)
                    done += 1
                    progress(done, 0)
                case = f"{name} tokens, v = {variance:g}"
                centred = ratios - np.median(ratios, axis=1, keepdims=True)
                readings += [
                    over_networks(f"one network, {case}", np.median(np.abs(centred), axis=1),
                                  "median |log10 with/without RoPE| about its median, dex, mean over networks"),
                    over_networks(f"many networks, {case}",
                                  ratios[:, near].mean(axis=1) - ratios[:, middle].mean(axis=1),
                                  "log10 with/without of the last eighth less that of the middle"),
                ]  # fmt: skip
                mean = ratios.mean(axis=0)
                curves.append((case, [((j + 0.5) / length, float(v)) for j, v in enumerate(mean)]))
                rows += [(variance, name, j + 1, float(v)) for j, v in enumerate(mean)]
    chart = lines(curves, x="position", y="log10 with over without RoPE, mean")
    caption = f"What RoPE changes at birth, mean over {nets} networks."
    return Finding(
        f"Llama-like, width {width}, {settings['heads']} heads, {settings['layers']} layers, L = {length}, logit "
        f"variance {variances}, {nets} networks, {count} windows, {probes} probes, float32",
        tuple(readings), (Plate("ratio", chart, caption, caption),), ("v", "tokens", "position", "log10_ratio"), rows,
    )  # fmt: skip


STUDIES.register("rotary-symmetry", rotary_symmetry)
