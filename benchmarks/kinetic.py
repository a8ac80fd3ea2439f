"""How much faster vectorised kinetic profiles are than a double loop over the same series, and 10,000 minima.

The table is that of arXiv 2605.09213 with lambda = 1 and M = 8: 14 profiles, t from 0.25 to 5, at 800 positions from
0.02 to 0.98; the end of recency at 48 values of beta; and a double well of four heads. The loop sums 20 modes per
position, one at a time, with scipy's Bessel functions. Prints time(loop) / time(vectorised), median over repeats in
one run, the largest relative difference, and the seconds for 10,000 minima, all positional kernels' responses
and the extrema of four heads. Times are processor seconds of this process.

    OMP_NUM_THREADS=1 python benchmarks/kinetic.py --repeats 3
"""

from __future__ import annotations

import argparse
import json
import math
import statistics

import numpy as np
from clock import clock
from scipy.special import iv

from catenary import kinetic

TIMES, BETAS = np.linspace(0.25, 5.0, 14), np.round(np.arange(0.1, 4.85, 0.1), 1)
POSITIONS = np.linspace(0.02, 0.98, 800)
LAM, M, MODES = 1.0, 8, 20
WELL = [(1.0, 3.0, 0.2), (-27.5193, 0.25, 0.2), (-1.5515, 0.25, 0.5), (3.926e-6, 2.0, 3.0)]


def loop_profile(lam: float, beta: float, t: float) -> list[float]:
    weights = [math.exp(-((math.pi * n / M) ** 2) / 2) for n in range(1, MODES + 1)]
    rates = [n * n * iv(n, beta) for n in range(1, MODES + 1)]
    values = []
    for sigma in POSITIONS:
        y = math.log(math.expm1(lam) / math.expm1(lam * sigma))
        kernel = lam * math.exp(-lam * (1 - sigma)) / -math.expm1(-lam)
        total = 0.0
        for weight, rate in zip(weights, rates, strict=True):
            c = rate * t
            total += weight * kernel * math.sqrt(c / y) * iv(1, 2 * math.sqrt(c * y))
        values.append(total)
    return values


def loop_table() -> list[np.ndarray]:
    profiles = np.array([loop_profile(LAM, 1.0, t) for t in TIMES])
    weights = [math.exp(-((math.pi * n / M) ** 2) / 2) for n in range(1, MODES + 1)]
    ends = []
    for beta in BETAS:
        first = second = 0.0
        for n in range(1, MODES + 1):
            a = n * n * iv(n, beta)
            first += weights[n - 1] * a
            second += weights[n - 1] * a * a
        ends.append(2 * (1 - math.exp(-LAM)) * first / second)
    well = sum(weight * np.array(loop_profile(lam, beta, 1.5)) for weight, lam, beta in WELL)
    return [profiles, np.array(ends), np.asarray(well)]


def table() -> list[np.ndarray]:
    profiles = kinetic.retrieval_profile(POSITIONS, lam=LAM, beta=1.0, t=TIMES[:, None], M=M)
    well = kinetic.heads_profile(POSITIONS, heads=WELL, t=1.5, M=M)
    return [np.asarray(part) for part in (profiles, kinetic.t_crit(LAM, BETAS, M), well)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minima", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    off = max(np.abs(ours / theirs - 1).max() for ours, theirs in zip(table(), loop_table(), strict=True))
    ratios = [clock(loop_table) / clock(table) for _ in range(options.repeats)]

    rng = np.random.default_rng(0)
    n = options.minima
    sets = {"lam": 10 ** rng.uniform(-2, 2, n), "beta": rng.uniform(0.1, 8, n), "M": rng.integers(2, 60, n)}
    sets["t"] = np.asarray(kinetic.t_crit(*sets.values())) * rng.uniform(0.05, 1.5, n)
    kernel = kinetic.PowerLaw(0.2, 2.0)
    print(json.dumps({
        "repeats": options.repeats,
        "loop_over_vectorised": round(statistics.median(ratios), 1),
        "largest_relative_difference": float(f"{off:.1e}"),
        "table_seconds": round(clock(table), 4),
        "minima": n,
        "minima_seconds": round(clock(lambda: kinetic.interior_minimum(**sets)), 2),
        "extrema_of_four_heads_seconds": round(clock(lambda: kinetic.extrema(heads=WELL, t=1.5, M=M)), 3),
        "any_kernel_800_sources_seconds": round(
            clock(lambda: kinetic.positional_response(POSITIONS, c=2.0, kernel=kernel)), 3
        ),
    }))


if __name__ == "__main__":
    main()
