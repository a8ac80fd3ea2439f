"""How often the verdict on a curve by slot is right: simulated curves of known shape, by kind of outcome and samples.

    python experiments/slot_verdicts.py [--runs 200]

Prints the tables of docs/retrieval-statistics.md. Outcomes of one sample share its difficulty: on the logit scale of a
binary outcome (standard deviation 1) or added to a log-probability (.4, with .16 per slot: a paired standard deviation
of .226). Shares are of ``--runs`` simulations, so one near 5 % is known to about 1.5 points at 200 and to .5 at 2,000.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from catenary.retrieval.statistics.simultaneous import gaps_of_rows
from catenary.retrieval.statistics.verdict import judge_slots

SLOTS = 10
X = np.arange(SLOTS) / (SLOTS - 1)
SHAPES = {
    "flat": 0 * X,
    "U": np.maximum(0, np.abs(2 * X - 1) - 1 / 3) * 1.5,
    "ends only": np.where((X == 0) | (X == 1), 1.0, 0.0),
    "first slot only": np.where(X == 0, 1.0, 0.0),
    "falling": 1 - X,
    "rising": X,
    "hump": 1 - np.abs(2 * X - 1),
}
"""Curves of height 1 over the lowest slot."""
RIGHT = {
    "flat": "flat", "U": "U", "ends only": "U", "first slot only": "primacy", "falling": "primacy",
    "rising": "recency", "hump": "irregular",
}  # fmt: skip


def logp(generator: np.random.Generator, n: int, shape: np.ndarray, height: float) -> np.ndarray:
    """Log-probabilities around -.8."""
    own = 0.4 * generator.normal(size=(n, 1)) + 0.16 * generator.normal(size=(n, SLOTS))
    return -0.8 + height * shape + own


def skewed(generator: np.random.Generator, n: int, shape: np.ndarray, height: float) -> np.ndarray:
    """Log-probabilities with a long tail of failures: minus an exponential at each slot, of mean .226/sqrt 2."""
    own = -0.16 * generator.exponential(size=(n, SLOTS)) - 0.4 * generator.exponential(size=(n, 1))
    return height * shape + own


def binary(base: float, generator: np.random.Generator, n: int, shape: np.ndarray, height: float) -> np.ndarray:
    """0 or 1 whose share over samples is ``base + height x shape``."""
    share = np.broadcast_to(np.clip(base + height * shape, 0, 1), (n, SLOTS))
    # A latent of two parts, 1 from the sample and 1.7 from the cell, cut at the quantile of the share.
    latent = np.random.default_rng(0).normal(size=20_000) * np.hypot(1, 1.7)
    cut = np.quantile(latent, 1 - share)
    return (generator.normal(size=(n, 1)) + 1.7 * generator.normal(size=(n, SLOTS)) > cut).astype(np.float64)


KINDS = {
    "logp": (logp, False), "logp, skewed": (skewed, False),
    "p = .5": (lambda *a: binary(0.5, *a), True), "p = .9": (lambda *a: binary(0.9, *a), True),
    "p = .3": (lambda *a: binary(0.3, *a), True),
}  # fmt: skip


def verdicts(kind: str, shape: str, height: float, n: int, runs: int, seed: int = 0) -> Counter[str]:
    """How often each word came out."""
    draw, is_binary = KINDS[kind]
    named = (list(SHAPES).index(shape), list(KINDS).index(kind))
    generator = np.random.default_rng([seed, n, round(1000 * height), *named])
    found: Counter[str] = Counter()
    for run in range(runs):
        rows = draw(generator, n, SHAPES[shape], height)
        gaps = gaps_of_rows(rows, X, binary=is_binary, seed=run, draws=1000)
        found[judge_slots(gaps, tuple(range(SLOTS)), SLOTS, n, binary=is_binary).shape] += 1
    return found


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    words = ("U", "primacy", "recency", "irregular", "flat", "ceiling", "no verdict")
    print("| flat curve, outcomes | samples | " + " | ".join(words) + " |\n" + "|---" * (len(words) + 2) + "|")
    for kind in KINDS:
        for n in (10, 20, 60, 200, 500):
            found = verdicts(kind, "flat", 0.0, n, runs)
            print(f"| {kind} | {n} | " + " | ".join(f"{found[w] / runs:.1%}" for w in words) + " |", flush=True)
    print("\n| curve | outcomes | height | right at n = 10 | 20 | 40 | 60 | 100 | 200 | 500 | U instead at 60 |")
    print("|---" * 11 + "|")
    for shape in list(SHAPES)[1:]:
        for kind, heights in (("logp", (0.1, 0.2, 0.3)), ("p = .5", (0.1, 0.2, 0.35))):
            for height in heights:
                cells, instead = [], ""
                for n in (10, 20, 40, 60, 100, 200, 500):
                    found = verdicts(kind, shape, height, n, runs)
                    cells.append(f"{found[RIGHT[shape]] / runs:.0%}")
                    if n == 60 and RIGHT[shape] != "U":
                        instead = f"{found['U'] / runs:.1%}"
                print(f"| {shape} | {kind} | {height:g} | " + " | ".join(cells) + f" | {instead} |", flush=True)


if __name__ == "__main__":
    main()
