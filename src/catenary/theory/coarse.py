"""The birth law on groups of neighbouring positions: its cost does not depend on the length."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from jaxtyping import Float64

from catenary.architecture import (
    Architecture,
    Attention,
    Kernel,
    Layer,
    Recurrence,
    ShortConvolution,
    StateSpace,
    Window,
)
from catenary.theory.birth import birth_energies, mixers
from catenary.theory.embedding import Start, embedded
from catenary.theory.positions.grid import TAIL, Grid, group_positions, make_grid
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
    grid = grid or make_grid(kernels(architecture), reached, tail=TAIL + convolved(architecture))
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
    """How many positions the last one depends on: 1 + sum of (w - 1) over layers of windows, else infinity.

    A layer that mixes by a convolution alone has its taps for w; one without any mixing does not count.
    """
    return float(1 + sum(max((_width(mix) - 1 for mix in mixing(layer)), default=0) for layer in architecture.layers))


def convolved(architecture: Architecture) -> int:
    """How many positions behind the last one its convolutions reach, one after the other."""
    taps = (max((mix.taps - 1 for mix in mixing(layer) if isinstance(mix, Convolved)), default=0)
            for layer in architecture.layers)  # fmt: skip
    return sum(taps)


def mixing(layer: Layer) -> tuple[Attention | Recurrence, ...]:
    """All that mixes positions in a layer."""
    return (*layer.attentions, *layer.recurrences)


Convolved = ShortConvolution | StateSpace
"""What has taps."""


def _width(mix: Attention | Recurrence) -> float:
    """How many positions a query sees in one layer."""
    if isinstance(mix, ShortConvolution):
        return mix.taps
    if not isinstance(mix, Attention):
        return np.inf
    return max(group.kernel.width if isinstance(group.kernel, Window) else np.inf for group in mix.groups)


def kernels(architecture: Architecture) -> frozenset[Kernel]:
    """The mean attention kernels of all head groups."""
    return frozenset(
        group.kernel for layer in architecture.layers for mix in layer.attentions for group in mix.groups
    )
