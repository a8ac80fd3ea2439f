"""The birth law on groups of neighbouring positions: its cost does not depend on the length.

Positions that look alike are one group, with a value for two different members and one for a member with itself.
The first 48 and the last 24 positions stay single; between them, groups grow in proportion to their position.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from catenary.architecture import Architecture, Causal, Kernel
from catenary.errors import NotApplicable
from catenary.theory.attention import PositionsOf
from catenary.theory.birth import birth_energies, mixers
from catenary.theory.embedding import embedded
from catenary.theory.pairs import Matrix, Mean, Pairs, Vector

HEAD, TAIL, RATIO = 48, 24, 1.06
"""Single positions at both ends, and the growth of groups. With 1.03 instead of 1.06 the norm moves by < 5e-4."""


@dataclass(frozen=True, eq=False)
class Groups:
    r"""Groups of consecutive positions under uniform causal attention, O(G^2) per average.

    A member of a group of size w sees (w+1)/2 of its own group on average, two different members share (w+1)/3, and
    all of the groups before. Exact where every group is a single position; otherwise a relative error of order
    w^2/i^2 per average.

    Attributes:
        sizes: w, how many positions each group holds; the last group must hold one.
    """

    sizes: Vector

    @cached_property
    def counts(self) -> Vector:
        """Mean number of tokens a group's queries see, which is also the group's mean position (1-based)."""
        return np.cumsum(self.sizes) - (self.sizes - 1) / 2

    def average(self, x: Pairs) -> Mean:
        """X A^T and A X A^T; what a token has more with itself than with another member is added apart."""
        half = self._average(x.matrix, 1)
        full = self._average(half, 0)
        excess = x.same - x.matrix.diagonal()
        before = np.concatenate(([0.0], np.cumsum(self.sizes * excess)[:-1]))
        shared = self._shared(before, excess, self._earlier)
        same = full.diagonal() + (before + self._own * excess) / self.counts**2
        half = half + self._includes * excess[:, None] / self.counts
        return Mean(half, Pairs(full + shared / (self.counts * self.counts[:, None]), same))

    def adjoint(self, x: Pairs) -> Mean:
        """A^T X and A^T X A, with the same care."""
        half = self._adjoint(x.matrix, 0)
        full = self._adjoint(half, 1)
        excess = x.same - x.matrix.diagonal()
        sent = excess / self.counts**2
        after = np.concatenate((np.cumsum((self.sizes * sent)[::-1])[::-1][1:], [0.0]))
        shared = self._shared(after, sent, self._later)
        same = full.diagonal() + after + self._own * sent
        half = half + self._includes * (excess / self.counts)
        return Mean(half, Pairs(full + shared, same))

    def average_centred(self, x: Pairs, b: Matrix) -> Pairs:
        """A X A^T - A b - (A b)^T."""
        return _centred(self.average(x).full, self._average(b, 0))

    def adjoint_centred(self, x: Pairs, b: Matrix) -> Pairs:
        """A^T X A - b A - (b A)^T."""
        return _centred(self.adjoint(x).full, self._adjoint(b, 1))

    def _average(self, x: Matrix, axis: int) -> Matrix:
        """Mean over the tokens a query sees, along ``axis``."""
        sizes, own, counts = (_along(v, axis) for v in (self.sizes, self._own, self.counts))
        return np.asarray((np.cumsum(sizes * x, axis) + (own - sizes) * x) / counts)

    def _adjoint(self, x: Matrix, axis: int) -> Matrix:
        """Sum over the queries that see a token, each divided by how many it sees, along ``axis``."""
        sizes, own, counts = (_along(v, axis) for v in (self.sizes, self._own, self.counts))
        diluted = x / counts
        later = np.flip(np.cumsum(np.flip(sizes * diluted, axis), axis), axis)
        return np.asarray(later + (own - sizes) * diluted)

    def _shared(self, outside: Vector, excess: Vector, nearer: Int64[np.ndarray, "n n"]) -> Matrix:
        """Excess of the tokens (queries) that two different queries (tokens) have in common."""
        matrix: Matrix = (outside + self._own * excess)[nearer]
        np.fill_diagonal(matrix, outside + (self.sizes + 1) / 3 * excess)
        return matrix

    @cached_property
    def _own(self) -> Vector:
        return np.asarray((self.sizes + 1) / 2)

    @cached_property
    def _includes(self) -> Matrix:
        """Share of (token of g, other query of h) in which the query sees the token."""
        size = self.sizes.size
        return np.asarray(np.triu(np.ones((size, size)), 1) + 0.5 * np.eye(size))

    @cached_property
    def _earlier(self) -> Int64[np.ndarray, "n n"]:
        index = np.arange(self.sizes.size)
        return np.asarray(np.minimum(index, index[:, None]))

    @cached_property
    def _later(self) -> Int64[np.ndarray, "n n"]:
        index = np.arange(self.sizes.size)
        return np.asarray(np.maximum(index, index[:, None]))


def group_positions(length: int, *, head: int = HEAD, tail: int = TAIL, ratio: float = RATIO) -> Groups:
    """Groups over ``length`` positions: ``head`` and ``tail`` singles, and sizes (ratio - 1) * position between.

    About 48 + 24 + ln(L/48)/ln(ratio) groups: 137 at L = 2048, 290 at 2^24.
    """
    sizes = [1] * min(head, max(length - tail, 0))
    position = len(sizes)
    while position < length - tail:
        size = min(max(1, round(position * (ratio - 1))), length - tail - position)
        sizes.append(size)
        position += size
    sizes += [1] * (length - position)
    return Groups(np.array(sizes, dtype=np.float64))


def coarse_energies(
    architecture: Architecture,
    length: int,
    repeat_probability: float = 0.0,
    coupling: str = "strong",
    finite_width: bool = True,
    groups: Groups | None = None,
) -> Float64[np.ndarray, " L"]:
    """``birth_energies`` on groups, interpolated to every position (log value against log position).

    Within .5 % of the exact norm at every position. Tokens enter only through the probability that two of them are
    equal; ids need the exact recursion. Derived here.

    Args:
        architecture: as for ``birth_energies``.
        length: L >= 2.
        repeat_probability: p2, the probability that two different positions hold the same id.
        coupling: a name in ``COUPLINGS``.
        finite_width: include the 1/d overlap of unrelated tokens.
        groups: other groups than ``group_positions(length)``.
    """
    groups = groups or group_positions(length)
    equal = np.full((groups.sizes.size,) * 2, repeat_probability)
    single = np.flatnonzero(groups.sizes == 1)
    equal[single, single] = 1.0
    positions = causal_only(groups)
    start = embedded(architecture, equal, groups.sizes)
    values = birth_energies(architecture, start, mixers(architecture, positions, coupling, finite_width))
    positions = np.log(np.arange(1.0, length + 1.0))
    return np.asarray(np.exp(np.interp(positions, np.log(groups.counts), np.log(values))))


def causal_only(groups: Groups) -> PositionsOf:
    """The groups for the causal kernel, and a refusal for any other."""

    def positions_of(kernel: Kernel) -> Groups:
        if not isinstance(kernel, Causal):
            raise NotApplicable(f"groups of positions are known for the causal kernel, not {type(kernel).__name__}")
        return groups

    return positions_of


def _centred(full: Pairs, cross: Matrix) -> Pairs:
    return Pairs(full.matrix - cross - cross.T, full.same - 2 * cross.diagonal())


def _along(vector: Vector, axis: int) -> Float64[np.ndarray, " *one"]:
    return vector[:, None] if axis == 0 else vector
