r"""A decaying state \(U_i = a_iU_{i-1} + t_iw_i\) with random decays and steps: covariances forward and backward."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from catenary.theory.positions.pairs import Matrix, Pairs, Positions, Singles, Vector
from catenary.theory.positions.running import decaying_sum
from catenary.theory.recurrent import single
from catenary.theory.recurrent.steps import Decay
from catenary.theory.recurrent.taps import Taps


@final
@dataclass(frozen=True, eq=False)
class Memory:
    r"""The state of one head over a set of positions.

    \(a_i, t_i\) are independent between tokens and of w, of covariance Z. With \(A_{ij} = q^{i-j}\), \(q = E[a]\),

    \[E[U_iU_k] = [A(m^2Z + \mathrm{diag}\,e)A^\top]_{ik},\quad m = E[t],\]

    where e is what the scatter of a and t at one token adds to that token alone, a scalar recursion. The adjoint state
    \(\lambda_i = y_i + a_{i+1}\lambda_{i+1}\) has the covariance \(A^\top(Y + \mathrm{diag}\,e')A\) likewise. Exact
    where every group is a single position. Derived here: ``docs/recurrent.md``.

    Attributes:
        decay: the moments of a and t.
        positions: the averages of ALiBi's kernel of slope -ln q, whose rows are those of A divided by their sums.
    """

    decay: Decay
    positions: Positions

    def state(self, z: Pairs) -> Pairs:
        """Covariance of U from that of w."""
        decay = self.decay
        driven = self._apart(z, decay.step**2, decay.step**2)
        plain = self.summed(driven)
        if not decay.random:
            return plain
        excess = self._excess(plain, driven, z)
        if self._single:
            return self._owning(plain, excess)
        return self.summed(self._with_own(driven, excess - decay.keep**2 * self._moves.before(excess)))

    def _excess(self, plain: Pairs, driven: Pairs, z: Pairs) -> Vector:
        r"""E: what a state's own second moment has more than \(A m^2ZA^\top\) has."""
        decay = self.decay
        before = self._moves.before(plain.same)
        crossed = plain.same - decay.keep**2 * before - driven.same
        source = (decay.keep_square - decay.keep**2) * before
        source += (decay.step_square - decay.step**2) * z.same
        source += (decay.joint / (decay.keep * decay.step) - 1) * crossed
        return self._accumulated(source)

    def adjoint_state(self, y: Pairs) -> Pairs:
        r"""Covariance of \(\lambda\) from that of y."""
        decay = self.decay
        plain = self.summed_later(y)
        if not decay.random:
            return plain
        source = (decay.keep_square - decay.keep**2) * self._moves.after(plain.same)
        excess = self._accumulated(source, backward=True)
        if self._single:
            return self._owning(plain, excess, backward=True)
        return self.summed_later(self._with_own(y, excess - decay.keep**2 * self._moves.after(excess)))

    def summed(self, x: Pairs) -> Pairs:
        r"""\(AXA^\top\)."""
        if self._single:
            return _own(single.summed(x.matrix, self.decay.keep))
        return self.positions.average(x).full.scaled(self._sums)

    def summed_later(self, x: Pairs) -> Pairs:
        r"""\(A^\top XA\)."""
        if self._single:
            return _own(single.summed(x.matrix, self.decay.keep, backward=True))
        return self.positions.adjoint(x.scaled(self._sums)).full

    def one_sided(self, x: Pairs) -> Pairs:
        r"""\(AX + XA^\top = R - q^2SRS^\top + X\), \(R = AXA^\top\), S the move by one token: A is 1/(1 - qS)."""
        if self._single:
            return _own(single.one_sided(x.matrix, self.decay.keep))
        summed = self.summed(x)
        moved = self._moves.one_earlier(summed)
        return self._apart(moved, -(self.decay.keep**2), -(self.decay.keep**2)).plus(summed).plus(x)

    def one_sided_later(self, x: Pairs) -> Pairs:
        r"""\(A^\top X + XA\)."""
        if self._single:
            return _own(single.one_sided(x.matrix, self.decay.keep, backward=True))
        summed = self.summed_later(x)
        moved = self._moves.one_later(summed)
        return self._apart(moved, -(self.decay.keep**2), -(self.decay.keep**2)).plus(summed).plus(x)

    def stepped(self, adjoint: Pairs) -> Pairs:
        r"""\(E[t_i\lambda_it_k\lambda_k]\) from the covariance of \(\lambda\).

        For i < k what \(\lambda_i\) holds of \(\lambda_k\) has passed \(a_k\), which goes with \(t_k\).
        """
        decay = self.decay
        total = self._apart(adjoint, decay.step**2, decay.step_square)
        if not decay.random:
            return total
        together = decay.step * (decay.joint / decay.keep - decay.step)
        if self._single:
            single.with_own(total.matrix, decay.keep, together * adjoint.same, backward=True)
            return _owned(total.matrix, total.same)
        own = Pairs(np.diag(np.where(self.positions.sizes == 1, adjoint.same, 0.0)), adjoint.same,
                    np.zeros_like(adjoint.near))  # fmt: skip
        return total.plus(self._apart(self.one_sided_later(own), together, 0.0))

    def moved(self, state: Pairs, z: Pairs) -> Pairs:
        r"""\(E[\xi_i\xi_k]\), \(\xi_i = a'_iU_{i-1} + t'_iw_i\), primes for derivatives in g.

        The part that is crossed between U and w is what is left of the state's own recursion.
        """
        decay, before = self.decay, self._moves.one_earlier(state)
        weight = decay.moved_keep * decay.moved_step / (decay.keep * decay.step)
        own = decay.moved_joint / decay.joint
        total = self._apart(state, weight, own)
        kept = decay.moved_keep**2 - weight * decay.keep**2, decay.moved_keep_square - own * decay.keep_square
        drawn = decay.moved_step**2 - weight * decay.step**2, decay.moved_step_square - own * decay.step_square
        return total.plus(self._apart(before, *kept)).plus(self._apart(z, *drawn))

    def _owning(self, plain: Pairs, excess: Vector, backward: bool = False) -> Pairs:
        return _own(single.with_own(plain.matrix, self.decay.keep, excess, backward))

    @cached_property
    def _single(self) -> bool:
        return isinstance(self.positions, Singles)

    @cached_property
    def _moves(self) -> Taps:
        return Taps(self.positions.sizes, 2)

    @cached_property
    def _sums(self) -> Vector:
        r"""Row sums of A, \((1-q^i)/(1-q)\), i from 1; a group's mean."""
        slope, sizes = self.decay.slope, self.positions.sizes
        ends = np.cumsum(sizes)
        gone = np.exp(-slope * (ends - sizes + 1)) * np.expm1(-slope * sizes) / (sizes * np.expm1(-slope))
        few = slope * ends < FLAT
        return np.where(few, ends - (sizes - 1) / 2, (1 - gone) / -np.expm1(-slope))

    def _accumulated(self, source: Vector, backward: bool = False) -> Vector:
        r"""\(E_i = E[a^2]E_{i-1} + s_i\), or the same from the end; group means of a source that is even in a group."""
        if backward:
            return self._along(source[::-1], self.positions.sizes[::-1])[::-1]
        return self._along(source, self.positions.sizes)

    def _along(self, source: Vector, sizes: Vector) -> Vector:
        factor = self.decay.keep_square
        if (sizes == 1).all():
            return decaying_sum(source, factor)
        left = factor**sizes
        share = factor * (1 - left) / ((1 - factor) * sizes)
        result, state = np.empty_like(source), 0.0
        for group in range(source.size):
            steady = source[group] / (1 - factor)
            result[group] = steady + (state - steady) * share[group]
            state = steady + (state - steady) * left[group]
        return result

    def _apart(self, x: Pairs, different: float, same: float) -> Pairs:
        """Other factors for two tokens and for one with itself."""
        matrix, own = x.matrix * different, x.same * same
        if self._single:
            return _owned(matrix, own)
        alone = np.flatnonzero(self.positions.sizes == 1)
        matrix[alone, alone] = own[alone]
        return Pairs(matrix, own, x.near * different)

    def _with_own(self, x: Pairs, added: Vector) -> Pairs:
        """``x`` with more of a token with itself."""
        matrix, own = x.matrix.copy(), x.same + added
        alone = np.flatnonzero(self.positions.sizes == 1)
        matrix[alone, alone] = own[alone]
        return Pairs(matrix, own, x.near)


def _own(matrix: Matrix) -> Pairs:
    """Pairs of single positions, whose diagonal is a token with itself."""
    return Pairs(matrix, matrix.diagonal().copy())


def _owned(matrix: Matrix, same: Vector) -> Pairs:
    """Pairs of single positions with another diagonal, in the memory of ``matrix``."""
    np.einsum("ii->i", matrix)[...] = same
    return Pairs(matrix, same)


FLAT = 1e-9
"""Slope times length below which nothing decays."""
