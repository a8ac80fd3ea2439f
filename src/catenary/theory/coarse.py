"""The birth law on groups of neighbouring positions: its cost does not depend on the length."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from jaxtyping import Float64

from catenary.architecture import (
    Alibi,
    Architecture,
    Attention,
    Chunk,
    GatedRecurrence,
    Kernel,
    Layer,
    LinearAttention,
    Recurrence,
    SelectiveStateSpace,
    ShortConvolution,
    StateSpace,
    Window,
)
from catenary.theory.birth import birth_energies, mixers
from catenary.theory.chunks import chunked_energies, told_chunk
from catenary.theory.cost import affordable_groups, check_coarse_cost, has_random_rates
from catenary.theory.embedding import Start, embedded
from catenary.theory.fading import faded
from catenary.theory.positions.chunk_nodes import ChunkNodes
from catenary.theory.positions.grid import Grid
from catenary.theory.positions.groups import Groups, positions
from catenary.theory.positions.places import TAIL, group_positions, make_grid
from catenary.theory.positions.portions import merged
from catenary.theory.recurrent.mixer import decays
from catenary.theory.ripple import ripple

__all__ = ["Groups", "coarse_energies", "group_positions"]

TOLD, SETTLED = 12.0, 4.0
"""Memories of the gentlest slope behind the last position that are told apart, and so many more to be rid of the start.
The energy falls by 1e-7 in the first six, of 8 slopes 2^-1 to 2^-8 and 24 layers."""

TILT = 0.9
"""Share of the gentlest slope: energies fall as its square, but for powers of the distance. With all of it the kernel
would not decay, and geometric sums lose digits."""

NEARING = 0.1
"""Largest size of a group over its distance from the end, beside state spaces: their states show there."""

GENTLE = 0.02
"""Slopes of a gated recurrence that groups resolve. With none norms moved by .01 dex behind windows, with
all by .005."""

SETTLING = 8, 1.3
"""Single positions and growth of groups at a start that only has to be got rid of."""


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
    do not reach the last position in as many steps as there are layers, the value is exactly 0. Where all heads decay
    with the distance, positions more than ``TOLD`` memories of the gentlest slope back continue the energies behind
    them (``faded``). Chunks beside the whole past are known at some positions of some chunks (``chunked_energies``).
    Derived here.

    Args:
        architecture: as for ``birth_energies``.
        length: L >= 2.
        repeat_probability: p2, the probability that two different positions hold the same id.
        coupling: a name in ``COUPLINGS``.
        finite_width: include the 1/d overlap of unrelated tokens.
        grid: other groups than those of ``make_grid``.
    """
    held = length if grid is not None else int(min(length, remembered(architecture)))
    if held < length:
        head, ratio = SETTLING
        grid = make_grid(kernels(architecture), held, head=head, ratio=ratio, tilted=True)
        near = coarse_energies(architecture, held, repeat_probability, coupling, finite_width, grid)
        layers = sum(bool(layer.attentions) for layer in architecture.layers)
        return faded(near, length, int(TOLD * memory(architecture)), memory(architecture), layers)
    chunk = told_chunk(architecture, kernels(architecture), length) if grid is None else None
    if chunk is not None and kernels(architecture) == {Chunk(chunk)}:
        # Nothing leaves a chunk: the last one is a sequence of its own.
        rest = (length - 1) % chunk + 1
        near = coarse_energies(architecture, rest, repeat_probability, coupling, finite_width)
        return np.append(np.zeros(length - rest), near)
    if chunk is not None:
        nodes = ChunkNodes.over(length, chunk)
        return chunked_energies(architecture, nodes, repeat_probability, coupling, finite_width)
    reached = int(min(reach(architecture), length))
    carried = carried_by_windows(architecture)
    grid = grid or _grid(architecture, reached, carried or None)
    check_coarse_cost(architecture, grid.sizes.size, length)
    start = coarse_start(architecture, grid, repeat_probability)
    leaning = tilt(architecture, grid.length)
    positions_of = cache(lambda kernel: positions(kernel, grid, leaning))
    values = birth_energies(architecture, start, mixers(architecture, positions_of, coupling, finite_width, merged))
    energies = grid.spread(values) * ripple(architecture, grid)
    if leaning > 0:
        energies *= np.exp(-2 * leaning * np.arange(grid.length - 1.0, -1.0, -1.0))
    return np.concatenate((np.zeros(length - reached), energies))


