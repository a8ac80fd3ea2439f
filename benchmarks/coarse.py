"""What groups of positions cost and how close they come, kernel by kernel.

Prints, for one architecture with each pattern of kernels: the largest and median relative error of the norm against
the exact recursion at ``--exact``, where the norm is above 1e-3 of its largest (with as many layers as that recursion
passes in ``--budget`` seconds); time(longest) / time(2048) of the coarse recursion; its seconds; and the same for
published configs. Times are processor seconds of this process; OMP_NUM_THREADS=1 keeps small products from waiting for
each other.

    python benchmarks/coarse.py --exact 768 --longest 1000000
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
from catenary.configs.presets import load_preset
from catenary.configs.read import read_config
from catenary.errors import NotApplicable
from catenary.theory.birth import exact_energies
from catenary.theory.coarse import coarse_energies
from catenary.theory.cost import exact_seconds
from catenary.theory.embedding import embedded

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from builders import qwen2_like

Pattern = tuple[tuple[Kernel, ...], ...]
PUBLISHED = ("bloom-560m", "mpt-7b", "gemma-2-2b", "llama-4-scout")
"""ALiBi with 16 and 32 slopes, windows and chunks beside global layers."""


def slopes(heads: int, octaves: int) -> tuple[Kernel, ...]:
    """ALiBi's slopes from near 1 down to 2^-octaves."""
    return tuple(Alibi(2.0 ** (-octaves * k / heads)) for k in range(1, heads + 1))


def patterns(length: int) -> dict[str, Pattern]:
    """Kernels in turn over the layers, scaled with the length where they have a width."""
    window = Window(length // 16)
    return {
        "causal": ((Causal(),),),
        "prefix L/4": ((Prefix(length // 4),),),
        "window L/4": ((Window(length // 4),),),
        "window L/16": ((window,),),
        "window 4096": ((Window(4096),),),
        "window L/4, global": ((Window(length // 4),), (Causal(),)),
        "window 24, global": ((Window(24),), (Causal(),)),
        "window 4096, global": ((Window(4096),), (Causal(),)),
        "five windows L/16, one global": (*[(window,)] * 5, (Causal(),)),
        "three chunks L/4, one global": (*[(Chunk(length // 4),)] * 3, (Causal(),)),
        "8 slopes to 2^-5": (slopes(8, 5),),
        "16 slopes to 2^-5": (slopes(16, 5),),
        "8 slopes to 2^-8": (slopes(8, 8),),
        "32 slopes to 2^-8": (slopes(32, 8),),
    }


def with_kernels(architecture: Architecture, pattern: Pattern) -> Architecture:
    """The architecture with these kernels in turn over its layers."""

    def layer(index: int, old: Layer) -> Layer:
        kernels = pattern[index % len(pattern)]
        groups = tuple(HeadGroup(max(1, 16 // len(kernels)), kernel) for kernel in kernels)
        return pre_norm(replace(old.attention, groups=groups), old.feed_forward, old.norm)

    return replace(architecture, layers=tuple(layer(i, old) for i, old in enumerate(architecture.layers)))


def errors(architecture: Architecture, length: int, budget: float) -> dict[str, object]:
    """Relative errors of the norm, with as many of the layers as the budget of seconds allows."""
    depth = architecture.depth * budget / exact_seconds(architecture, length)
    layers = architecture.layers[: max(2, min(architecture.depth, int(depth)))]
    architecture = replace(architecture, layers=layers)
    truth = exact_energies(architecture, embedded(architecture, np.eye(length)))
    told = truth > 1e-6 * truth.max()
    error = np.abs(np.sqrt(coarse_energies(architecture, length)[told] / truth[told]) - 1)
    return {
        "layers": architecture.depth,
        "max_error": round(float(error.max()), 5),
        "median_error": round(float(np.median(error)), 5),
    }


def seconds(at: dict[int, Architecture]) -> dict[str, object]:
    """Seconds of the coarse recursion at each length, and the longest over the shortest."""
    found: dict[int, float] = {}
    for length, architecture in at.items():
        try:
            found[length] = clock(lambda to=length, of=architecture: coarse_energies(of, to))
        except NotApplicable as refused:
            return {"refused": str(refused)[:80]}
    shortest, longest = min(found), max(found)
    ratio = {"longest_over_shortest": round(found[longest] / found[shortest], 2)}
    return {**ratio, **{f"seconds_{length}": round(value, 2) for length, value in found.items()}}


def row(name: str, depth: int, exact: int, longest: int, budget: float) -> dict[str, object]:
    """One pattern of kernels: errors at ``exact``, seconds at 2048 and ``longest``."""
    model = qwen2_like(depth=depth)
    near = errors(with_kernels(model, patterns(exact)[name]), exact, budget)
    return {"kernels": name} | near | seconds({at: with_kernels(model, patterns(at)[name]) for at in (2048, longest)})


def published(name: str, longest: int) -> dict[str, object]:
    """One published config: seconds at 2048 and ``longest``."""
    architecture = read_config(dict(load_preset(name).config))
    return {"config": name, "depth": architecture.depth} | seconds(dict.fromkeys((2048, longest), architecture))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=24)
    parser.add_argument("--exact", type=int, default=768)
    parser.add_argument("--longest", type=int, default=1_000_000)
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--only", nargs="*", default=[*patterns(1024), *PUBLISHED])
    options = parser.parse_args()
    coarse_energies(qwen2_like(depth=1), 2048)  # imports and tables
    kernels = [name for name in options.only if name not in PUBLISHED]
    rows = [row(name, options.depth, options.exact, options.longest, options.budget) for name in kernels]
    rows += [published(name, options.longest) for name in PUBLISHED if name in options.only]
    print(json.dumps({"depth": options.depth, "exact_at": options.exact, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
