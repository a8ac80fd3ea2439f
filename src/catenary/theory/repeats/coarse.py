"""Attention over repeated tokens on groups of positions and classes of frequency: at a cost free of the length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from catenary.theory.attention.scores import Scores
from catenary.theory.mixers import Outcome
from catenary.theory.positions.pairs import Matrix, Pairs, Positions, Vector, constant
from catenary.theory.repeats.averages import CoarseValues
from catenary.theory.repeats.classes import TokenClasses
from catenary.theory.repeats.coarse_law import CoarseLaw
from catenary.theory.repeats.coarse_scores import through_scores
from catenary.theory.repeats.rows import RowTables
from catenary.theory.repeats.sorts import ByClass, Sorts, States


@dataclass(frozen=True, eq=False)
class CoarseRepeats:
    r"""Attention over classes of tokens on groups of positions; the form of ``RepeatedAttention`` for any length.

    States are (class, group). Two tokens are equal with probability \(p_m\) within a class; every sum over tokens j, l
    splits into different types, equal ones and j = l, with weights that depend on the query and the class only:

    \[\sum_{jl}f_{ij}f_{kl}Y_{jl} = \bar f_i\bar f_k\langle Y^d\rangle
      + \sum_mq_mp_mf_{im}f_{km}\langle Y^e - Y^d\rangle + \sum_mq_mf_{im}f_{km}\langle Y^0\rangle .\]

    O(M G^3) for G groups and M classes. Derived here: ``docs/repeats.md``.

    Attributes:
        gain: \(\kappa_V^2\).
        scores: the law of the logits; no soft-cap, no sink.
        positions: the averages of the mean kernel.
        classes: the tokens.
        turning: mean factor of rotary positions between two positions of two groups; None without them.
        own_norm: whether queries and keys are normalised from inputs that are not.
    """

    gain: float
    scores: Scores
    positions: Positions
    classes: TokenClasses
    turning: Matrix | None = None
    own_norm: bool = False

    def forward(self, x: Pairs) -> Outcome:
        """Covariance of the outputs."""
        scale = 1 / np.sqrt(x.same)
        variance = self.scores.variance * (1.0 if self.own_norm else float(x.same.mean()) ** 2)
        seen = self.states.sorts(x.scaled(scale))
        law = self.law(seen, variance)
        values = CoarseValues.of(self.states.sorts(x), self.positions, law.mean)
        out = law.outputs(values)
        if self.scores.overlap:
            out = out + law.overlap(values) * seen
        added = self.states.joined(out.different, [out.equal] * self.classes.count, [out.itself] * self.classes.count)
        return Outcome(added.times(constant(self.gain)), PassedCoarse(self, x, scale, variance, law.tables))

    def law(self, seen: Sorts, variance: float, tables: RowTables | None = None) -> CoarseLaw:
        """The law over inputs of correlation ``seen``."""
        return CoarseLaw.of(self.scores, self.positions, self.classes, self.turning, seen, variance, tables)

    @cached_property
    def states(self) -> States:
        """How (class, group) lie on one axis."""
        return States(self.classes.count, self.positions.sizes)

    @cached_property
    def shares(self) -> ByClass:
        """Probability of each class per group: the last position is in the last class."""
        shares = np.tile(self.classes.share, (self.positions.sizes.size, 1))
        shares[-1] = np.eye(self.classes.count)[-1]
        return shares


@dataclass(frozen=True, eq=False)
class PassedCoarse:
    """The forward pass: its inputs and row moments."""

    attention: CoarseRepeats
    x: Pairs
    scale: Vector
    variance: float
    tables: RowTables

    def backward(self, gradient: Pairs) -> Pairs:
        """Values, keys, queries and the 1/d overlap."""
        attention, states = self.attention, self.attention.states
        seen = states.sorts(self.x.scaled(self.scale))
        law = attention.law(seen, self.variance, self.tables)
        values = CoarseValues.of(states.sorts(self.x), attention.positions, law.mean)
        d = states.weighted(gradient, attention.shares, attention.classes)
        scores = through_scores(law, d, values)
        if attention.scores.overlap:
            u = law.overlap(values)
            scores.different += d.plain_different * u.different
            scores.equal += d.plain_equal * u.equal
            scores.itself += d.plain_itself * u.itself
        through = law.through_values(d)
        n = self.scale.size // attention.classes.count
        scale = self.scale[:n]
        both = scale * scale[:, None]
        return states.joined(
            through.different + scores.different * both,
            list(through.equal + scores.equal * both),
            list(through.itself + scores.itself * scale**2),
        ).times(constant(attention.gain))
