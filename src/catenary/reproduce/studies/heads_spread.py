"""Whether more heads bring an untrained network closer to its expectation: spread over networks by number of heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import Point, lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import slopes, small_network, std_for
from catenary.study.observer import Observer, counting


def heads_spread(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Relative standard deviation of ||J_j||^2 over networks, mean over positions but the last, exact Jacobians.

    Settings: ``width``, ``heads`` (several), ``variances`` (of a logit), ``layers``, ``length``, ``nets``. All weights
    but queries and keys have the std of logit variance .1, so that only attention differs.
    """
    width, heads, nets = int(settings["width"]), list(map(int, settings["heads"])), int(settings["nets"])
    windows, std = ct.random_windows(int(settings["length"]), 1, 0), std_for(width, 0.1)
    draws = np.random.default_rng(0).integers(0, nets, (400, nets))
    readings, rows = [], []
    curves: list[tuple[str, list[Point]]] = []
    variances = list(map(float, settings["variances"]))
    with counting(observer, "networks", len(variances) * len(heads) * nets) as progress:
        done = 0
        for variance in variances:
            values, spread = [], []
            for count in heads:
                energies = []
                for seed in range(nets):
                    network = small_network(
                        width, count, int(settings["layers"]), std=std, seed=seed, score_std=std_for(width, variance)
                    )
                    energies.append(ct.measure_jacobian(network, windows, method="exact").energy[0, 0, 0, 0, 0, :-1])
                    done += 1
                    progress(done, 0)
                energy = np.array(energies)
                values.append(relative_spread(energy))
                spread.append([relative_spread(energy[chosen]) for chosen in draws])
                low, high = np.quantile(spread[-1], [0.025, 0.975])
                rows.append((variance, count, values[-1], float(low), float(high)))
            exponent = float(slopes(heads, np.log(values)[:, None])[0])
            band = np.quantile(slopes(heads, np.log(spread)), [0.025, 0.975])
            readings.append(
                Reading(f"exponent at v = {variance:g}", exponent, "of the relative spread against the number of heads",
                        min(float(band[0]), exponent), max(float(band[1]), exponent))
            )  # fmt: skip
            design = np.linalg.pinv(np.stack([np.ones(len(heads)), 1 / np.array(heads)], axis=1))
            parts = design @ np.array(values) ** 2
            bands = np.quantile(design @ np.array(spread) ** 2, [0.025, 0.975], axis=1)
            for k, name in enumerate(("left by any number of heads", "over the number of heads")):
                readings.append(
                    Reading(f"{name} at v = {variance:g}", float(parts[k]), "part of the squared spread a + b/heads",
                            min(float(bands[0, k]), float(parts[k])), max(float(bands[1, k]), float(parts[k])))
                )  # fmt: skip
            curves.append((f"v = {variance:g}", [(float(r[1]), *r[2:]) for r in rows if r[0] == variance]))
    first = float(rows[0][2])
    curves.append(("claimed", [(float(h), first * (heads[0] / h) ** 0.5) for h in heads]))
    chart = lines(curves, x="heads", y="relative spread over networks", log_x=True, log_y=True)
    caption = f"Spread of the squared Jacobian norm over {nets} networks of width {width}, 95 % bands."
    return Finding(
        f"Llama-like, width {width}, {settings['layers']} layers, heads {heads}, logit variance {variances}, L = "
        f"{settings['length']}, {nets} networks, one window of random vectors, exact Jacobians, float32",
        tuple(readings), (Plate("spread", chart, caption, caption),), ("v", "heads", "spread", "low", "high"), rows,
    )  # fmt: skip


def relative_spread(energy: Float64[np.ndarray, "net L"]) -> float:
    """Standard deviation over networks over mean, averaged over positions."""
    return float((energy.std(axis=0, ddof=1) / energy.mean(axis=0)).mean())


STUDIES.register("heads-spread", heads_spread)
