"""How much the score path carries at birth: its size over the value path's against head size, width and logit scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import over_networks, slopes, small_network, std_for
from catenary.study.observer import Observer, counting

Make = Callable[[float, int], Any]


def score_share(settings: Mapping[str, Any], observer: Observer) -> Finding:
    r"""Amplitude ratio \(\sqrt{S/V}\) of score to value path at a layer's input, and how far attention is from uniform.

    Settings: ``width``, ``layers``, ``length``, ``nets``, ``probes``, ``variance`` (of a logit), ``head_sizes``,
    ``widths``, ``variances``. Head sizes are varied as published networks have them (constant std, logits divided by
    the root of the head size) and with logits divided by the head size itself, which is how they would have to be
    scaled to vanish; widths at constant std, and with the std that keeps the logit variance.
    """
    width, nets, variance = int(settings["width"]), int(settings["nets"]), float(settings["variance"])
    layers, length = int(settings["layers"]), int(settings["length"])
    sizes = list(map(float, settings["head_sizes"]))
    std = std_for(width, variance)

    def by_head(size: float, seed: int) -> Any:
        return small_network(width, round(width / size), layers, std=std, seed=seed)

    def by_head_over_size(size: float, seed: int) -> Any:
        score = std * (sizes[0] / size) ** 0.25  # logits go as the square of it
        return small_network(width, round(width / size), layers, std=std, seed=seed, score_std=score)

    def by_width(size: float, seed: int) -> Any:
        return small_network(round(size), round(size) // 16, layers, std=std, seed=seed)

    def by_width_alone(size: float, seed: int) -> Any:
        return small_network(round(size), round(size) // 16, layers, std=std_for(round(size), variance), seed=seed)

    def by_variance(size: float, seed: int) -> Any:
        return small_network(width, 4, layers, std=std, seed=seed, score_std=std_for(width, size))

    series: dict[str, tuple[list[float], Make]] = {
        "head size": (sizes, by_head),
        "head size, logits over it": (sizes, by_head_over_size),
        "width": (list(map(float, settings["widths"])), by_width),
        "width, logits kept": (list(map(float, settings["widths"])), by_width_alone),
        "logit variance": (list(map(float, settings["variances"])), by_variance),
    }
    readings: list[Reading] = []
    rows: list[tuple[str, float, float, float]] = []
    with counting(observer, "networks", nets * sum(len(x) for x, _ in series.values())) as progress:
        done = 0
        for name, (x, make) in series.items():
            ratios, deficits = np.empty((len(x), nets)), np.empty((len(x), nets))
            for k, size in enumerate(x):
                for seed in range(nets):
                    ratios[k, seed], deficits[k, seed] = _amplitude(make(size, seed), length, seed, settings)
                    done += 1
                    progress(done, 0)
                rows.append((name, size, float(ratios[k].mean()), float(deficits[k].mean())))
            readings.append(over_networks(f"exponent of the {name}", slopes(x, np.log(ratios)),
                                          f"of sqrt(S/V), {name} from {x[0]:g} to {x[-1]:g}"))
            readings.append(over_networks(f"uniformity against the {name}", slopes(x, np.log(deficits)),
                                          "exponent of ln i less the entropy of attention, which is v/2 for small v"))
            if name == "logit variance":
                share = ratios**2 / (1 + ratios**2)
                readings += [over_networks(f"share at v = {value:g}", share[k], "S/(S+V), energies, mean over networks")
                             for k, value in enumerate(x)]
    chart = lines(
        [(name, [(r[1] / x[0], r[2]) for r in rows if r[0] == name]) for name, (x, _) in series.items()],
        x="times the smallest", y="score path over value path", log_x=True, log_y=True,
    )  # fmt: skip
    caption = f"Score over value path by what is varied, width {width} and logit variance {variance:g} otherwise."
    return Finding(
        f"Llama-like, width {width}, {layers} layers, logit variance {variance:g}, L = {length}, {nets} networks, one "
        f"window of random vectors, {settings['probes']} probes, float32",
        tuple(readings), (Plate("share", chart, caption, caption),), ("varied", "value", "ratio", "deficit"), rows,
    )  # fmt: skip


def _amplitude(network: Any, length: int, seed: int, settings: Mapping[str, Any]) -> tuple[float, float]:
    """sqrt(S/V), mean over layers, and the mean deficit of attention's entropy."""
    windows = ct.random_windows(length, 1, seed)
    energy: Float64[np.ndarray, "layer term"] = ct.measure_pathways(
        network, windows, probes=int(settings["probes"]), seed=seed, source="layer"
    ).energy.sum(axis=(1, 2, 4))
    most = float(np.log(np.arange(1, length + 1)).mean())
    entropy = float(ct.measure_attention(network, windows).entropy.mean())
    return float(np.sqrt(energy[:, 2] / energy[:, 1]).mean()), most - entropy


STUDIES.register("score-share", score_share)
