"""The birth law over long texts: tokens by frequency, positions in groups, at a cost that does not depend on length."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float64, Int64

from catenary.architecture import Architecture, Attention, Causal, Kernel, Rotary, Window
from catenary.errors import NotApplicable
from catenary.theory.birth import MakeMixer, birth_energies
from catenary.theory.coarse import kernels, reach
from catenary.theory.embedding import embedded
from catenary.theory.mixers import Mixer
from catenary.theory.positions.grid import Grid
from catenary.theory.positions.groups import positions
from catenary.theory.positions.pairs import Matrix
from catenary.theory.positions.places import make_grid
from catenary.theory.repeats.classes import TokenClasses
from catenary.theory.repeats.coarse import CoarseRepeats
from catenary.theory.repeats.law import covered_scores, effective_dims, grouped_mixers, rotation_factors


def long_energies(
    architecture: Architecture, ids: Int64[np.ndarray, " L"], finite_width: bool = True
) -> Float64[np.ndarray, " L"]:
    """``repeated_energies`` at a cost free of the length: each token takes a value by its count and position.

    Tokens enter by how often they occur, not by where their copies are: within .025 dex per class of tokens and .01 at
    the last token of ``repeated_energies`` for Zipf texts of 256 tokens (windows of 64: .055 and .025).

    Args:
        architecture: as for ``repeated_energies``.
        ids: one token per position.
        finite_width: include the 1/d overlap of unrelated tokens.

    Raises:
        NotApplicable: as ``repeated_energies``.
    """
    reached = int(min(reach(architecture), ids.size))
    classes, _ = TokenClasses.of_ids(ids)
    energies = class_energies(architecture, ids.size, classes, finite_width)
    found = np.zeros(ids.size)
    here = np.arange(ids.size - reached, ids.size - 1)
    found[here] = _by_count(energies[:, here], classes, _times(ids)[here], ids.size)
    found[-1] = energies[-1, -1]
    return found


def _times(ids: Int64[np.ndarray, " L"]) -> Int64[np.ndarray, " L"]:
    """How often each position's token occurs."""
    _, inverse, counts = np.unique(ids, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse])


def _by_count(
    energies: Float64[np.ndarray, "classes n"],
    classes: TokenClasses,
    counts: Int64[np.ndarray, " n"],
    length: int,
) -> Float64[np.ndarray, " n"]:
    """Energies of tokens that occur ``counts`` times: log value against log count, straight through the classes."""
    levels, first = np.unique(np.log1p(classes.repeat * (length - 1)), return_index=True)
    logs = np.log(energies[first])
    if levels.size == 1:
        return np.asarray(np.exp(logs[0]))
    x = np.log(counts)
    left = np.clip(np.searchsorted(levels, x, side="right") - 1, 0, levels.size - 2)
    part = (x - levels[left]) / (levels[left + 1] - levels[left])
    at = np.arange(x.size)
    return np.asarray(np.exp((1 - part) * logs[left, at] + part * logs[left + 1, at]))


def class_energies(
    architecture: Architecture, length: int, classes: TokenClasses, finite_width: bool = True
) -> Float64[np.ndarray, "classes L"]:
    r"""\(E\|J_j\|_F^2/d\) of a token of each class at each position of a stationary text.

    The last position holds a token of the last class. O(H M G^3) for M classes and G groups of positions. Derived
    here: ``docs/repeats.md``.
    """
    for kernel in kernels(architecture):
        _check_covered(kernel)
    reached = int(min(reach(architecture), length))
    grid = make_grid(kernels(architecture), reached)
    groups, count = grid.sizes.size, classes.count
    equal = np.kron(np.eye(count), np.ones((groups, groups)))
    start = embedded(architecture, equal, np.tile(grid.sizes, count))
    values = birth_energies(architecture, start, class_mixers(architecture, classes, grid, finite_width))
    energies = np.zeros((count, length))
    for row, value in zip(energies, values.reshape(count, groups), strict=True):
        # At the last position only the last class occurs; the others end at the position before.
        row[length - reached :] = grid.spread(np.append(value[:-1], max(value[-1], value[-2])))
        row[-1] = values[-1]
    return energies


def class_mixers(
    architecture: Architecture, classes: TokenClasses, grid: Grid, finite_width: bool = True
) -> MakeMixer:
    """The mixers of ``architecture`` over classes of tokens on groups of positions; equal branches share one."""
    width = architecture.width
    positions_of = cache(lambda kernel: positions(kernel, grid))

    def group_mixer(attention: Attention, kernel: Kernel, gain: float, own_norm: bool) -> Mixer:
        _check_covered(kernel)
        if attention.sink is not None:
            raise NotApplicable("the law of repeated tokens by frequency does not cover a sink; use method='exact'")
        rotary, dims = attention.rotary, effective_dims(attention, width)
        turning = None if rotary is None else group_rotation(rotary, dims, grid)
        scores = covered_scores(attention, width, finite_width)
        return CoarseRepeats(gain, scores, positions_of(kernel), classes, turning, own_norm)

    return grouped_mixers(architecture, group_mixer)


def _check_covered(kernel: Kernel) -> None:
    """Refuse a kernel that the law by frequency does not cover, before its groups of positions are made."""
    if not isinstance(kernel, Causal | Window):
        raise NotApplicable(
            "the law of repeated tokens by frequency covers the whole past and windows, "
            f"not {type(kernel).__name__} attention"
        )


def group_rotation(rotary: Rotary, head_dim: float, grid: Grid) -> Matrix:
    """Mean of ``rotation`` over pairs of different positions of two groups; over distances about that of the centres.

    1 for a single position with itself.
    """
    length = int(grid.ends[-1])
    factors = rotation_factors(rotary, head_dim, length)
    total = np.concatenate(([0.0], np.cumsum(factors)))
    at = np.arange(length + 1) - 0.5
    distance = np.abs(grid.centres[:, None] - grid.centres)
    half = np.maximum((grid.sizes[:, None] + grid.sizes) / 4, 0.5)
    low, high = np.maximum(distance - half, -0.5), np.minimum(distance + half, length - 0.5)
    mean = (np.interp(high, at, total) - np.interp(low, at, total)) / (high - low)
    for g, size in enumerate(grid.sizes.astype(int)):
        pairs = np.arange(size - 1, 0, -1)
        mean[g, g] = factors[1:size] @ pairs / pairs.sum() if size > 1 else 1.0
    return np.asarray(mean)
