"""Whether the feed-forward leaves the shape alone: profiles with it, without it, and of paths that pass it by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.deviation import wasserstein
from catenary.page.exhibit import Plate
from catenary.profile import Profile
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import over_networks, small_network, std_for
from catenary.study.observer import Observer, counting

Curve = Float64[np.ndarray, " L"]


def feed_forward_shape(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """The same networks, windows and probes with the feed-forward, with its output matrices at 0, and by paths.

    Settings: ``width``, ``layers``, ``length``, ``nets``, ``windows``, ``probes``, ``variance``, ``wide`` (hidden width
    over width).
    """
    width, length, nets = int(settings["width"]), int(settings["length"]), int(settings["nets"])
    kept: dict[str, list[Curve]] = {"with": [], "without": [], "paths without": []}
    with counting(observer, "networks", nets) as progress:
        for seed in range(nets):
            network = small_network(
                width, max(1, width // 64), int(settings["layers"]), std=std_for(width, float(settings["variance"])),
                seed=seed, wide=float(settings["wide"]),
            )
            windows = ct.random_windows(length, int(settings["windows"]), seed)
            probes = int(settings["probes"])
            sample = ct.measure_paths(network, windows, parts=("everything", "no-ffn"), probes=probes, seed=seed)
            kept["with"].append(sample.profile("rms", "everything").values)
            kept["paths without"].append(sample.profile("rms", "no-ffn").values)
            with without_feed_forward(network):
                kept["without"].append(
                    ct.measure_jacobian(network, windows, probes=probes, seed=seed).profile("rms").values
                )
            progress(seed + 1, nets)
    curves = {name: np.array(rows) for name, rows in kept.items()}
    middle = slice(round(0.45 * length), round(0.55 * length))
    readings = []
    for name, rows in curves.items():
        level = np.exp(np.log(rows[:, middle]).mean(axis=1))
        readings.append(over_networks(f"last over middle, {name}", np.log10(rows[:, -1] / level), "dex"))
        readings.append(over_networks(f"first over middle, {name}", np.log10(rows[:, 0] / level), "dex"))
    for name in ("without", "paths without"):
        ratio = np.log10(curves[name] / curves["with"])
        shape = np.abs(ratio - np.median(ratio, axis=1, keepdims=True))
        readings.append(over_networks(f"largest change, {name}", shape.max(axis=1), "dex of the shape, over positions"))
        readings.append(over_networks(f"change at the last token, {name}", ratio[:, -1] - np.median(ratio, axis=1),
                                      "dex of the shape"))
        distance = [wasserstein(a, b) for a, b in zip(curves[name], curves["with"], strict=True)]
        readings.append(over_networks(f"W1, {name}", distance, "distance to the profile with it, both normalised to 1"))
    for name in ("with", "without"):
        off = np.array([
            np.log10(ct.fit_cesaro(Profile(row), int(settings["layers"]), by="w1").profile().values / row)
            for row in curves[name]
        ])  # fmt: skip
        readings.append(over_networks(f"paper's law at the last token, {name}", off[:, -1] - np.median(off, axis=1),
                                      "log10 fitted law over network, its median over positions taken off"))
    readings += [_by_activation(activation, settings) for activation in ("linear", "gelu_new")]
    means = {name: np.exp(np.log(rows).mean(axis=0)) for name, rows in curves.items()}
    chart = lines(
        [(name, [((j + 0.5) / length, float(v / np.median(mean))) for j, v in enumerate(mean)])
         for name, mean in means.items()],
        x="position", y="influence over its median", log_y=True,
    )  # fmt: skip
    caption = f"Profiles with and without the feed-forward, {nets} networks, log-mean."
    return Finding(
        f"Llama-like, width {width}, {settings['layers']} layers, hidden width {settings['wide']} times that, logit "
        f"variance {settings['variance']}, L = {length}, {nets} networks, {settings['windows']} windows of random "
        f"vectors, {settings['probes']} probes, float32",
        tuple(readings), (Plate("profile", chart, caption, caption),), ("position", *means),
        [(j + 1, *(float(mean[j]) for mean in means.values())) for j in range(length)],
    )  # fmt: skip


def _by_activation(activation: str, settings: Mapping[str, Any]) -> Reading:
    """GPT-2-like networks: a linear feed-forward has the same block at every position, any other has not."""
    width, length, layers = int(settings["width"]), int(settings["length"]), int(settings["layers"])
    middle = slice(round(0.45 * length), round(0.55 * length))
    changes = []
    for seed in range(int(settings["nets"])):
        network = ct.load({
            "model_type": "gpt2", "n_embd": width, "n_layer": layers, "n_head": max(1, width // 64), "vocab_size": 16,
            "n_inner": round(float(settings["wide"]) * width), "n_positions": length, "activation_function": activation,
            "initializer_range": std_for(width, float(settings["variance"])), "bos_token_id": 0, "eos_token_id": 0,
        }, seed=seed)  # fmt: skip
        sample = ct.measure_paths(
            network, ct.random_windows(length, int(settings["windows"]), seed), parts=("everything", "no-ffn"),
            probes=int(settings["probes"]), seed=seed,
        )
        logs = [np.log10(sample.profile("rms", part).values) for part in ("everything", "no-ffn")]
        primacy = [float(log[0] - log[middle].mean()) for log in logs]
        changes.append(primacy[1] - primacy[0])
    return over_networks(f"change of the first over the middle, {activation} feed-forward", changes,
                         "dex, paths without it less all paths, GPT-2-like networks of the same size")


@contextmanager
def without_feed_forward(network: Any) -> Iterator[None]:
    """Within the context every feed-forward adds 0."""
    parts = [layer.mlp.down_proj.weight for layer in network.anatomy.layers]
    saved = [part.data.clone() for part in parts]
    for part in parts:
        part.data.zero_()
    try:
        yield
    finally:
        for part, values in zip(parts, saved, strict=True):
            part.data.copy_(values)


STUDIES.register("feed-forward-shape", feed_forward_shape)
