"""The floor in the middle against depth: is it 1/(H-1)! of anything, with and without residuals, in law and network?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import catenary as ct
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import Point, lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.reproduce.small import over_networks, small_network, std_for
from catenary.study.observer import Observer, counting
from catenary.theory.cesaro.density import cesaro_density, spike_mass


def dead_zone(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Exponent of the middle against (H-1)!: -1 where the claim holds, 0 where depth does not starve the middle.

    Settings: ``depths``, ``mixing`` (several, of the law); ``network_depths``, ``width``, ``length``, ``nets``,
    ``windows``, ``probes``, ``variance``. In the law the middle is the density at x = 1/2, alone and over the last
    token's weight where there is one; in networks the log-mean over x in [.45, .55] over the last, and over the first
    token.
    """
    depths = list(map(int, settings["depths"]))
    factorials = np.array([float(math.factorial(depth - 1)) for depth in depths])
    pure = np.array([float(cesaro_density(0.5, depth, 1.0)) / math.log(2) ** (depth - 1) for depth in depths])
    alone = power_law(factorials, pure)
    readings = [
        Reading("pure causal", alone.exponent, "exponent of rho(1/2) / ln(2)^(H-1) at alpha = 1 against (H-1)!",
                alone.low, alone.high + 1e-9),
    ]  # fmt: skip
    curves: list[tuple[str, list[Point]]] = []
    for mixing in map(float, settings["mixing"]):
        law = np.array([float(cesaro_density(0.5, depth, mixing)) for depth in depths])
        least = np.array([depth * mixing * (1 - mixing) ** (depth - 1) for depth in depths])
        spikes = np.array([spike_mass(depth, mixing) for depth in depths])
        rate, plain = power_law(factorials, law / spikes), power_law(factorials, law)
        readings += [
            Reading(f"law alone, alpha = {mixing:g}", plain.exponent, "exponent of rho(1/2) itself against (H-1)!",
                    plain.low, plain.high),
            Reading(f"law over its spike, alpha = {mixing:g}", rate.exponent,
                    "exponent of rho(1/2) / (1 - alpha)^H against (H-1)!", rate.low, rate.high),
            Reading(f"law over paths of one branch, alpha = {mixing:g}", float((law / least).min()),
                    "least of rho(1/2) over H alpha (1 - alpha)^(H-1), all depths", floor=1e-9),
        ]  # fmt: skip
        curves.append((f"law, alpha = {mixing:g}",
                       [(float(d), float(v)) for d, v in zip(depths, law / spikes, strict=True)]))
    found = _networks(settings, observer)
    at = list(map(int, settings["network_depths"]))
    logs = np.array([math.lgamma(depth) for depth in at])
    centred = logs - logs.mean()
    for end in ("last", "first"):
        values = found[end]
        readings.append(over_networks(f"networks, middle over {end}", centred @ np.log(values) / (centred @ centred),
                                      f"exponent of middle over {end} token against (H-1)!, one fit per network"))
        readings += [over_networks(f"{end} over middle, H = {depth}", 1 / values[k],
                                   f"{end} token over the middle, mean over networks")
                     for k, depth in enumerate(at)]
    shown = found["last"]
    curves.append(("networks, over the last token",
                   [(float(d), float(v.mean())) for d, v in zip(at, shown, strict=True)]))
    curves.append(("1/(H-1)!", [(float(d), float(shown[0].mean() / math.factorial(d - 1))) for d in at if d <= 12]))
    chart = lines(curves, x="layers H", y="middle", log_x=True, log_y=True)
    caption = "The middle of the profile by depth: law (over the spike), networks (over the last token), and the claim."
    return Finding(
        f"law at H = {depths[0]} to {depths[-1]}, alpha {list(settings['mixing'])}; Llama-like networks, width "
        f"{settings['width']}, H = {at}, L = {settings['length']}, logit variance {settings['variance']}, "
        f"{settings['nets']} networks, {settings['windows']} windows of random vectors, {settings['probes']} probes",
        tuple(readings), (Plate("depth", chart, caption, caption),), ("layers", "network", "middle_over_last",
                                                                        "middle_over_first"),
        [(depth, n, float(found["last"][k, n]), float(found["first"][k, n]))
         for k, depth in enumerate(at) for n in range(int(settings["nets"]))],
    )  # fmt: skip


def _networks(settings: Mapping[str, Any], observer: Observer) -> dict[str, Any]:
    """Middle over last and over first token by (depth, network)."""
    width, length, nets = int(settings["width"]), int(settings["length"]), int(settings["nets"])
    middle = slice(round(0.45 * length), round(0.55 * length))
    depths = list(map(int, settings["network_depths"]))
    found = {name: np.empty((len(depths), nets)) for name in ("last", "first")}
    with counting(observer, "networks", len(depths) * nets) as progress:
        for k, depth in enumerate(depths):
            for seed in range(nets):
                network = small_network(width, max(1, width // 64), depth,
                                        std=std_for(width, float(settings["variance"])), seed=seed)  # fmt: skip
                windows = ct.random_windows(length, int(settings["windows"]), seed)
                sample = ct.measure_jacobian(network, windows, probes=int(settings["probes"]), seed=seed)
                rho = sample.profile("rms").values
                level = float(np.exp(np.log(rho[middle]).mean()))
                found["last"][k, seed], found["first"][k, seed] = level / rho[-1], level / rho[0]
                progress(k * nets + seed + 1, 0)
    return found


STUDIES.register("dead-zone", dead_zone)
