r"""Mixing strengths at birth, from the birth law: what each branch adds to the stream, against what was there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture, Attention
from catenary.strengths import Branch, Strength, Strengths
from catenary.theory.attention.mixer import PositionsOf
from catenary.theory.birth import MakeMixer, mixers, singles
from catenary.theory.chunks import chunked_positions, chunked_start, told_chunk
from catenary.theory.coarse import coarse_start, kernels
from catenary.theory.embedding import Start, embedded
from catenary.theory.positions.chunk_nodes import ChunkNodes
from catenary.theory.positions.groups import positions
from catenary.theory.positions.pairs import Vector
from catenary.theory.positions.places import make_grid
from catenary.theory.positions.portions import PortionsOf, each, merged
from catenary.theory.steps import Move, Part

EXACT_UP_TO = 256
"""Every position by itself up to this length, groups of positions above."""

HEAD, TAIL, RATIO = 24, 2, 1.1
"""A coarser grid than the profile's: strengths vary slowly, and stay within 1e-3 of those on the profile's grid."""

SLOPES = 4
"""ALiBi slopes that stand for all: within 6e-4 of ten of them for BLOOM-560m."""


def predicted_strengths(
    architecture: Architecture, length: int, repeat_probability: float = 0.0, coupling: str = "strong"
) -> Strengths:
    r"""Strengths of the untrained network: mean over positions of \(\sqrt{A_i}/(\sqrt{X_i}+\sqrt{A_i})\).

    \(X_i = E\|x_i\|^2/d\) is the stream that a branch is added to (what is kept of it), \(A_i = E\|a_i\|^2/d\) the
    branch behind its own norm and scale, both from the forward recursion of the birth law. The expected ratio of norms
    is the ratio of root mean squares up to the relative variance of the norms, of order 1/d and 1/(heads). No parameter
    is fitted. Derived here.

    Args:
        architecture: what the config says.
        length: L >= 2.
        repeat_probability: in [0, 1), the chance that two positions hold the same token.
        coupling: a name in ``COUPLINGS``.

    Raises:
        NotApplicable: an architecture outside the birth law.
    """
    plan = _plan(architecture, length, repeat_probability)
    mixer_of = mixers(architecture, plan.positions_of, coupling, portions_of=plan.portions_of)
    rows = tuple(_rows(architecture, plan, mixer_of))
    return Strengths(
        "predicted, random" if repeat_probability == 0 else "predicted",
        length,
        rows,
        provenance={
            "theory": "birth",
            "architecture": architecture.name,
            "length": length,
            "repeat_probability": repeat_probability,
            "coupling": coupling,
        },
    )


@dataclass(frozen=True, eq=False)
class _Plan:
    """What the recursion runs on: single positions, groups or known ones, and how many each holds or stands for."""

    start: Start
    sizes: Float64[np.ndarray, " n"]
    positions_of: PositionsOf
    portions_of: PortionsOf


def _plan(architecture: Architecture, length: int, repeat_probability: float) -> _Plan:
    if length <= EXACT_UP_TO:
        equal = np.full((length, length), repeat_probability)
        np.fill_diagonal(equal, 1.0)
        return _Plan(embedded(architecture, equal), np.ones(length), singles(length), each)
    chunk = told_chunk(architecture, kernels(architecture), length)
    if chunk is not None:
        nodes = ChunkNodes.over(length, chunk)
        start = chunked_start(architecture, nodes, repeat_probability)
        return _Plan(start, nodes.represented, chunked_positions(nodes), each)
    grid = make_grid(kernels(architecture), length, head=HEAD, tail=TAIL, ratio=RATIO)
    start = coarse_start(architecture, grid, repeat_probability)
    return _Plan(start, grid.sizes, cache(lambda kernel: positions(kernel, grid)), partial(merged, most=SLOPES))


def _rows(architecture: Architecture, plan: _Plan, mixer_of: MakeMixer) -> Iterator[Strength]:
    stream = plan.start.stream
    for index, layer in enumerate(architecture.layers):
        shown = bool(layer.attentions)
        for step in layer.steps:
            parts = tuple(Part(mixer_of(b), b.before, b.after, b.scale**2) for b in step.branches)
            moved = Move(parts, step.keep**2, step.before, step.after).forward(stream)
            for branch, added in zip(step.branches, moved.added, strict=True):
                kind: Branch = "attention" if isinstance(branch.mix, Attention) else "feed-forward"
                if shown:
                    yield _strength(index, kind, moved.kept, added, plan.sizes)
            stream = moved.stream


def _strength(layer: int, branch: Branch, kept: Vector, added: Vector, sizes: Float64[np.ndarray, " n"]) -> Strength:
    def mean(values: Vector) -> float:
        return float(np.average(values, weights=sizes))

    roots = np.sqrt(added) / (np.sqrt(kept) + np.sqrt(added))
    return Strength(
        layer, branch, mean(roots), mean(added / (kept + added)), mean(kept) ** 0.5, mean(added) ** 0.5
    )
