r"""Attention at birth as a mixer: mean kernels per head group, and the fluctuations of the scores around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from catenary.theory.attention.coupling import Coupling, Seen
from catenary.theory.attention.sinks import Damped
from catenary.theory.mixers import Outcome, Passed
from catenary.theory.positions.pairs import Mean, Pairs, Positions, Vector, constant


@dataclass(frozen=True, eq=False)
class Heads:
    """Heads that share a mean kernel: how they average, how their scores fluctuate, their share of all heads."""

    share: float
    positions: Positions
    coupling: Coupling


@dataclass(frozen=True, eq=False)
class AttentionMixer:
    r"""Attention with independent Gaussian values and outputs, of squared gain \(\kappa_V^2\).

    For inputs of covariance X, with K the correlation that the scores see (X itself, or X at unit diagonal behind
    QK-norm) and A the mean attention of a head group, the outputs have the covariance

    \[\kappa_V^2\,[AXA^\top + K\circ(S^{val}\circ V + U)],\]
    \[V = A(K\circ X)A^\top - A(B_K\circ B_X) - [A(B_K\circ B_X)]^\top + AKA^\top\circ AXA^\top,
      \quad B_Z = ZA^\top,\]

    averaged over the groups by their share of heads. \(S^{val}, S^{sc}, U\) come from the coupling. A gradient of
    covariance D becomes \(\kappa_V^2\) times

    \[A^\top DA + K\circ\mathcal C_K(D\circ K\circ S^{val}) + rr^\top\circ[X\circ\mathcal C_X(D\circ K\circ S^{sc})
      + D\circ(S^{sc}\circ V + U)],\]

    where \(Z\circ\mathcal C_Z(E) = Z\circ A^\top EA - (A^\top E\circ B_Z)A - [\cdot]^\top + A^\top(E\circ AZA^\top)A\)
    and r is 1, or the scale of QK-norm at an input without unit diagonal. ``own_norm`` says that QK-norm is the only
    norm in front of the scores, ``normalised`` that the inputs come from a norm; without either K is X itself.
    """

    gain: float
    heads: tuple[Heads, ...]
    own_norm: bool = False
    normalised: bool = True

    def forward(self, x: Pairs) -> Outcome:
        """The pass of every head group."""
        scale = 1 / np.sqrt(x.same) if self.own_norm else None
        seen = x if scale is None else x.scaled(scale)
        outcomes = [_attend(heads, x, seen, scale, self.normalised) for heads in self.heads]
        weights = [self.gain * heads.share for heads in self.heads]
        added = _total(zip(weights, (outcome.added for outcome in outcomes), strict=True))
        return Outcome(added, PassedAttention(tuple(zip(weights, (o.passed for o in outcomes), strict=True))))


@dataclass(frozen=True, eq=False)
class PassedAttention:
    """The forward pass of all head groups, each with its weight."""

    groups: tuple[tuple[float, Passed], ...]

    def backward(self, gradient: Pairs) -> Pairs:
        """Covariance of the inputs' gradients."""
        return _total((weight, passed.backward(gradient)) for weight, passed in self.groups)


@dataclass(frozen=True, eq=False)
class PassedUniform:
    """The forward pass of one head group whose scores do not fluctuate."""

    positions: Positions

    def backward(self, gradient: Pairs) -> Pairs:
        r"""\(A^\top DA\)."""
        return self.positions.adjoint(gradient).full


@dataclass(frozen=True, eq=False)
class PassedScores:
    r"""The forward pass of one head group whose scores see the values' covariance X itself.

    ``weight`` is \(S^{val}+S^{sc}\), ``query`` is \(S^{sc}\circ V + U\), ``mean`` is X averaged on one and on both
    sides.
    """

    positions: Positions
    x: Pairs
    mean: Mean
    weight: Pairs
    query: Pairs

    def backward(self, gradient: Pairs) -> Pairs:
        """Mean attention, values and keys (doubly centred), queries; the first two averages are taken together."""
        weighted = (gradient * self.x).times(self.weight)
        through = _centred(self.positions, weighted, self.x, self.mean, gradient)
        return through.plus(gradient * self.query)