def _grid(architecture: Architecture, length: int, carried: float | None) -> Grid:
    nearing = NEARING if has_random_rates(architecture) else np.inf
    tail, tilted = TAIL + convolved(architecture), tilt(architecture, length) > 0
    most = affordable_groups(architecture)
    return make_grid(kernels(architecture), length, carried, tail=tail, nearing=nearing, tilted=tilted, affordable=most)


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


def memory(architecture: Architecture) -> float:
    """The longest memory 1/m in positions where ALiBi's heads alone mix positions, else infinity."""
    slopes = {kernel.slope if isinstance(kernel, Alibi) else 0.0 for kernel in kernels(architecture)}
    alone = not any(layer.recurrences for layer in architecture.layers)
    return 1 / min(slopes) if alone and slopes and min(slopes) > 0 else np.inf


def tilt(architecture: Architecture, length: int) -> float:
    r"""Gradients are known times \(e^{t(L-j)}\) per token; t is 0 but where all heads decay."""
    longest = memory(architecture)
    return TILT / longest if length > longest else 0.0


def remembered(architecture: Architecture) -> float:
    """How many of the last positions are computed; see ``TOLD`` and ``SETTLED``."""
    return float(np.ceil((TOLD + SETTLED) * memory(architecture)))


def carried_by_windows(architecture: Architecture) -> float:
    """How far behind the last position windows reach, one after the other: the sum of w - 1 over layers that have some.

    Other kernels of these layers reach farther, but smoothly.
    """
    total = 0.0
    for layer in architecture.layers:
        groups = [group.kernel for attention in layer.attentions for group in attention.groups]
        total += max((kernel.width - 1 for kernel in groups if isinstance(kernel, Window)), default=0)
    return total


def convolved(architecture: Architecture) -> int:
    """How many positions behind the last one its convolutions reach, one after the other."""
    taps = (max((mix.taps - 1 for mix in mixing(layer) if isinstance(mix, Convolved)), default=0)
            for layer in architecture.layers)  # fmt: skip
    return sum(taps)


def mixing(layer: Layer) -> tuple[Attention | Recurrence, ...]:
    """All that mixes positions in a layer."""
    return (*layer.attentions, *layer.recurrences)


Convolved = ShortConvolution | StateSpace | GatedRecurrence | SelectiveStateSpace
"""What has taps."""


def _width(mix: Attention | Recurrence) -> float:
    """How many positions a query sees in one layer."""
    if isinstance(mix, ShortConvolution):
        return mix.taps
    if not isinstance(mix, Attention):
        return np.inf
    return max(group.kernel.width if isinstance(group.kernel, Window) else np.inf for group in mix.groups)


def kernels(architecture: Architecture) -> frozenset[Kernel]:
    """The mean kernels that groups of positions must resolve: of head groups, of linear attention, of long memories.

    Of a gated recurrence those of slopes below ``GENTLE``; of a state space none: what passes its states by is the
    larger part, and states average over groups of any size well enough (``docs/recurrent.md``, Any length).
    """
    attention = {group.kernel for layer in architecture.layers for mix in layer.attentions for group in mix.groups}
    mixes = {mix for layer in architecture.layers for mix in layer.recurrences if not isinstance(mix, StateSpace)}
    return frozenset(attention).union(*(_resolved(mix, architecture.width) for mix in mixes))


def _resolved(mix: Recurrence, width: int) -> tuple[Alibi, ...]:
    steepest = np.inf if isinstance(mix, LinearAttention) else GENTLE
    return tuple(kernel for kernel in decays(mix, width) if kernel.slope < steepest)
