"""Whether a norm's gain is the same at every position of an untrained network: root mean squares of the stream."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.measure.feed import prepare
from catenary.models.extra import torch
from catenary.models.stream import inputs_of
from catenary.models.undisturbed import undisturbed
from catenary.page.exhibit import Plate
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import over_networks, small_network, std_for
from catenary.study.observer import Observer, counting


def norm_gain(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """log10 of the gain 1/rms at each layer's input, between positions.

    Settings: ``width``, ``layers``, ``length``, ``nets``, ``windows``, ``variance``, ``wide``.
    """
    width, length, nets = int(settings["width"]), int(settings["length"]), int(settings["nets"])
    found = []
    with counting(observer, "networks", nets) as progress:
        for seed in range(nets):
            network = small_network(
                width, max(1, width // 64), int(settings["layers"]), std=std_for(width, float(settings["variance"])),
                seed=seed, wide=float(settings["wide"]),
            )
            found.append(gains(network, ct.random_windows(length, int(settings["windows"]), seed)))
            progress(seed + 1, nets)
    logs = np.array(found)  # network, layer, position
    eighth = length // 8
    widest = int((logs[:, :, -1] - logs[:, :, 0]).mean(axis=0).argmax())
    readings = (
        over_networks("first layer", logs[:, 0, -1] - logs[:, 0, 0], "log10 of the last token's gain over the first's, "
                      "where embeddings enter"),
        over_networks("widest layer", logs[:, widest, -1] - logs[:, widest, 0],
                      f"log10 of the last token's gain over the first's, layer {widest}, where it is largest"),
        over_networks("last layer", logs[:, -1, -1] - logs[:, -1, 0],
                      "log10 of the last token's gain over the first's, last layer"),
        over_networks("without the first eighth", logs[:, widest, -1] - logs[:, widest, eighth],
                      f"log10 of the last token's gain over that of position {eighth + 1}, layer {widest}"),
    )  # fmt: skip
    mean = logs.mean(axis=0)
    shown = sorted({0, 1, widest, mean.shape[0] - 1})
    chart = lines(
        [(f"layer {layer}", [(j + 1.0, float(10 ** (mean[layer, j] - mean[layer, 0]))) for j in range(length)])
         for layer in shown],
        x="position", y="gain over the first token's", log_x=True, log_y=True,
    )  # fmt: skip
    caption = f"Gain of the norm in front of attention by position, {nets} networks."
    return Finding(
        f"Llama-like, width {width}, {settings['layers']} layers, logit variance {settings['variance']}, L = {length}, "
        f"{nets} networks, {settings['windows']} windows of random vectors, float32",
        readings, (Plate("gain", chart, caption, caption),), ("layer", "position", "log10_gain"),
        [(layer, j + 1, float(mean[layer, j])) for layer in range(len(mean)) for j in range(length)],
    )  # fmt: skip


def gains(network: Any, windows: ct.Windows) -> Float64[np.ndarray, "layer L"]:
    """log10 of 1/rms of the stream that enters each layer, root mean square over windows."""
    feed = prepare(network, windows)
    rows = list(range(len(windows)))
    with undisturbed(network.module), torch.no_grad(), ExitStack() as stack:
        seen = [stack.enter_context(inputs_of(layer)) for layer in network.anatomy.layers]
        network.anatomy.stream(feed.vectors(rows), feed.mask(rows), feed.positions(rows))
    squares = np.array([part[0].double().pow(2).mean(dim=(0, 2)).cpu().numpy() for part in seen])
    return np.asarray(-0.5 * np.log10(squares))


STUDIES.register("norm-gain", norm_gain)