@dataclass(frozen=True, eq=False)
class PassedOwnNorm:
    """The forward pass of one head group whose queries and keys are normalised, from inputs that are not."""

    positions: Positions
    x: Pairs
    seen: Pairs
    mean: Mean
    mean_seen: Mean
    value: Pairs
    score: Pairs
    query: Pairs
    scale: Vector

    def backward(self, gradient: Pairs) -> Pairs:
        """As ``PassedScores``, with values and keys apart: only keys and queries pass through the norm."""
        weighted = gradient * self.seen
        through = _centred(self.positions, weighted * self.value, self.seen, self.mean_seen, gradient)
        scores = _centred(self.positions, weighted.times(self.score), self.x, self.mean, None)
        return through.plus(scores.plus(gradient * self.query).scaled(self.scale))


def _attend(heads: Heads, x: Pairs, seen: Pairs, scale: Vector | None, normalised: bool) -> Outcome:
    positions = heads.positions
    mean = positions.average(x)
    mean_seen = mean if seen is x else positions.average(seen)
    fluctuation = heads.coupling(_seen(positions, x, seen, mean_seen.full, normalised))
    if fluctuation is None:
        return Outcome(mean.full, PassedUniform(positions))
    if fluctuation.kept is not None:
        damped = Damped(positions, fluctuation.kept)
        positions, mean = damped, damped.damped(mean)
        mean_seen = mean
    spread = positions.average_centred(seen * x, mean_seen.half * mean.half)
    spread = spread.plus(mean_seen.full * mean.full)
    forward, query = fluctuation.value * spread, fluctuation.score * spread
    if fluctuation.overlap is not None:
        forward, query = forward.plus(fluctuation.overlap), query.plus(fluctuation.overlap)
    added = forward.times(seen).plus(mean.full)
    if scale is None:
        passed = PassedScores(positions, x, mean, fluctuation.value + fluctuation.score, query)
        return Outcome(added, passed)
    apart = PassedOwnNorm(positions, x, seen, mean, mean_seen, fluctuation.value, fluctuation.score, query, scale)
    return Outcome(added, apart)


def _centred(positions: Positions, weighted: Pairs, z: Pairs, mean: Mean, gradient: Pairs | None) -> Pairs:
    r"""\(A^\top DA + Z\circ A^\top EA - (A^\top E\circ ZA^\top)A - [\cdot]^\top + A^\top(E\circ AZA^\top)A\).

    E is ``weighted``, which is consumed; without ``gradient`` D its term is left out.
    """
    sent = positions.adjoint(weighted)
    both = weighted.times(mean.full)
    if gradient is not None:
        both = both.plus(gradient)
    through = positions.adjoint_centred(both, sent.half * mean.half)
    return through.plus(sent.full.times(z))


ALIKE = 1e-3
"""Relative spread of the inputs' variances below which each query's own stands for the mean over what it sees."""


def _seen(positions: Positions, x: Pairs, keys: Pairs, mean: Pairs, normalised: bool) -> Seen:
    """What the scores see; behind a norm, unit inputs (its epsilon moves the logit variance by less than it errs)."""
    ones = np.ones_like(keys.same)
    if normalised:
        return Seen(keys, mean, ones, ones)
    if keys is not x:
        return Seen(keys, mean, ones, _row_mean(positions, np.sqrt(x.same), keys))
    own = _row_mean(positions, keys.same, keys)
    return Seen(keys.scaled(1 / np.sqrt(keys.same)), mean.scaled(1 / np.sqrt(own)), keys.same * own, own)


def _row_mean(positions: Positions, values: Vector, like: Pairs) -> Vector:
    """The mean of a function of one token over what each query sees, on the positions of ``like``."""
    if np.ptp(values) <= ALIKE * values.max():
        return values
    near = np.repeat(values[:, None], like.near.shape[1], axis=1)
    return positions.average(Pairs((values + values[:, None]) / 2, values, near)).full.same


def _total(parts: Iterable[tuple[float, Pairs]]) -> Pairs:
    """Sum of weight * part, in the memory of the parts."""
    total: Pairs | None = None
    for weight, part in parts:
        weighted = part.times(constant(weight))
        total = weighted if total is None else total.plus(weighted)
    assert total is not None
    return total
