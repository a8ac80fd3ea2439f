"""Groups of alike positions as the recursion sees them: averages of pairs at a cost that does not depend on L."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Float64

from catenary.architecture import Alibi, Kernel, Window
from catenary.theory.positions.bands import Band
from catenary.theory.positions.grid import Grid
from catenary.theory.positions.group_rows import Excess, GroupRows, Shared, rows
from catenary.theory.positions.lags import FROM_ENDS, Convolution, decaying, sliding
from catenary.theory.positions.pairs import Half, Matrix, Mean, Near, Pairs, Vector
from catenary.theory.positions.products import Product

OUTSIDE = 3.0
"""Distances up to this many sizes of a group are known apart in it; beyond, groups are near enough to each other."""


def positions(kernel: Kernel, grid: Grid, tilt: float = 0.0) -> Groups:
    r"""The averages of one kernel on a grid that was made for it (among others).

    Where all kernels decay, gradients may be known times \(e^{t(L-q)}\) per token, t = ``tilt`` below all slopes:
    adjoints are then of these. They hardly change with position, while gradients fall by e per memory or faster.
    """
    forward = Side(rows(kernel, grid), _convolution(kernel, grid))
    backward = forward if tilt == 0 else Side(rows(kernel, grid, tilt), _convolution(kernel, grid, tilt), tilt)
    return Groups(grid, forward, backward)


def _convolution(kernel: Kernel, grid: Grid, tilt: float = 0.0) -> Convolution | None:
    match kernel:
        case _ if grid.lags.size == 0:
            return None
        case Alibi(slope):
            return decaying(slope, grid.lags, tilt)
        case Window(width):
            return sliding(width, grid.lags)
    return None


@final
@dataclass(frozen=True, eq=False)
class Side:
    """What one direction of attention is made of: its rows, and where groups are wide its averages by distance."""

    rows: GroupRows
    steep: Convolution | None = None
    tilt: float = 0.0

    def slower(self, grid: Grid) -> GroupRows:
        """How both tokens of a pair move on together: as they do apart, but for a decay at twice its slope."""
        if self.steep is None or self.steep.slope is None:
            return self.rows
        return rows(Alibi(2 * self.steep.slope), grid)

    def touch(self, grid: Grid) -> Matrix:
        """Attention that a token of group g gets from one other query of group Q."""
        mass, sizes = self.rows.mass, grid.sizes
        touch = (mass / sizes).T
        others = np.maximum(sizes - 1, 1)
        np.fill_diagonal(touch, (mass.diagonal() - self.rows.own * (sizes > 1)) / others)
        return np.ascontiguousarray(touch)

    def wide(self, grid: Grid) -> Bool[np.ndarray, "n lags"]:
        """The groups, and the distances there, that take pairs by distance."""
        steep = self.steep
        if steep is None:
            return np.zeros((grid.sizes.size, grid.lags.size), dtype=bool)
        first, last = grid.bulk
        if steep.slope is not None:
            first, last = FROM_ENDS / steep.slope, grid.length - FROM_ENDS / steep.slope
        within = (grid.starts >= first) & (grid.ends <= last) & (grid.sizes > max(steep.above, 1.0))
        return np.asarray(within[:, None] & (grid.lags <= OUTSIDE * grid.sizes[:, None]))


@final
@dataclass(frozen=True, eq=False)
class Way:
    """One direction of attention: what a group takes from another, how a pair moves on, where distances are known."""

    mass: Product
    drift: Product
    touch: Matrix
    wide: Bool[np.ndarray, "n lags"]
    steep: Convolution | None


@final
@dataclass(frozen=True, eq=False)
class Groups:
    r"""One kernel's averages over groups of consecutive positions, O(G^3) in the number of groups.

    With W the attention between groups, the mean of different members is \(WXW^\top\); what a token has more with
    itself than with another member is shared out apart. Exact where every group is a single position; otherwise the
    relative error per average is of second order in the size of groups over the scale on which pairs change. Where
    groups are wider than ALiBi's memory, pairs are taken by their distance.
    """

    grid: Grid
    forward: Side
    backward: Side

    @property
    def sizes(self) -> Vector:
        """How many positions each group holds."""
        return self.grid.sizes

    @property
    def counts(self) -> Vector:
        """How many tokens each query sees."""
        return self.forward.rows.counts

    def average(self, x: Pairs) -> Mean:
        """X A^T and A X A^T."""
        x, way = self._consistent(x), self._forward
        excess = Excess.of(x, self.sizes)
        half = way.mass.times(x.matrix).T
        full = _with(way.mass.times(half), self.forward.rows.shared(excess))
        half += way.touch * excess.several[:, None]
        return Mean(self._near_half(x, half, way), self._near(x, full, way))

    def adjoint(self, x: Pairs) -> Mean:
        """A^T X and A^T X A."""
        x, way = self._consistent(x), self._backward
        excess = Excess.of(x, self.sizes)
        half = way.mass.times(x.matrix)
        full = _with(way.mass.times(half.T), self.backward.rows.sent(excess))
        half += way.touch * excess.several
        return Mean(self._near_half(x, half, way), self._near(x, full, way))

    def average_centred(self, x: Pairs, b: Half) -> Pairs:
        """A X A^T - A b - (A b)^T."""
        return self._centred(self._consistent(x), b, self._forward, self.forward.rows.shared)

    def adjoint_centred(self, x: Pairs, b: Half) -> Pairs:
        """A^T X A - b A - (b A)^T."""
        return self._centred(self._consistent(x), b, self._backward, self.backward.rows.sent)

    def _centred(self, x: Pairs, b: Half, way: Way, shared: Callable[[Excess], Shared]) -> Pairs:
        half = way.mass.times(x.matrix)
        half *= 0.5
        # X is symmetric: on either way this is W + W^T, W the product of the mass with one transpose or the other.
        taken = self._band.half(b)
        half -= taken.T if way is self._forward else taken
        full = _with(_symmetric(way.mass.times(half.T)), shared(Excess.of(x, self.sizes)))
        return self._near(x, full, way, b)

    def _consistent(self, x: Pairs) -> Pairs:
        """x with its means over near wide groups taken from its values by distance."""
        return replace(x, matrix=self._band.pairs(x))

    @property
    def _band(self) -> Band:
        return self.grid.band

    @cached_property
    def _forward(self) -> Way:
        side = self.forward
        return Way(side.rows.paid, side.slower(self.grid).paid, side.touch(self.grid), side.wide(self.grid), side.steep)

    @cached_property
    def _backward(self) -> Way:
        side, grid = self.backward, self.grid
        return Way(side.rows.received, side.slower(grid).received, side.touch(grid), side.wide(grid), side.steep)

    def _near(self, x: Pairs, full: Pairs, way: Way, b: Half | None = None) -> Pairs:
        """``full`` with its values at small distances; in wide groups also a token's own and its group's mean."""
        if self.grid.lags.size == 0:
            return full
        near = self.grid.near(full.matrix, full.same)
        if way.steep is None:
            return replace(full, near=near)
        values = _from_zero(x)
        taken = way.drift.times(values @ way.steep.both.T)
        if way.steep.both_moved is not None:
            taken += _moved(way, values @ way.steep.both_moved.T)
        if b is not None:
            taken -= b.near @ way.steep.back.T + _moved(way, b.near @ way.steep.back_moved.T)
        same = np.where(way.wide[:, 0], taken[:, 0], full.same)
        # What a token has more with itself, the other members of its group have less.
        np.einsum("ii->i", full.matrix)[...] -= (same - full.same) / np.maximum(self.sizes - 1, 1)
        return Pairs(full.matrix, same, np.where(way.wide, taken[:, 1:], near))

    def _near_half(self, x: Pairs, half: Matrix, way: Way) -> Half:
        """``half`` with its values at small distances."""
        if self.grid.lags.size == 0:
            return Half(half)
        near = self.grid.near_signed(half)
        if way.steep is not None:
            values = _from_zero(x)
            taken = values @ way.steep.half.T + _moved(way, values @ way.steep.half_moved.T)
            wide = np.column_stack((way.wide[:, ::-1], way.wide[:, 0], way.wide))
            near = np.where(wide, taken, near)
        return Half(half, near)


def _moved(way: Way, near: Near) -> Near:
    """How values change where the middle of a pair moves on, per unit of distance."""
    assert way.steep is not None
    return np.asarray((way.drift.times(near) - near) / way.steep.unit)


def _with(different: Matrix, shared: Shared) -> Pairs:
    same = different.diagonal() + shared.same
    different += shared.different
    return Pairs(different, same)


def _symmetric(w: Matrix) -> Matrix:
    return np.asarray(w + w.T)


def _from_zero(x: Pairs) -> Float64[np.ndarray, "n m"]:
    """Values at distance 0 and the lags."""
    return np.column_stack((x.same, x.near))
