"""What groups of positions cost and how close they come, kernel by kernel.

Prints, for one architecture with each pattern of kernels: the largest and median relative error of the norm against
the exact recursion at ``--exact``, where the norm is above 1e-3 of its largest; time(longest) / time(2048) of the
coarse recursion; and its seconds. Times are processor seconds of this process.

    python benchmarks/coarse.py --exact 1024 --longest 1000000
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from clock import clock

from catenary.architecture import Alibi, Architecture, Causal, Chunk, HeadGroup, Kernel, Layer, Prefix, Window, pre_norm
from catenary.errors import NotApplicable
from catenary.theory.birth import exact_energies
from catenary.theory.chunks import told_chunk
from catenary.theory.coarse import carried_by_windows, coarse_energies, kernels, reach, remembered
from catenary.theory.embedding import embedded
from catenary.theory.positions.chunk_nodes import ChunkNodes
from catenary.theory.positions.places import make_grid

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from builders import qwen2_like

Pattern = tuple[tuple[Kernel, ...], ...]
SLOPES = tuple(Alibi(2.0 ** (-8 * k / 32)) for k in range(1, 33))
GENTLE = tuple(Alibi(2.0 ** (-16 * k / 8)) for k in range(1, 9))


def patterns(length: int) -> dict[str, Pattern]:
    """Kernels in turn over the layers, scaled with the length where they have a width."""
    window, chunk = Window(length // 16), Chunk(length // 4)
    narrow = Window(24)
    return {
        "causal": ((Causal(),),),
        "window L/4": ((Window(length // 4),),),
        "window L/16": ((window,),),
        "window 4096": ((Window(4096),),),
        "local and global, L/4": ((Window(length // 4),), (Causal(),)),
        "five local L/16, one global": ((*[(window,)] * 5, (Causal(),))),
        "window 24, global": ((narrow,), (Causal(),)),
        "chunks L/4, global": ((*[(chunk,)] * 3, (Causal(),))),
        "chunks L/16, global": ((*[(Chunk(length // 16),)] * 3, (Causal(),))),
        "prefix L/4": ((Prefix(length // 4),),),
        "8 slopes to 2^-8": (SLOPES[3::4],),
        "32 slopes to 2^-8": (SLOPES,),
        "8 slopes to 2^-16": (GENTLE,),
        "window 4096, global": ((Window(4096),), (Causal(),)),
    }


def with_kernels(architecture: Architecture, pattern: Pattern) -> Architecture:
    """The architecture with these kernels in turn over its layers."""

    def layer(index: int, old: Layer) -> Layer:
        kernels = pattern[index % len(pattern)]
        groups = tuple(HeadGroup(max(1, 16 // len(kernels)), kernel) for kernel in kernels)
        return pre_norm(replace(old.attention, groups=groups), old.feed_forward, old.norm)

    return replace(architecture, layers=tuple(layer(i, old) for i, old in enumerate(architecture.layers)))


def groups(architecture: Architecture, length: int) -> int:
    """How many groups of positions, or known positions, the recursion has."""
    chunk = told_chunk(architecture, kernels(architecture), length)
    if chunk is not None:
        return ChunkNodes.over(length, chunk).place.size
    held = int(min(length, reach(architecture), remembered(architecture)))
    return make_grid(kernels(architecture), held, carried_by_windows(architecture) or None).sizes.size


def row(name: str, depth: int, exact: int, longest: int) -> dict[str, object]:
    model = qwen2_like(depth=depth)
    architecture = with_kernels(model, patterns(exact)[name])
    truth = exact_energies(architecture, embedded(architecture, np.eye(exact)))
    told = truth > 1e-6 * truth.max()
    error = np.abs(np.sqrt(coarse_energies(architecture, exact)[told] / truth[told]) - 1)
    result: dict[str, object] = {
        "kernels": name, "max_error": round(float(error.max()), 5), "median_error": round(float(np.median(error)), 5)
    }
    seconds = {}
    for length in (2048, longest):
        architecture = with_kernels(model, patterns(length)[name])
        try:
            result[f"groups_{length}"] = int(groups(architecture, length))
            seconds[length] = clock(lambda at=length, of=architecture: coarse_energies(of, at))
        except NotApplicable as refused:
            result["refused"] = str(refused)[:60]
    if longest in seconds:
        result["longest_over_2048"] = round(seconds[longest] / seconds[2048], 2)
    return result | {f"seconds_{length}": round(value, 2) for length, value in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=24)
    parser.add_argument("--exact", type=int, default=1024)
    parser.add_argument("--longest", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", default=sorted(patterns(1024)))
    options = parser.parse_args()
    coarse_energies(qwen2_like(depth=1), 2048)  # imports and tables
    rows = [row(name, options.depth, options.exact, options.longest) for name in options.only]
    print(json.dumps({"depth": options.depth, "exact_at": options.exact, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
