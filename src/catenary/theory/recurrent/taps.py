r"""A causal convolution with independent taps: pairs of positions, both moved by the same number of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array

from catenary.theory.positions.pairs import Pairs, Vector

Move = Any
"""A sparse matrix: scipy has no types."""


@final
@dataclass(frozen=True, eq=False)
class Taps:
    r"""\((TX)_{ij} = \sum_{k<K} X_{i-k,j-k}\), and its adjoint \((T^*D)_{ij} = \sum_k D_{i+k,j+k}\).

    A channel's kernel has K weights of mean 0 and variance \(\sigma^2\), each independent of the others, so that
    inputs of covariance X give outputs of covariance \(\sigma^2TX\). What is in front of the first token is 0. On
    groups a pair moves by the share of its group that it leaves; exact where every group is a single position.

    Attributes:
        sizes: how many consecutive positions each group holds.
        count: K >= 1, and >= 2 for moves by one.
    """

    sizes: Vector
    count: int

    def earlier(self, x: Pairs) -> Pairs:
        """T of ``x``."""
        if self._single:
            return _shifted(x, range(self.count))
        return self._total(x, self._behind)

    def later(self, x: Pairs) -> Pairs:
        """T* of ``x``."""
        if self._single:
            return _shifted(x, range(0, -self.count, -1))
        return self._total(x, self._ahead)

    def one_earlier(self, x: Pairs) -> Pairs:
        """Both tokens moved back by one."""
        if self._single:
            return _shifted(x, (1,))
        return self._total(x, self._behind[1:2])

    def one_later(self, x: Pairs) -> Pairs:
        """Both tokens moved on by one."""
        if self._single:
            return _shifted(x, (-1,))
        return self._total(x, self._ahead[1:2])

    def before(self, x: Vector) -> Vector:
        """A function of one token, at the token before; 0 before the first."""
        return np.asarray(self._behind[1] @ x)

    def after(self, x: Vector) -> Vector:
        """A function of one token, at the token after; 0 after the last."""
        return np.asarray(self._ahead[1] @ x)

    def _total(self, x: Pairs, moves: Sequence[Move]) -> Pairs:
        single = self.sizes == 1
        # Two tokens that move together stay different: only a group of several has a value for them.
        matrix = x.matrix.copy()
        beside = np.flatnonzero(single)
        if not single.all():
            matrix[beside, beside] = np.roll(x.matrix, 1, axis=1).diagonal()[beside]
        total, same, near = np.zeros_like(matrix), np.zeros_like(x.same), np.zeros_like(x.near)
        for move in moves:
            total += (move @ (move @ matrix).T).T
            same += move @ x.same
            near += move @ x.near if x.near.shape[1] else 0.0
        total[beside, beside] = same[beside]
        return Pairs(total, same, near)

    @cached_property
    def _single(self) -> bool:
        return bool((self.sizes == 1).all())

    @cached_property
    def _behind(self) -> list[Move]:
        """Which share of a group's tokens, moved back by k, lies in which group."""
        ends = np.cumsum(self.sizes)
        starts = ends - self.sizes
        moves = []
        for k in range(self.count):
            first = np.searchsorted(ends, starts - k, side="right")
            last = np.searchsorted(ends, ends - k, side="left")
            rows = np.repeat(np.arange(ends.size), np.clip(last - first + 1, 0, None))
            columns = np.concatenate([np.arange(a, b + 1) for a, b in zip(first, last, strict=True)])
            inside = np.minimum(ends[rows] - k, ends[columns]) - np.maximum(starts[rows] - k, starts[columns])
            share = np.clip(inside, 0, None) / self.sizes[rows]
            moves.append(csr_array((share, (rows, columns)), shape=(ends.size, ends.size)))
        return moves

    @cached_property
    def _ahead(self) -> list[Move]:
        sizes = self.sizes
        return [csr_array((move * sizes[:, None] / sizes).T) for move in self._behind]


def _shifted(x: Pairs, shifts: Iterable[int]) -> Pairs:
    """The sum of ``x`` moved by each of ``shifts`` single positions, towards the end where positive."""
    total = Pairs(np.zeros_like(x.matrix), np.zeros_like(x.same), np.zeros_like(x.near))
    for shift in shifts:
        to = slice(max(shift, 0), shift if shift < 0 else None)
        of = slice(max(-shift, 0), -shift if shift > 0 else None)
        total.matrix[to, to] += x.matrix[of, of]
        total.same[to] += x.same[of]
        if x.near.size:
            total.near[to] += x.near[of]
    return total
