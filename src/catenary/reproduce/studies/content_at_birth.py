"""Whether an untrained profile knows its content: tokens that repeat against tokens that don't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.blocks import Blocks
from catenary.page.exhibit import Plate
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import over_networks
from catenary.study.observer import Observer, counting


def content_at_birth(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Profiles of one network on distinct random vectors and on tokens by Zipf's law, which repeat.

    Settings: ``model`` (a preset, or a config), ``length``, ``windows``, ``probes``, ``seed``, ``dtype``, ``often``
    (how often a token of the window must occur to count as repeated). Window k of one kind is held against window k of
    the other; the interval is over windows.
    """
    length, count, seed = int(settings["length"]), int(settings["windows"]), int(settings["seed"])
    probes, often = int(settings["probes"]), int(settings["often"])
    network = ct.load(settings["model"], seed=seed, vocabulary=16, dtype=str(settings["dtype"]))
    zipf = replace(ct.zipf_windows(length, count, seed), vectors="gaussian")
    with counting(observer, "windows", 2 * count) as progress:
        logs = []
        for done, windows in enumerate((zipf, ct.random_windows(length, count, seed)), start=1):
            energy = ct.measure_jacobian(network, windows, probes=probes, seed=seed).energy[0, 0, 0].mean(axis=1)
            logs.append(0.5 * np.log10(energy))
            progress(done * count, 0)
    blocks, inner = Blocks(length), slice(length // 8, length - length // 8)
    slope = [b[:, 0] - b[:, -1] for b in (blocks.log_means(10**rows) for rows in logs)]
    middle = slice(round(0.45 * length), round(0.55 * length))
    first = [rows[:, 0] - rows[:, middle].mean(axis=1) for rows in logs]
    times = np.array([np.bincount(row)[row] for row in zipf.ids])[:, inner]
    level = (logs[0] - logs[0].mean(axis=0))[:, inner] + (logs[0].mean(axis=0) - _smooth(logs[0].mean(axis=0)))[inner]
    steps = [float(row[n >= often].mean() - row[n == 1].mean()) for row, n in zip(level, times, strict=True)]
    readings = (
        over_networks("change of the slope", slope[0] - slope[1],
                      "dex: first block over last block of the body, Zipf tokens less random vectors"),
        over_networks("change of the first over the middle", first[0] - first[1], "dex, Zipf less random"),
        over_networks("repeated over once", steps,
                      f"dex: tokens that occur {often} times or more against those that occur once, trend removed"),
    )  # fmt: skip
    a, b = 10 ** logs[0], 10 ** logs[1]
    means = {"Zipf tokens": np.exp(np.log(a).mean(axis=0)), "distinct random vectors": np.exp(np.log(b).mean(axis=0))}
    chart = lines(
        [(name, [((j + 0.5) / length, float(v / mean[-1])) for j, v in enumerate(mean)])
         for name, mean in means.items()],
        x="position", y="influence over the last token's", log_y=True,
    )  # fmt: skip
    caption = f"{network.name} at birth on tokens that repeat and on tokens that don't, log-mean of {count} windows."
    return Finding(
        f"{network.name}, untrained, 1 network, L = {length}, {count} windows of each kind, {probes} probe(s) each, "
        f"{settings['dtype']}",
        readings, (Plate("profile", chart, caption, caption),), ("position", *means),
        [(j + 1, *(float(mean[j]) for mean in means.values())) for j in range(length)],
    )  # fmt: skip


def _smooth(log: Float64[np.ndarray, " L"]) -> Float64[np.ndarray, " L"]:
    """A cubic in ln j, the trend along the context."""
    at = np.log(np.arange(1, len(log) + 1))
    return np.asarray(np.polyval(np.polyfit(at, log, 3), at))


STUDIES.register("content-at-birth", content_at_birth)
