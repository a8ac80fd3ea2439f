r"""Mean attention between groups of positions: how much of a group a query sees, and what two queries share.

Everything is an average over the members of groups. ``mass[Q, h]`` is the attention that a query of group Q pays to
group h. ``shared`` is the excess \(\sum_k e_k A_{qk}A_{q'k}\) of tokens that two queries have in common; e is what a
token has more with itself than with another of its group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64

from catenary.architecture import Alibi, Causal, Chunk, Kernel, Prefix, Window
from catenary.errors import NotApplicable
from catenary.theory.positions.grid import Grid
from catenary.theory.positions.pairs import Matrix, Pairs, Vector
from catenary.theory.positions.products import FEW, Blocked, Product, Recursion

Column = Float64[np.ndarray, "n 1"]

NO_DECAY = 1e-5
"""Slope times length below which ALiBi is taken as causal: its rows differ by less than that from uniform ones."""


@dataclass(frozen=True, eq=False)
class Shared:
    """An excess that two queries (or tokens) have in common: of different ones by group, and of one with itself."""

    different: Matrix
    same: Vector


@dataclass(frozen=True, eq=False)
class Excess:
    """What a token has more with itself than with another: in groups of several, and single tokens with the next one.

    The latter is in the pairs' matrix, which is right where all of a group or none of it sees the token.
    """

    several: Vector
    single: Vector

    @classmethod
    def of(cls, x: Pairs, sizes: Vector) -> Excess:
        """The excess of a function of pairs."""
        matrix = x.matrix
        next_one = np.append(matrix.diagonal(1), matrix[-1, -2]) if len(matrix) > 1 else matrix.diagonal()
        return cls(x.same - matrix.diagonal(), np.where(sizes == 1, x.same - next_one, 0.0))


@runtime_checkable
class GroupRows(Protocol):
    """One kernel on a grid."""

    @property
    def counts(self) -> Vector:
        """How many tokens a query of each group sees."""
        ...

    @property
    def mass(self) -> Matrix:
        """Attention that a query of group Q pays to group h; rows sum to 1."""
        ...

    @property
    def own(self) -> Vector:
        """Attention that a query pays to its own token."""
        ...

    @property
    def paid(self) -> Product:
        """``mass``, to multiply with."""
        ...

    @property
    def received(self) -> Product:
        """What a token of group g gets from the queries of group Q, to multiply with."""
        ...

    def shared(self, excess: Excess) -> Shared:
        """What two queries share of the tokens' excess."""
        ...

    def sent(self, excess: Excess) -> Shared:
        """What two tokens share of the excess of queries that see both."""
        ...


