"""Whether content or position breaks the monotonicity of a trained network's attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import catenary as ct
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.claim import interval_of
from catenary.reproduce.demo import demo_path
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rungs import Map
from catenary.reproduce.small import over_networks
from catenary.reproduce.studies.rollout_measured import windows_of
from catenary.study.observer import Observer, counting
from catenary.text.windows import Windows
from catenary.theory.rollout.control import monotonicity_violations

TOLERANCE = 16 * 2.0**-23
"""Rounding of a row's sum in float32, as ``measure_attention`` takes it."""


def monotone_content(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Count violations in windows of text, in windows of one token, and in attention averaged over text.

    With one token repeated all positions hold the same stream in every layer, so that a head's logits depend on the
    distance alone: it is the network's attention without content. Averaging over windows keeps position and what
    content has in common at a place.

    Settings: ``model``, ``documents``, ``length``, ``windows`` (averaged, and in groups of ``group``), ``single`` (of
    them, counted one by one, and as many repeated tokens, taken from their middles), ``seed``, ``dtype``, ``device``.
    """
    network = ct.load(demo_path(str(settings["model"])), weights="pretrained", dtype=str(settings["dtype"]),
                      device=str(settings["device"]))  # fmt: skip
    windows, count = windows_of(settings, network), int(settings["single"])
    length = windows.ids.shape[1]
    same = Windows(np.repeat(windows.ids[:count, length // 2, None], length, axis=1))
    group = int(settings["group"])
    sums: list[Any] = [0.0 for _ in range(len(windows) // group)]
    rates: dict[str, list[list[float]]] = {"text": [], "one token": [], "averaged": [], "all averaged": []}
    with counting(observer, "attention", len(windows) + count) as progress:
        for index in range(len(windows)):
            maps = mean_maps(network, windows, index)
            sums[index // group] = sums[index // group] + np.array(maps) / group
            if index < count:
                rates["text"].append([violations(one) for one in maps])
            if (index + 1) % group == 0:
                rates["averaged"].append([violations(one) for one in sums[index // group]])
            progress(index + 1, len(windows) + count)
        for index in range(count):
            rates["one token"].append([violations(one) for one in mean_maps(network, same, index)])
            progress(len(windows) + index + 1, len(windows) + count)
    rates["all averaged"].append([violations(one) for one in sum(sums) / len(sums)])
    readings = [
        _bounded(over_networks(f"violations, {name}", np.array(rates[name]).mean(axis=1), f"{meaning}; Student"))
        for name, meaning in (
            ("text", "share of triples k < i < j, head mean, mean over layers, over windows"),
            ("averaged", f"the same in attention averaged over {group} windows, over {len(sums)} groups"),
            ("one token", "the same with one token repeated, over tokens"),
        )
    ]  # fmt: skip
    meaning = f"the same in attention averaged over these {len(windows)} windows"
    readings.append(Reading("violations, all averaged", float(np.mean(rates["all averaged"])), meaning, floor=1e-3))
    layers = [float(t) for t in range(len(rates["text"][0]))]
    drawn = [
        (name, list(zip(layers, np.array(part).mean(axis=0).tolist(), strict=True))) for name, part in rates.items()
    ]
    name = str(settings["model"]).rsplit("/", 1)[-1]
    caption = f"{name}: violations of monotonicity by layer, in text, averaged over it, and with one token repeated."
    return Finding(
        f"{name}, trained weights, L = {length}, {len(windows)} document windows, {count} tokens, {settings['dtype']}",
        tuple(readings), (Plate("layers", lines(drawn, x="layer", y="violations"), caption, caption),),
        ("layer", *(name for name, _ in drawn)),
        [(t, *(float(curve[int(t)][1]) for _, curve in drawn)) for t in layers],
    )  # fmt: skip


def mean_maps(network: Any, windows: Windows, index: int) -> list[Map]:
    """The heads' mean attention of every layer in one window."""
    from catenary.measure.feed import prepare
    from catenary.models.attention_calls import attention_calls
    from catenary.models.extra import torch
    from catenary.models.undisturbed import undisturbed

    feed, maps = prepare(network, windows), []
    with undisturbed(network.module), torch.no_grad(), attention_calls(
        network.anatomy, (1, feed.length), lambda call: maps.append(call.rows(0, call.length)[0].double().mean(0)),
    ):  # fmt: skip
        network.anatomy.stream(feed.vectors([index]), feed.mask([index]), feed.positions([index]))
    return [one.cpu().numpy() for one in maps]


def violations(attention: Map) -> float:
    """Share of the triples in which a causal row can violate, those with k < i < j."""
    length = attention.shape[0]
    free = (length - 2) / (3 * length)
    return float(monotonicity_violations(np.cumsum(attention, axis=1).T, TOLERANCE).rate / free)


def _bounded(reading: Reading) -> Reading:
    low, high = interval_of(reading)
    return replace(reading, low=max(low, 0.0), high=min(high, 1.0))


STUDIES.register("monotone-content", monotone_content)
