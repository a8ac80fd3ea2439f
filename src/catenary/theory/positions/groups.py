"""Groups of alike positions as the recursion sees them: averages of pairs at a cost that does not depend on L."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Float64

from catenary.architecture import Alibi, Kernel
from catenary.theory.positions.grid import STEEP_BACKWARD, STEEP_FORWARD, Grid
from catenary.theory.positions.group_rows import GroupRows, Shared, rows
from catenary.theory.positions.lags import Convolution
from catenary.theory.positions.pairs import Half, Matrix, Mean, Near, Pairs, Vector


def positions(kernel: Kernel, grid: Grid) -> Groups:
    """The averages of one kernel on a grid that was made for it (among others)."""
    steep = Convolution(kernel.slope, grid.lags) if grid.lags.size and isinstance(kernel, Alibi) else None
    return Groups(grid, rows(kernel, grid), steep)


@final
@dataclass(frozen=True, eq=False)
class Way:
    """One direction of attention: what a group takes from another, and the groups that take pairs by distance."""

    mass: Matrix
    wide: Bool[np.ndarray, " n"]


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
        excess = x.same - x.matrix.diagonal()
        half = x.matrix @ self.rows.mass.T
        full = _with(self.rows.mass @ half, self.rows.shared(excess))
        half += self._touch * excess[:, None]
        return Mean(self._near_half(x, half, self._forward), self._near(x, full, self._forward))

    def adjoint(self, x: Pairs) -> Mean:
        """A^T X and A^T X A."""
        excess = x.same - x.matrix.diagonal()
        half = self._sent @ x.matrix
        full = _with(half @ self._sent.T, self.rows.sent(excess))
        half += self._touch * excess
        return Mean(self._near_half(x, half, self._backward), self._near(x, full, self._backward))

    def average_centred(self, x: Pairs, b: Half) -> Pairs:
        """A X A^T - A b - (A b)^T."""
        half = 0.5 * (x.matrix @ self.rows.mass.T) - b.matrix
        full = _with(_symmetric(self.rows.mass @ half), self.rows.shared(x.same - x.matrix.diagonal()))
        return self._near(x, full, self._forward, b)

    def adjoint_centred(self, x: Pairs, b: Half) -> Pairs:
        """A^T X A - b A - (b A)^T."""
        half = 0.5 * (self._sent @ x.matrix) - b.matrix
        full = _with(_symmetric(half @ self._sent.T), self.rows.sent(x.same - x.matrix.diagonal()))
        return self._near(x, full, self._backward, b)

    @cached_property
    def _sent(self) -> Matrix:
        """Attention that a token of group g gets from the queries of group Q."""
        return np.ascontiguousarray((self.rows.mass * self.sizes[:, None] / self.sizes).T)

    @cached_property
    def _touch(self) -> Matrix:
        """Attention that a token of group g gets from one other query of group Q."""
        touch = (self.rows.mass / self.sizes).T
        others = np.maximum(self.sizes - 1, 1)
        np.fill_diagonal(touch, (self.rows.mass.diagonal() - self.rows.own * (self.sizes > 1)) / others)
        return np.ascontiguousarray(touch)

    @cached_property
    def _forward(self) -> Way:
        return Way(self.rows.mass, self._wide(STEEP_FORWARD))

    @cached_property
    def _backward(self) -> Way:
        return Way(self._sent, self._wide(STEEP_BACKWARD))

    def _wide(self, limit: float) -> Bool[np.ndarray, " n"]:
        slope = 0.0 if self.steep is None else self.steep.slope
        return np.asarray((self.sizes > 1) & (self.sizes * slope > limit))

    def _near(self, x: Pairs, full: Pairs, way: Way, b: Half | None = None) -> Pairs:
        """``full`` with its values at small distances; in wide groups also a token's own and its group's mean."""
        if self.grid.lags.size == 0:
            return full
        near = self.grid.near(full.matrix, full.same)
        if self.steep is None:
            return replace(full, near=near)
        taken = way.mass @ (_from_zero(x) @ self.steep.both.T)
        if b is not None:
            taken -= _halfway(way.mass, b.near @ self.steep.back.T)
        same = np.where(way.wide, taken[:, 0], full.same)
        # What a token has more with itself, the other members of its group have less.
        np.einsum("ii->i", full.matrix)[...] -= (same - full.same) / np.maximum(self.sizes - 1, 1)
        return Pairs(full.matrix, same, np.where(way.wide[:, None], taken[:, 1:], near))

    def _near_half(self, x: Pairs, half: Matrix, way: Way) -> Half:
        """``half`` with its values at small distances."""
        if self.grid.lags.size == 0:
            return Half(half)
        near = self.grid.near_signed(half)
        if self.steep is not None:
            taken = _halfway(way.mass, _from_zero(x) @ self.steep.one.T)
            near = np.where(way.wide[:, None], taken, near)
        return Half(half, near)


def _with(different: Matrix, shared: Shared) -> Pairs:
    same = different.diagonal() + shared.same
    different += shared.different
    return Pairs(different, same)


def _symmetric(w: Matrix) -> Matrix:
    return np.asarray(w + w.T)


def _from_zero(x: Pairs) -> Float64[np.ndarray, "n m"]:
    """Values at distance 0 and the lags."""
    return np.column_stack((x.same, x.near))


def _halfway(mass: Matrix, near: Near) -> Near:
    """Only one of two positions moved: their middle goes half of the way."""
    return np.asarray(0.5 * (near + mass @ near))
