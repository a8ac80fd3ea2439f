"""What the particle system costs: scan against double sum, a million tokens, and samples to 1 % by each estimator.

All in one run: time(double sum in numpy) / time(scan) at N = 10^4, the same for Fourier transforms against the scan;
seconds of one run of a million tokens; and per estimator the standard deviation of a draw at N = 512, the samples and
forward runs at which every source from 0.1 on is known to 1 %, and the time this takes. Naive sampling is not run to
1 %: its spread is measured and extrapolated. Times are processor seconds of this process.

    OMP_NUM_THREADS=1 python benchmarks/kinetic_particles.py
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np
from clock import clock

from catenary.kinetic.closed_form.retrieval import retrieval_profile
from catenary.kinetic.correlations.estimators import ESTIMATORS, correlate
from catenary.kinetic.particles.circle import Circle
from catenary.kinetic.particles.fourier import PositionalCircle
from catenary.kinetic.particles.integrate import flow
from catenary.kinetic.particles.readout import gaussian_readout

SAMPLES = {"naive": 200, "pair": 200, "conditional": 30, "adjoint": 200, "adjoint-control": 200}


def double_sum(angles: np.ndarray, lam: float, beta: float) -> np.ndarray:
    """F from all pairs, 500 rows at a time so that memory does not decide."""
    tokens = len(angles)
    out = np.zeros(tokens)
    for first in range(0, tokens, 500):
        rows = np.arange(first, min(first + 500, tokens))
        lags = rows[:, None] - np.arange(tokens)
        weight = np.where(lags > 0, np.exp(-lam / tokens * lags), 0.0)
        difference = angles[rows, None] - angles
        push = (weight * -beta * np.sin(difference) * np.exp(beta * np.cos(difference))).sum(axis=1)
        out[rows] = push / np.where(rows > 0, weight.sum(axis=1), 1.0)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--long", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, options.tokens)
    circle = Circle(options.tokens, 1.0, 1.0)
    transform = PositionalCircle(options.tokens, 1.0, lambda x: np.exp(-x))
    error = np.abs(circle.drift(angles) - double_sum(angles, 1.0, 1.0)).max() / np.abs(circle.drift(angles)).max()
    transform.drift(angles)
    scan, dense, fourier = (
        statistics.median(clock(work, calls) for _ in range(options.repeats))
        for work, calls in (
            (lambda: circle.drift(angles), 50),
            (lambda: double_sum(angles, 1.0, 1.0), 1),
            (lambda: transform.drift(angles), 3),
        )
    )
    print(json.dumps({
        "tokens": options.tokens,
        "scan_ms": round(1e3 * scan, 3),
        "double_sum_over_scan": round(dense / scan),
        "transforms_over_scan": round(fourier / scan, 1),
        "largest_relative_difference": float(f"{error:.1e}"),
    }))
    start = rng.uniform(0, 2 * np.pi, options.long)
    print(json.dumps({
        "tokens": options.long,
        "run_seconds": round(clock(lambda: flow(Circle(options.long, 1.0, 1.0), start, 1.0)), 2),
    }))

    system, readout, places = Circle(512, 1.0, 1.0), gaussian_readout(8), [0.1, 0.25, 0.5, 0.75, 0.9]
    for name in ESTIMATORS:
        one_source = name in ("pair", "conditional")
        sigma0 = places if one_source else None
        begun = time.process_time()
        found = correlate(
            system, t=1.0, readout=readout, samples=SAMPLES[name], seed=0, sigma0=sigma0, estimator=name  # type: ignore[arg-type]
        )
        seconds = (time.process_time() - begun) / found.samples
        exact = np.asarray(retrieval_profile(found.sigma0, lam=1.0, beta=1.0, t=1.0, M=8))
        away = found.sigma0 >= 0.1
        needed = found.samples_for(0.01, exact)[away]
        # single sources' spreads are themselves sampled: the mean over the sources is what is reported
        samples = float(needed.mean())
        whole = 511 / len(places) if one_source else 1.0
        print(json.dumps({
            "estimator": name, "tokens": 512, "samples": found.samples,
            "spread": round(float(np.sqrt((found.spread[away] ** 2).mean())), 3),
            "samples_to_1_percent": float(f"{samples:.3g}"),
            "by_tenths_of_the_prompt": [float(f"{part.mean():.2g}") for part in np.array_split(needed, 5)],
            "runs_per_sample_and_profile": found.runs_per_sample * whole,
            "seconds_to_1_percent_of_the_profile": float(f"{samples * seconds * whole:.2g}"),
        }))
    check = correlate(system, t=1.0, readout=readout, samples=1500, seed=1)
    exact = np.asarray(retrieval_profile(check.sigma0, lam=1.0, beta=1.0, t=1.0, M=8))
    away = check.sigma0 >= 0.1
    relative = check.stderr[away] / exact[away]
    off = (check.value / exact - 1)[away]
    print(json.dumps({
        "estimator": "adjoint-control", "samples": 1500,
        "largest_relative_error_claimed": float(f"{relative.max():.2g}"),
        "root_mean_square_off_the_limit": float(f"{np.sqrt((off**2).mean()):.2g}"),
        "mean_off_the_limit": float(f"{off.mean():.2g}"),
    }))


if __name__ == "__main__":
    main()
