"""Groups of alike positions as the recursion sees them: averages of pairs at a cost that does not depend on L."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from catenary.architecture import Kernel
from catenary.theory.grid import Grid
from catenary.theory.group_rows import GroupRows, Shared, rows
from catenary.theory.pairs import Matrix, Mean, Pairs, Vector


def positions(kernel: Kernel, grid: Grid) -> Groups:
    """The averages of one kernel on a grid that was made for it (among others)."""
    return Groups(grid, rows(kernel, grid))


@final
@dataclass(frozen=True, eq=False)
class Groups:
    r"""One kernel's averages over groups of consecutive positions, O(G^3) in the number of groups.

    With W the attention between groups, the mean of different members is \(WXW^\top\); what a token has more with
    itself than with another member is shared out apart. Exact where every group is a single position; otherwise the
    relative error per average is of second order in the size of groups over the scale on which pairs change.
    """

    grid: Grid
    rows: GroupRows

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
        return Mean(half, full)

    def adjoint(self, x: Pairs) -> Mean:
        """A^T X and A^T X A."""
        excess = x.same - x.matrix.diagonal()
        half = self._sent @ x.matrix
        full = _with(half @ self._sent.T, self.rows.sent(excess))
        half += self._touch * excess
        return Mean(half, full)

    def average_centred(self, x: Pairs, b: Matrix) -> Pairs:
        """A X A^T - A b - (A b)^T."""
        half = 0.5 * (x.matrix @ self.rows.mass.T) - b
        return _with(_symmetric(self.rows.mass @ half), self.rows.shared(x.same - x.matrix.diagonal()))

    def adjoint_centred(self, x: Pairs, b: Matrix) -> Pairs:
        """A^T X A - b A - (b A)^T."""
        half = 0.5 * (self._sent @ x.matrix) - b
        return _with(_symmetric(half @ self._sent.T), self.rows.sent(x.same - x.matrix.diagonal()))

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


def _with(different: Matrix, shared: Shared) -> Pairs:
    same = different.diagonal() + shared.same
    different += shared.different
    return Pairs(different, same)


def _symmetric(w: Matrix) -> Matrix:
    return w + w.T
