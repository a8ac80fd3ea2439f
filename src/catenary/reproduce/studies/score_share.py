"""What the score path carries at birth: by head size, width and logit scale, and in a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
ByNetwork = Float64[np.ndarray, "x net"]


def score_share(settings: Mapping[str, Any], observer: Observer) -> Finding:
    r"""Amplitude ratio \(\sqrt{S/V}\) of score to value path at a layer's input, and how far attention is from uniform.

    Settings: ``width``, ``layers``, ``length``, ``nets``, ``probes``, ``variance`` (of a logit), ``head_sizes``,
    ``widths``, ``wide`` (the width from which a network is called wide), ``variances``, ``shape_layers`` (of the
    networks whose profile is taken without the score path). Head sizes are varied as published networks have them
    (constant std, logits divided by the root of the head size) and with logits divided by the head size itself, which
    is how they would have to be scaled to vanish. Widths are varied with two heads, so that the head size grows with
    them, at constant std and with the std that keeps the logit variance.
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
        return small_network(round(size), 2, layers, std=std, seed=seed)

    def by_width_alone(size: float, seed: int) -> Any:
        return small_network(round(size), 2, layers, std=std_for(round(size), variance), seed=seed)

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
                                          f"exponent of sqrt(S/V), {name} from {x[0]:g} to {x[-1]:g}"))
            readings.append(over_networks(f"uniformity against the {name}", slopes(x, np.log(deficits)),
                                          "exponent of ln i less the entropy of attention, which is v/2 for small v"))
            if name == "width, logits kept":
                wide = [k for k, size in enumerate(x) if size >= float(settings["wide"])]
                readings.append(over_networks(f"exponent of the {name}, wide", slopes([x[k] for k in wide],
                                              np.log(ratios[wide])), f"exponent of sqrt(S/V), {name} from "
                                              f"{x[wide[0]]:g} to {x[-1]:g}"))
            if name == "logit variance":
                readings += _by_logits(x, ratios, deficits)
    for value in map(float, settings["variances"]):
        readings += _without_scores(value, settings)
    chart = lines(
        [(name, [(r[1] / x[0], r[2]) for r in rows if r[0] == name]) for name, (x, _) in series.items()],
        x="times the smallest", y="score path over value path", log_x=True, log_y=True,
    )  # fmt: skip
    caption = f"Score over value path by what is varied, width {width} and logit variance {variance:g} otherwise."
    return Finding(
        f"Llama-like, width {width}, {layers} layers, logit variance {variance:g}, L = {length}, {nets} networks, one "
        f"window of random vectors, {settings['probes']} probes, float32; profiles: {settings['shape_layers']} layers",
        tuple(readings), (Plate("share", chart, caption, caption),), ("varied", "value", "ratio", "deficit"), rows,
    )  # fmt: skip


def _by_logits(variances: Sequence[float], ratios: ByNetwork, deficits: ByNetwork) -> Iterator[Reading]:
    """What one layer's score path carries at each logit variance, and how many of its tokens a query attends to."""
    for v, ratio, deficit in zip(variances, ratios, deficits, strict=True):
        yield over_networks(f"share at v = {v:g}", ratio**2 / (1 + ratio**2), "S/(S+V), energies, mean over networks")
        yield over_networks(f"norms at v = {v:g}", ratio, "sqrt(S/V), score over value path's norm in a layer")
        yield over_networks(f"uniformity at v = {v:g}", np.exp(-deficit),
                            "exp of attention's entropy over the number of tokens it sees (geometric mean)")


def _without_scores(variance: float, settings: Mapping[str, Any]) -> list[Reading]:
    """How far a profile moves when no layer's attention weights carry gradient; activations stay as they are."""
    width, length, nets = int(settings["width"]), int(settings["length"]), int(settings["nets"])
    moved, std = np.empty((nets, length)), std_for(width, float(settings["variance"]))
    for seed in range(nets):
        network = small_network(
            width, 4, int(settings["shape_layers"]), std=std, seed=seed, score_std=std_for(width, variance)
        )
        sample = ct.measure_paths(network, ct.random_windows(length, 1, seed), parts=("everything", "value"),
                                  probes=int(settings["probes"]), seed=seed)  # fmt: skip
        moved[seed] = np.log10(sample.profile("rms", "value").values / sample.profile("rms", "everything").values)
    shape = moved - np.median(moved, axis=1, keepdims=True)
    middle = slice(round(0.45 * length), round(0.55 * length))
    return [
        over_networks(f"largest change at v = {variance:g}", np.abs(shape).max(axis=1),
                      "dex of the profile's shape without the score path, over positions"),
        over_networks(f"change of first over middle at v = {variance:g}", shape[:, 0] - shape[:, middle].mean(axis=1),
                      "dex without the score path"),
    ]  # fmt: skip


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
