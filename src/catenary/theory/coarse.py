"""The birth law on groups of neighbouring positions: its cost does not depend on the length."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture, Kernel, Window
from catenary.theory.birth import birth_energies, mixers
from catenary.theory.embedding import Start, embedded
from catenary.theory.positions.grid import Grid, group_positions, make_grid
from catenary.theory.positions.groups import Groups, positions
from catenary.theory.positions.portions import merged

__all__ = ["Groups", "coarse_energies", "group_positions"]


def coarse_energies(
    architecture: Architecture,
    length: int,
    repeat_probability: float = 0.0,
    coupling: str = "strong",
    finite_width: bool = True,
    grid: Grid | None = None,
) -> Float64[np.ndarray, " L"]:
    """``birth_energies`` on groups, spread to every position.

    Tokens enter only through the probability that two of them are equal; ids need the exact recursion. Where windows
    do not reach the last position in as many steps as there are layers, the value is exactly 0. Derived here.

    Args:
        architecture: as for ``birth_energies``.
        length: L >= 2.
        repeat_probability: p2, the probability that two different positions hold the same id.
        coupling: a name in ``COUPLINGS``.
        finite_width: include the 1/d overlap of unrelated tokens.
        grid: other groups than those of ``make_grid``.
    """
    reached = int(min(reach(architecture), length))
    grid = grid or make_grid(kernels(architecture), reached)
    start = coarse_start(architecture, grid, repeat_probability)
    positions_of = cache(lambda kernel: positions(kernel, grid))
    values = birth_energies(architecture, start, mixers(architecture, positions_of, coupling, finite_width, merged))
    return np.concatenate((np.zeros(length - reached), grid.spread(values)))


def coarse_start(architecture: Architecture, grid: Grid, repeat_probability: float = 0.0) -> Start:
    """The embedded tokens on groups, any two different positions holding one id with ``repeat_probability``."""
    equal = np.full((grid.sizes.size,) * 2, repeat_probability)
    single = np.flatnonzero(grid.sizes == 1)
    equal[single, single] = 1.0
    return _with_near(embedded(architecture, equal, grid.sizes), grid)


def _with_near(start: Start, grid: Grid) -> Start:
    """The start with pairs at small distances: those of two different tokens of one group."""
    if grid.lags.size == 0:
        return start
    matrix = start.stream.matrix
    different = np.where(grid.sizes > 1, matrix.diagonal(), np.roll(matrix, 1, axis=1).diagonal())
    return replace(start, stream=replace(start.stream, near=grid.near(matrix, different)))


def reach(architecture: Architecture) -> float:
    """How many positions the last one depends on: 1 + sum of (w - 1) over layers of windows, else infinity."""
    widths = [
        max(group.kernel.width if isinstance(group.kernel, Window) else np.inf for group in attention.groups)
        for layer in architecture.layers
        for attention in layer.attentions
    ]
    return float(1 + sum(width - 1 for width in widths))


def kernels(architecture: Architecture) -> frozenset[Kernel]:
    """The mean attention kernels of all head groups."""
    return frozenset(
        group.kernel for layer in architecture.layers for mix in layer.attentions for group in mix.groups
    )