def rows(kernel: Kernel, grid: Grid, tilt: float = 0.0) -> GroupRows:
    r"""The kernel's rows on a grid; ``NotApplicable`` for an unknown kernel.

    With a ``tilt`` t below all slopes, decays' rows are \(A_{qk}e^{t(q-k)}\): what gradients see that are known times
    \(e^{t(L-q)}\) per token.
    """
    none, past = Edge.still(grid, np.zeros(grid.sizes.size)), Edge.moving(grid, 0)
    match kernel:
        case Causal():
            return Runs(grid, none, past, whole=True)
        case Window(width):
            return Runs(grid, Edge.moving(grid, width), past)
        case Chunk(width):
            return Runs(grid, Edge.still(grid, grid.starts // width * width), past)
        case Prefix(inside):
            whole = Edge.still(grid, np.full(grid.sizes.size, float(inside)))
            return Runs(grid, none, past.within(grid.ends <= inside, whole))
        case Alibi(slope) if slope * grid.length < NO_DECAY:
            return rows(Causal(), grid)
        case Alibi(slope):
            return Decays(grid, slope, tilt)
    raise NotApplicable(f"no groups are known for the attention kernel {type(kernel).__name__}")


@final
@dataclass(frozen=True, eq=False)
class Edge:
    """One end of the run of tokens that a query sees: it moves with the query, or is the same for its whole group.

    Attributes:
        before: mean number of tokens of group h before the edge, for a query of group Q.
        density: share of group Q's edges that lie in group h; 0 where the edge does not move.
    """

    before: Matrix
    density: Matrix

    @classmethod
    def moving(cls, grid: Grid, shift: int) -> Edge:
        """The edge behind position q - shift."""
        upper, lower = grid.ends[:, None] - shift, grid.starts[:, None] - shift
        before = _ramp(upper, lower, grid.starts) - _ramp(upper, lower, grid.ends)
        inside = np.clip(np.minimum(upper, grid.ends) - np.maximum(lower, grid.starts), 0, None)
        return cls(before / grid.sizes[:, None], inside / grid.sizes[:, None])

    @classmethod
    def still(cls, grid: Grid, edge: Vector) -> Edge:
        """The same edge for all queries of a group."""
        before = np.clip(edge[:, None] - grid.starts, 0, grid.sizes)
        return cls(before, np.zeros_like(before))

    def within(self, inside: Bool[np.ndarray, " n"], other: Edge) -> Edge:
        """``other`` for the groups ``inside``, and this edge for the rest."""
        chosen = inside[:, None]
        return Edge(np.where(chosen, other.before, self.before), np.where(chosen, other.density, self.density))


@final
@dataclass(frozen=True, eq=False)
class Runs:
    """Queries that see the tokens from one edge to another uniformly.

    What two groups share is the product of what either sees of each third group: exact unless both see only a part
    of it, and never negative. ``whole`` says that every query sees all tokens before its group.
    """

    grid: Grid
    start: Edge
    end: Edge
    whole: bool = False

    @cached_property
    def counts(self) -> Vector:
        """Mean number of tokens that a query of each group sees."""
        return np.asarray(self._seen.sum(axis=1))

    @cached_property
    def mass(self) -> Matrix:
        """Attention that a query of group Q pays to group h."""
        return np.asarray(self._seen / self.counts[:, None])

    @cached_property
    def own(self) -> Vector:
        """1/n."""
        return 1 / self.counts

    def shared(self, excess: Excess) -> Shared:
        """What two queries share of the tokens' excess."""
        weight, several = self.counts**-2.0, excess.several
        seen, less = self._seen @ several, self._less_to_queries @ several
        if self.whole:
            earlier = (self.mass @ several)[:, None] / self.counts
            different = np.triu(earlier) + np.triu(earlier, 1).T
        else:
            different = self._by_query.between(several / self.grid.sizes)
            # Both members see a single token, or neither: more often than if they were different ones.
            squared = self._seen**2 @ excess.single
            seen += self._seen @ excess.single - squared
            less += self._less_to_queries @ excess.single - squared
        np.fill_diagonal(different, weight * less)
        return Shared(different, weight * seen)

    def sent(self, excess: Excess) -> Shared:
        """What two tokens share of the excess of queries that see both."""
        sizes = self.grid.sizes
        weight = sizes * excess.several / self.counts**2
        seen, less = weight @ self._seen, weight @ self._less_to_tokens
        if self.whole:
            later = (sizes * excess.several / self.counts) @ self.mass / sizes
            index = np.arange(sizes.size)
            different = later[np.maximum(index[:, None], index)]
        else:
            different = self._by_token.between(sizes * excess.several)
            different /= sizes * sizes[:, None]
            alone = excess.single / self.counts**2
            squared = alone @ self._seen**2 / sizes
            seen += alone @ self._seen - squared
            less += alone @ self._less_to_tokens - squared
        np.fill_diagonal(different, less / sizes)
        return Shared(different, seen / sizes)

    @cached_property
    def paid(self) -> Product:
        """``mass``, to multiply with."""
        if not self.whole or self.grid.sizes.size <= FEW:
            return self._by_query
        ones = np.ones(self.grid.sizes.size)
        return Recursion(1 / self.counts, self.mass.diagonal().copy(), ones, self.grid.sizes)

    @cached_property
    def received(self) -> Product:
        """What a token of group g gets from the queries of group Q, to multiply with."""
        sizes = self.grid.sizes
        if isinstance(self.paid, Recursion):
            return self.paid.turned(sizes)
        return Blocked(np.ascontiguousarray((self.mass * sizes[:, None] / sizes).T))

    @cached_property
    def _seen(self) -> Matrix:
        """Mean number of tokens of group h that a query of group Q sees."""
        return np.asarray(self.end.before - self.start.before)

    @cached_property
    def _by_query(self) -> Blocked:
        return Blocked(self.mass)

    @cached_property
    def _by_token(self) -> Blocked:
        return Blocked(np.ascontiguousarray(self.mass.T))

    @cached_property
    def _less_to_queries(self) -> Matrix:
        return self._less(self.grid.sizes[:, None])

    @cached_property
    def _less_to_tokens(self) -> Matrix:
        return self._less(self.grid.sizes)

    def _less(self, sizes: Float64[np.ndarray, "*size"]) -> Matrix:
        """What two different members see together: their edges lie (n+1)/6 closer than those of one, on average."""
        closer = (sizes + 1) / 6 * (sizes > 1)
        return np.asarray(np.clip(self._seen - closer * (self.start.density + self.end.density), 0, None))


@final
@dataclass(frozen=True, eq=False)
class Decays:
    r"""ALiBi: \(A_{qk} = r^{q-k}/Z_q\), \(r = e^{-m}\). Sums over the members of groups are geometric series.

    With a ``tilt`` t, \(A_{qk}e^{t(q-k)}\).
    """

    grid: Grid
    slope: float
    tilt: float = 0.0

    @cached_property
    def counts(self) -> Vector:
        r"""Participation number \(\tanh(mq/2)/\tanh(m/2)\) at the groups' centres."""
        return np.asarray(np.tanh(self.slope * self.grid.centres / 2) / math.tanh(self.slope / 2))

    @cached_property
    def _sums(self) -> Vector:
        """Z, of the mean of its row."""
        return np.asarray(_decay_mass(self.grid.sizes, self.slope).sum(axis=1))

    @property
    def _left(self) -> float:
        """How fast the rows decay."""
        return self.slope - self.tilt

    @cached_property
    def mass(self) -> Matrix:
        """Attention that a query of group Q pays to group h."""
        return np.asarray(_decay_mass(self.grid.sizes, self._left) / self._sums[:, None])

    @cached_property
    def own(self) -> Vector:
        """1/Z."""
        return 1 / self._sums

    @cached_property
    def paid(self) -> Recursion:
        """``mass``, to multiply with."""
        n = self.grid.sizes
        one = _geometric(self._left, n)
        out = math.exp(-self._left) * one / (n * self._sums)
        return Recursion(out, self.mass.diagonal().copy(), np.exp(-self._left * n), one)

    @cached_property
    def received(self) -> Recursion:
        """What a token of group g gets from the queries of group Q, to multiply with."""
        return self.paid.turned(self.grid.sizes)

    def shared(self, excess: Excess) -> Shared:
        """What two queries share of the tokens' excess."""
        shared = self._forward.shared(excess.several)
        return Shared(shared.different / (self._sums * self._sums[:, None]), shared.same / self._sums**2)

    def sent(self, excess: Excess) -> Shared:
        """What two tokens share of the excess of queries that see both: the same sums, backwards."""
        shared = self._backward.shared((excess.several / self._sums**2)[::-1])
        return Shared(shared.different[::-1, ::-1], shared.same[::-1])

    @cached_property
    def _forward(self) -> DecaySums:
        return DecaySums(self.grid.sizes, self._left)

    @cached_property
    def _backward(self) -> DecaySums:
        return DecaySums(self.grid.sizes[::-1], self._left)


@final
@dataclass(frozen=True, eq=False)
class DecaySums:
    r"""\(\sum_{k\le\min(q,q')} r^{q+q'-2k}e_k\), averaged over different members of two groups, and over q = q'."""

    sizes: Vector
    slope: float

    @cached_property
    def _between(self) -> Matrix:
        """From the end of one group to the start of a later one; 0 for others."""
        ends = np.cumsum(self.sizes)
        return np.tril(np.exp(-self.slope * np.clip((ends - self.sizes)[:, None] - ends, 0, None)), -1)

    @cached_property
    def _squared(self) -> Matrix:
        return self._between**2

    @cached_property
    def _later(self) -> Matrix:
        one = _geometric(self.slope, self.sizes)
        return np.asarray((math.exp(-self.slope) * one / self.sizes)[:, None] * self._between)

    def shared(self, excess: Vector) -> Shared:
        """The sums for tokens of this excess."""
        n, slope, r = self.sizes, self.slope, math.exp(-self.slope)
        one, two = _geometric(slope, n), _geometric(2 * slope, n)
        # Sum over the tokens before each group, seen from its start.
        before = self._squared @ (two * excess)
        same = r**2 * two / n * before + _decay_mass_diagonal(n, 2 * slope) * excess
        # From a group's own tokens, and the ones before, to the end of the group.
        inside = one * _geometric(slope, n + 1) / (n * (1 + r))
        out = inside * excess + np.exp(-slope * n) * r * one / n * before
        later = self._later * out
        different = later + later.T
        np.fill_diagonal(different, _decay_pairs(n, slope, before, excess))
        return Shared(different, same)


def _ramp(upper: Column, lower: Column, edge: Vector) -> Matrix:
    """Sum of max(q - edge, 0) over whole q from lower + 1 to upper."""

    def triangle(m: Matrix) -> Matrix:
        m = np.clip(m, 0, None)
        return np.asarray(m * (m + 1) / 2)

    return np.asarray(triangle(upper - edge) - triangle(lower - edge))


def _geometric(slope: float, n: Vector) -> Vector:
    r"""\(1 + r + \dots + r^{n-1}\)."""
    return np.asarray(np.expm1(-slope * n) / math.expm1(-slope))


def _decay_mass(sizes: Vector, slope: float) -> Matrix:
    r"""\(\sum_{k\in h, k\le q} r^{q-k}\), averaged over the q of group Q."""
    n, r = sizes, math.exp(-slope)
    ends = np.cumsum(n)
    sums = _geometric(slope, n)
    # From the end of h to the start of Q; the part above the diagonal is replaced by 0.
    between = np.exp(-slope * np.clip((ends - n)[:, None] - ends, 0, None))
    mass = np.tril(r / n[:, None] * sums[:, None] * between * sums, -1)
    np.fill_diagonal(mass, _decay_mass_diagonal(n, slope))
    return np.asarray(mass)


def _decay_mass_diagonal(n: Vector, slope: float) -> Vector:
    r"""\(\sum_{k\le q} r^{q-k}\) within one group, averaged over q."""
    return np.asarray((n - math.exp(-slope) * _geometric(slope, n)) / (n * -math.expm1(-slope)))


def _decay_pairs(n: Vector, slope: float, before: Vector, excess: Vector) -> Vector:
    r"""Mean of \(r^{m'-m}E_m\) over pairs m < m' of one group, \(E_m = r^{2m}E_0 + e(1 + \dots + r^{2(m-1)})\)."""
    r = math.exp(-slope)
    one, two = _geometric(slope, n), _geometric(2 * slope, n)
    lost = -math.expm1(-slope)
    # Sums over m of r^(2m) and of 1, each times r + r^2 + ... up to the end of the group.
    past = r / lost * (r**2 * two - np.exp(-slope * n) * r * one)
    flat = r / lost * (n - one)
    pairs = np.maximum(n * (n - 1) / 2, 1)
    mean = (past * before + (flat - past) / (lost * (1 + r)) * excess) / pairs
    alone = r**2 * before + excess
    return np.asarray(np.where(n > 1, mean, alone))
