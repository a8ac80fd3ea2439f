"""How much the score path carries at birth, and what the number of heads changes: untrained networks, random vectors.

Prints the energy of the score path against the value path at several logit variances, head sizes, widths and initial
stds, with fitted exponents; the same for the whole network; and the spread of ||J_j||^2 over networks against the
number of heads at fixed width. Everything is seeded: network n has seed n.
Run: python experiments/pathways.py [score|heads]   (both unless one is named; about four minutes on one core)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import catenary as ct
from catenary.measure.pathways import measure_paths, measure_pathways
from catenary.reproduce.small import small_network, std_for

LENGTH, LAYERS, NETS, PROBES = 64, 2, 8, 4
HEADS_LENGTH, HEADS_WIDTH, HEADS_NETS, HEAD_COUNTS = 32, 64, 64, (1, 2, 4, 8, 16, 32)
SMALL = (0.01, 0.03, 0.06, 0.1, 0.15)
"""Logit variances at which the share is fitted; above, it is not small and the power law bends."""


def network(width: int, heads: int, std: float, seed: int, score_std: float | None = None) -> Any:
    """A Llama of LAYERS layers; ``score_std`` is the std of queries and keys where it is another."""
    return small_network(width, heads, LAYERS, std=std, seed=seed, score_std=score_std)


def variance(width: int, std: float) -> float:
    """Of an attention logit at birth: (d std^2)^2, whatever the head size, since logits are divided by sqrt(d_k)."""
    return (width * std**2) ** 2


def layer_ratios(make: Callable[[int], Any], nets: int = NETS) -> NDArray[np.float64]:
    """Energy of S over energy of V, per network and layer, at the layer's input, over all positions."""
    rows = []
    for seed in range(nets):
        energy = measure_pathways(
            make(seed), ct.random_windows(LENGTH, 1, seed), probes=PROBES, seed=seed, source="layer"
        ).energy.sum(axis=(1, 2, 4))
        rows.append(energy[:, 2] / energy[:, 1])
    return np.array(rows)


def exponent(x: Sequence[float], ratios: Sequence[NDArray[np.float64]]) -> str:
    """Slope of log ratio against log x, with a 95 % interval over networks (the same seeds at every x)."""
    logs = np.log([r.mean(axis=1) for r in ratios])  # x, net
    centred = np.log(x) - np.mean(np.log(x))
    slopes = centred @ logs / (centred @ centred)
    return f"{slopes.mean():.3f} ± {2.36 * slopes.std(ddof=1) / np.sqrt(len(slopes)):.3f}"  # t of 7 degrees


def line(name: str, ratios: NDArray[np.float64]) -> None:
    """Ratio and share per layer, with standard errors over networks."""
    error = ratios.std(axis=0, ddof=1) / np.sqrt(len(ratios))
    cells = [f"{r:.4f} ± {e:.4f}" for r, e in zip(ratios.mean(axis=0), error, strict=True)]
    share = (ratios / (1 + ratios)).mean()
    print(f"{name:28}  S/V by layer {'   '.join(cells)}   S/(S+V) {share:.3f}", flush=True)


