"""How much faster one compiled pass gives the first-moment row than a cumulative sum per layer, and than dense powers.

Prints time(cumulative sums) / time(one pass) at L = 10^6, H = 128, and time(dense powers) / time(one pass) at L = 4096,
all in one run. A dense power is a product of two L x L matrices; one is timed, and H - 1 of them are what the dense
row costs. Times are processor seconds of this process, the routes are timed in turn, and the median of the ratios is
taken, so that a busy machine does not decide. Compiling is not timed: it happens once per machine.

    OMP_NUM_THREADS=1 python benchmarks/cesaro.py --repeats 5
"""

from __future__ import annotations

import argparse
import json
import statistics

import numpy as np
from clock import clock

from catenary.theory.cesaro.log_row import cesaro_log_row
from catenary.theory.cesaro.moments import log_moments
from catenary.theory.cesaro.row import layerwise_row
from catenary.theory.cesaro.stream import stream_row
from catenary.theory.positions.kernels import Uniform


def moments(length: int, layers: int) -> None:
    log_moments.cache_clear()
    log_moments(length, length // 3, layers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=1_000_000)
    parser.add_argument("--dense-length", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=128)
    parser.add_argument("--mixing", type=float, default=0.05)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    mixings = np.full(options.layers, options.mixing)
    shares = 1 / Uniform(options.length).counts
    stream_row(shares[:10], mixings)  # compiles, or reads what was compiled before
    ratios, passes = [], []
    for _ in range(options.repeats):
        passes.append(clock(lambda: stream_row(shares, mixings), 3))
        ratios.append(clock(lambda: layerwise_row(shares, mixings)) / passes[-1])
    off = np.abs(stream_row(shares, mixings) / layerwise_row(shares, mixings) - 1).max()

    mixed = (1 - options.mixing) * np.eye(options.dense_length) + options.mixing * Uniform(options.dense_length).dense()
    short = shares[: options.dense_length]
    short_pass = statistics.median(clock(lambda: stream_row(short, mixings), 50) for _ in range(options.repeats))
    product = clock(lambda: mixed @ mixed)
    print(json.dumps({
        "length": options.length, "layers": options.layers, "mixing": options.mixing, "repeats": options.repeats,
        "seconds": round(statistics.median(passes), 4),
        "cumulative_sums_over_pass": round(statistics.median(ratios), 1),
        "largest_relative_difference": float(f"{off:.1e}"),
        "dense_length": options.dense_length,
        "dense_powers_over_pass": round((options.layers - 1) * product / short_pass),
        "one_dense_product_over_pass": round(product / short_pass),
        "log_row_at_mixing_1_seconds": round(clock(lambda: cesaro_log_row(options.length, options.layers, 1.0)), 4),
        "single_point_seconds": round(clock(lambda: moments(options.length, options.layers)), 4),
    }))


if __name__ == "__main__":
    main()
