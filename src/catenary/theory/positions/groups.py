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
from catenary.theory.positions.group_rows import GroupRows, Shared, rows
from catenary.theory.positions.lags import FROM_ENDS, Convolution, decaying, sliding
from catenary.theory.positions.pairs import Half, Matrix, Mean, Near, Pairs, Vector
from catenary.theory.positions.products import Product

OUTSIDE = 3.0
"""Distances up to this many sizes of a group are known apart in it; beyond, groups are near enough to each other."""


def positions(kernel: Kernel, grid: Grid) -> Groups:
    """The averages of one kernel on a grid that was made for it (among others)."""
    return Groups(grid, rows(kernel, grid), _convolution(kernel, grid))


def _convolution(kernel: Kernel, grid: Grid) -> Convolution | None:
    match kernel:
        case _ if grid.lags.size == 0:
            return None
        case Alibi(slope):
            return decaying(slope, grid.lags)
        case Window(width):
            return sliding(width, grid.lags)
    return None


@final
@dataclass(frozen=True, eq=False)
class Way:
    """One direction of attention: what a group takes from another, and how a pair moves on."""

    mass: Product
    drift: Product


@final
@dataclass(frozen=True, eq=False)
class Groups:
    r"""One kernel's averages over groups of consecutive positions, O(G^3) in the number of groups.

    With W the attention between groups, the mean of different members is \(WXW^\top\); what a token has more with
    itself than with another member is shared out apart. Exact where every group is a single position; otherwise the
    relative error per average is of second order in the size of groups over the scale on which pairs change. Where
    groups are wider than ALiBi's memory, ``steep`` takes pairs by their distance.
    """

    grid: Grid
    rows: GroupRows
    steep: Convolution | None = None

    @property
    def sizes(self) -> Vector:
        """How many positions each group holds."""
        return self.grid.sizes

    @property
    def counts(self) -> Vector:
        """How many tokens each query sees."""
        return self.rows.counts

    def average(self, x: Pairs) -> Mean:
        """X A^T and A X A^T."""
        x, way = self._consistent(x), self._forward
        excess = x.same - x.matrix.diagonal()
        half = way.mass.times(x.matrix).T
        full = _with(way.mass.times(half), self.rows.shared(excess))
        half += self._touch * excess[:, None]
        return Mean(self._near_half(x, half, way), self._near(x, full, way))

    def adjoint(self, x: Pairs) -> Mean:
        """A^T X and A^T X A."""
        x, way = self._consistent(x), self._backward
        excess = x.same - x.matrix.diagonal()
        half = way.mass.times(x.matrix)
        full = _with(way.mass.times(half.T), self.rows.sent(excess))
        half += self._touch * excess
        return Mean(self._near_half(x, half, way), self._near(x, full, way))

    def average_centred(self, x: Pairs, b: Half) -> Pairs:
        """A X A^T - A b - (A b)^T."""
        return self._centred(self._consistent(x), b, self._forward, self.rows.shared)

    def adjoint_centred(self, x: Pairs, b: Half) -> Pairs:
        """A^T X A - b A - (b A)^T."""
        return self._centred(self._consistent(x), b, self._backward, self.rows.sent)

    def _centred(self, x: Pairs, b: Half, way: Way, shared: Callable[[Vector], Shared]) -> Pairs:
        half = way.mass.times(x.matrix)
        half *= 0.5
        # X is symmetric: on either way this is W + W^T, W the product of the mass with one transpose or the other.
        taken = self._band.half(b)
        half -= taken.T if way is self._forward else taken
        full = _with(_symmetric(way.mass.times(half.T)), shared(x.same - x.matrix.diagonal()))
        return self._near(x, full, way, b)

    def _consistent(self, x: Pairs) -> Pairs:
        """x with its means over near wide groups taken from its values by distance."""
        return replace(x, matrix=self._band.pairs(x))

    @property
    def _band(self) -> Band:
        return self.grid.band

    @cached_property
    def _touch(self) -> Matrix:
        """Attention that a token of group g gets from one other query of group Q."""
        touch = (self.rows.mass / self.sizes).T
        others = np.maximum(self.sizes - 1, 1)
        np.fill_diagonal(touch, (self.rows.mass.diagonal() - self.rows.own * (self.sizes > 1)) / others)
        return np.ascontiguousarray(touch)

    @cached_property
    def _forward(self) -> Way:
        return Way(self.rows.paid, self._slower.paid)

    @cached_property
    def _backward(self) -> Way:
        return Way(self.rows.received, self._slower.received)

    @cached_property
    def _slower(self) -> GroupRows:
        """How both tokens of a pair move on together: as they do apart, but for a decay at twice its slope."""
        if self.steep is None or self.steep.slope is None:
            return self.rows
        return rows(Alibi(2 * self.steep.slope), self.grid)

    @cached_property
    def _wide(self) -> Bool[np.ndarray, "n lags"]:
        """The groups, and the distances there, that take pairs by distance."""
        grid, steep = self.grid, self.steep
        if steep is None:
            return np.zeros((self.sizes.size, grid.lags.size), dtype=bool)
        first, last = grid.bulk
        if steep.slope is not None:
            first, last = FROM_ENDS / steep.slope, grid.length - FROM_ENDS / steep.slope
        within = (grid.starts >= first) & (grid.ends <= last) & (self.sizes > max(steep.above, 1.0))
        return np.asarray(within[:, None] & (grid.lags <= OUTSIDE * self.sizes[:, None]))

    def _near(self, x: Pairs, full: Pairs, way: Way, b: Half | None = None) -> Pairs:
        """``full`` with its values at small distances; in wide groups also a token's own and its group's mean."""
        if self.grid.lags.size == 0:
            return full
        near = self.grid.near(full.matrix, full.same)
        if self.steep is None:
            return replace(full, near=near)
        values = _from_zero(x)
        taken = way.drift.times(values @ self.steep.both.T)
        if self.steep.both_moved is not None:
            taken += self._moved(way, values @ self.steep.both_moved.T)
        if b is not None:
            taken -= b.near @ self.steep.back.T + self._moved(way, b.near @ self.steep.back_moved.T)
        same = np.where(self._wide[:, 0], taken[:, 0], full.same)
        # What a token has more with itself, the other members of its group have less.
        np.einsum("ii->i", full.matrix)[...] -= (same - full.same) / np.maximum(self.sizes - 1, 1)
        return Pairs(full.matrix, same, np.where(self._wide, taken[:, 1:], near))

    def _near_half(self, x: Pairs, half: Matrix, way: Way) -> Half:
        """``half`` with its values at small distances."""
        if self.grid.lags.size == 0:
            return Half(half)
        near = self.grid.near_signed(half)
        if self.steep is not None:
            values = _from_zero(x)
            taken = values @ self.steep.half.T + self._moved(way, values @ self.steep.half_moved.T)
            wide = np.column_stack((self._wide[:, ::-1], self._wide[:, 0], self._wide))
            near = np.where(wide, taken, near)
        return Half(half, near)

    def _moved(self, way: Way, near: Near) -> Near:
        """How values change where the middle of a pair moves on, per unit of distance."""
        assert self.steep is not None
        return np.asarray((way.drift.times(near) - near) / self.steep.unit)


def _with(different: Matrix, shared: Shared) -> Pairs:
    same = different.diagonal() + shared.same
    different += shared.different
    return Pairs(different, same)


def _symmetric(w: Matrix) -> Matrix:
    return np.asarray(w + w.T)


def _from_zero(x: Pairs) -> Float64[np.ndarray, "n m"]:
    """Values at distance 0 and the lags."""
    return np.column_stack((x.same, x.near))