def score() -> None:
    """The score share against the logit variance, d_k, the width and the initial std."""
    print(f"score path, L={LENGTH}, {LAYERS} layers, {NETS} networks, {PROBES} probes")
    base = std_for(128, 0.1)
    found = {}
    for v in (*SMALL, 0.3, 1.0, 2.7):
        found[v] = layer_ratios(lambda seed, v=v: network(128, 4, base, seed, std_for(128, v)))
        line(f"logit variance {v:g}", found[v])
    print("exponent of the logit variance, <= .15:", exponent(SMALL, [found[v] for v in SMALL]))
    print("exponent of the logit variance, 1 to 2.7:", exponent((1.0, 2.7), [found[1.0], found[2.7]]))
    for title, values, make in (
        ("d_k", (8, 16, 32, 64, 128), lambda x, seed: network(128, 128 // x, base, seed)),
        ("width", (32, 64, 128, 256), lambda x, seed: network(x, x // 16, std_for(64, 0.05), seed)),
        ("std", (0.01, 0.02, 0.03, 0.04), lambda x, seed: network(128, 4, x, seed)),
        ("width, v = .1", (32, 64, 128, 256), lambda x, seed: network(x, x // 16, std_for(x, 0.1), seed)),
    ):
        ratios = [layer_ratios(lambda seed, x=x, make=make: make(x, seed)) for x in values]
        for x, r in zip(values, ratios, strict=True):
            line(f"{title} {x:g}", r)
        print(f"exponent of {title}:", exponent(values, ratios))
    for v in (0.05, 0.15, 1.0, 2.7):
        rows = []
        for seed in range(NETS):
            model = network(128, 4, base, seed, std_for(128, v))
            sample = measure_paths(model, ct.random_windows(LENGTH, 1, seed), probes=PROBES, seed=seed)
            norms = np.sqrt(sample.energy[:, 0, 0, 0].mean(1))[:, :-1]
            rows.append(np.log10(norms[1:] / norms[0]).mean(axis=1))
        means, errors = np.mean(rows, 0), np.std(rows, 0, ddof=1) / np.sqrt(NETS)
        cells = [
            f"{n} {m:+.3f} ± {e:.3f}" for n, m, e in zip(sample.conditions[1:], means, errors, strict=True)
        ]
        print(f"whole profile without the last token, v = {v:g}, log10 to everything: {', '.join(cells)}", flush=True)


def heads() -> None:
    """Relative spread over networks of ||J_j||^2 by number of heads: a power, and a + b/heads for its square."""
    print(f"heads at width {HEADS_WIDTH}, L={HEADS_LENGTH}, {LAYERS} layers, {HEADS_NETS} networks, exact Jacobians")
    windows = ct.random_windows(HEADS_LENGTH, 1, 0)
    for v in (0.05, 1.0):
        spread = []
        for count in HEAD_COUNTS:
            energy = np.array([
                ct.measure_jacobian(
                    network(HEADS_WIDTH, count, std_for(HEADS_WIDTH, 0.1), seed, std_for(HEADS_WIDTH, v)), windows,
                    method="exact",
                ).energy[0, 0, 0, 0, 0, :-1]
                for seed in range(HEADS_NETS)
            ])  # fmt: skip
            draws = np.random.default_rng(0).integers(0, HEADS_NETS, (400, HEADS_NETS))
            resampled = np.array([relative_spread(energy[rows]) for rows in draws])
            spread.append((relative_spread(energy), resampled))
            low, high = np.quantile(resampled, [0.025, 0.975])
            print(f"v = {v:g}, {count:3d} heads: {spread[-1][0]:.4f} [{low:.4f}, {high:.4f}]", flush=True)
        centred = np.log(HEAD_COUNTS) - np.mean(np.log(HEAD_COUNTS))
        values, resampled = (np.array([pair[k] for pair in spread]) for k in (0, 1))
        slope = centred @ np.log(values) / (centred @ centred)
        low, high = np.quantile(centred @ np.log(resampled) / (centred @ centred), [0.025, 0.975])
        print(f"v = {v:g}: exponent of the number of heads {slope:.3f} [{low:.3f}, {high:.3f}]; the claim is -0.5")
        design = np.stack([np.ones(len(HEAD_COUNTS)), 1 / np.array(HEAD_COUNTS)], axis=1)
        fit, bands = np.linalg.pinv(design) @ values**2, np.linalg.pinv(design) @ resampled**2
        left = np.abs(design @ fit / values**2 - 1).max()
        for name, best, band in zip(("without heads", "over heads"), fit, bands, strict=True):
            low, high = np.quantile(band, [0.025, 0.975])
            print(f"v = {v:g}: variance {name} {best:.4f} [{low:.4f}, {high:.4f}]; worst misfit {left:.1%}", flush=True)


def relative_spread(energy: NDArray[np.float64]) -> float:
    """Std over networks over mean, averaged over positions."""
    return float((energy.std(axis=0, ddof=1) / energy.mean(axis=0)).mean())


if __name__ == "__main__":
    asked = sys.argv[1:] or ["score", "heads"]
    for name in asked:
        {"score": score, "heads": heads}[name]()
