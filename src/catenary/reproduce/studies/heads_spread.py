"""Whether more heads bring an untrained network closer to its expectation: spread over networks by number of heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import Point, lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.small import over_networks, slopes, small_network, std_for
from catenary.study.observer import Observer, counting

Norms = Float64[np.ndarray, "net L"]


def heads_spread(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Relative standard deviation of ||J_j|| over networks, mean over positions but the last, exact Jacobians.

    Settings: ``width``, ``heads`` (several), ``variances`` (of a logit), ``head_size``, ``several``, ``layers``,
    ``length``, ``nets``. Heads share the width out, and once more, at the last of the variances, each has
    ``head_size``. All weights but queries and keys have the std of logit variance .1, so that only attention differs.
    A network of one seed has the same matrices at every number of heads that share the width; the jackknife leaves it
    out of all of them at once. a + b/heads and a second exponent are fitted from ``several`` heads on: the spread of
    one head is as large as the norm itself, where a root does not follow the sum it is taken of.
    """
    width, heads, nets = int(settings["width"]), list(map(int, settings["heads"])), int(settings["nets"])
    windows, std = ct.random_windows(int(settings["length"]), 1, 0), std_for(width, 0.1)
    variances, size = list(map(float, settings["variances"])), int(settings["head_size"])
    arms: list[tuple[float, int | None]] = [*((v, None) for v in variances), (variances[-1], size)]
    readings: list[Reading] = []
    rows: list[tuple[str, int, float, float, float]] = []
    curves: list[tuple[str, list[Point]]] = []
    start = heads.index(int(settings["several"]))
    design = np.linalg.pinv(np.stack([np.ones(len(heads) - start), 1 / np.array(heads[start:])], axis=1))
    with counting(observer, "networks", len(arms) * len(heads) * nets) as progress:
        done = 0
        for variance, kept in arms:
            arm = f"v = {variance:g}" + ("" if kept is None else f", heads of {kept}")
            logs, squares, points = [], [], list[Point]()
            for count in heads:
                norms = []
                for seed in range(nets):
                    network = small_network(
                        width, count, int(settings["layers"]), std=std, seed=seed, score_std=std_for(width, variance),
                        head_size=kept,
                    )
                    energy = ct.measure_jacobian(network, windows, method="exact").energy[0, 0, 0, 0, 0, :-1]
                    norms.append(np.sqrt(energy))
                    done += 1
                    progress(done, 0)
                logs.append(pseudo_values(np.array(norms), lambda x: float(np.log(relative_spread(x)))))
                squares.append(pseudo_values(np.array(norms), lambda x: relative_spread(x) ** 2))
                mean = over_networks("ln spread", logs[-1], "")
                value, low, high = np.exp(np.array([mean.value, mean.low, mean.high], dtype=np.float64))
                rows.append((arm, count, float(value), float(low), float(high)))
                points.append((float(count), *rows[-1][2:]))
            readings.append(over_networks(f"exponent at {arm}", slopes(heads, np.array(logs)),
                                          "exponent of the relative spread against the number of heads"))
            readings.append(over_networks(f"exponent from {heads[start]} heads on at {arm}",
                                          slopes(heads[start:], np.array(logs[start:])), "the same of fewer points"))
            for name, part, formula in zip(("left by any number of heads", "over the number of heads"),
                                           design @ np.array(squares[start:]), "ab", strict=True):
                readings.append(over_networks(
                    f"{name} at {arm}", part,
                    f"{formula} of the squared relative spread a + b/heads, from {heads[start]} heads on",
                ))  # fmt: skip
            curves.append((arm, points))
    first = float(rows[0][2])
    curves.append(("claimed", [(float(h), first * (heads[0] / h) ** 0.5) for h in heads]))
    chart = lines(curves, x="heads", y="relative spread over networks", log_x=True, log_y=True)
    caption = f"Relative spread of the Jacobian norm over {nets} networks of width {width}, 95 % bands."
    return Finding(
        f"Llama-like, width {width}, {settings['layers']} layers, heads {heads}, logit variance {variances}, heads "
        f"that share the width or of {size}, L = {settings['length']}, {nets} networks, one window of random vectors, "
        "exact Jacobians, float32",
        tuple(readings), (Plate("spread", chart, caption, caption),), ("arm", "heads", "spread", "low", "high"), rows,
    )  # fmt: skip


def relative_spread(norms: Norms) -> float:
    """Standard deviation over networks over mean, averaged over positions."""
    return float((norms.std(axis=0, ddof=1) / norms.mean(axis=0)).mean())


def pseudo_values(norms: Norms, statistic: Callable[[Norms], float]) -> Float64[np.ndarray, " net"]:
    r"""Jackknife pseudo-values \(n\,T - (n-1)\,T_{-i}\) of a statistic over networks (Tukey 1958).

    Their mean is the statistic without its bias of order 1/n, their scatter its error, as if they were independent
    numbers. A bootstrap will not do for a standard deviation: a draw with replacement holds a third fewer different
    networks, so that it spreads less than the sample, and the sample less than its law where tails are long. At one
    head and logit variance 1 percentile intervals of the spread of ||J_j||^2 lie below the truth every time.
    """
    n = len(norms)
    left_out = np.array([statistic(np.delete(norms, k, axis=0)) for k in range(n)])
    return np.asarray(n * statistic(norms) - (n - 1) * left_out)


STUDIES.register("heads-spread", heads_spread)
