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
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import over_networks, small_network, std_for
from catenary.reproduce.switched import NORMS, sizes, switched
from catenary.study.observer import Observer, counting

SWITCHES = {
    "change of the first over the middle, linear feed-forward":
        "dex, paths without it less all paths; the gate opened by one number, as large as before",
    "change of the first over the middle, linear feed-forward, its norms by one number":
        "dex, the same, and norms in front of it divide by one number at all positions",
    "change of the first over the middle, linear feed-forward, attention's norms by one number":
        "dex, the same, and norms in front of attention do instead",
    "change at the last token, without, norms as with it":
        "dex of the shape; the feed-forward dropped, norms still divide by what they did at each position",
}  # fmt: skip
"""Readings of the networks with a thing of their blocks switched, and what each is."""

Curve = Float64[np.ndarray, " L"]


def feed_forward_shape(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """The same networks, windows and probes with the feed-forward, with its output matrices at 0, and by paths.

    Settings: ``width``, ``layers``, ``length``, ``nets``, ``windows``, ``probes``, ``variance``, ``wide`` (hidden width
    over width).
    """
    width, length, nets = int(settings["width"]), int(settings["length"]), int(settings["nets"])
    kept: dict[str, list[Curve]] = {"with": [], "without": [], "paths without": []}
    switches: dict[str, list[float]] = {name: [] for name in SWITCHES}
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
            for name, value in _switches(network, windows, probes, seed, kept["with"][-1]).items():
                switches[name].append(value)
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
    for name, changes in switches.items():
        readings.append(over_networks(name, changes, SWITCHES[name]))
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


def _switches(network: Any, windows: ct.Windows, probes: int, seed: int, before: Curve) -> dict[str, float]:
    """What dropping the feed-forward changes once norms, or norms and gates, no longer depend on the position.

    ``before`` is the network's own profile, by the same probes.
    """
    size = int(windows.length)
    middle = slice(round(0.45 * size), round(0.55 * size))
    own = sizes(network, windows)
    paths = {}
    for name, of in (("own norms", ()), ("its norms", NORMS[1:]), ("attention's norms", NORMS[:1])):
        with switched(network, own, norms="one", of=of, gate="one"):
            sample = ct.measure_paths(network, windows, parts=("everything", "no-ffn"), probes=probes, seed=seed)
        whole, without = (sample.profile("rms", part).values for part in ("everything", "no-ffn"))
        paths[name] = np.log10(without / whole)
    with without_feed_forward(network), switched(network, own, norms="by position"):
        after = ct.measure_jacobian(network, windows, probes=probes, seed=seed).profile("rms").values
    ratio = np.log10(after / before)
    values = (*(path[0] - path[middle].mean() for path in paths.values()), ratio[-1] - np.median(ratio))
    return dict(zip(SWITCHES, map(float, values), strict=True))


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
