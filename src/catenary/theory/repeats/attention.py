r"""Attention at birth over tokens that repeat, with rotary positions, at any logit variance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool

from catenary.architecture import Causal, Kernel
from catenary.errors import NotApplicable
from catenary.theory.attention.scores import Scores
from catenary.theory.mixers import Outcome
from catenary.theory.positions.pairs import Matrix, Pairs, Vector
from catenary.theory.repeats.layer import Law, Told, Values
from catenary.theory.repeats.rows import RowTables

UNEQUAL = 0.1
"""Largest relative deviation of one token's mean square from the mean at which logits count as equally wide."""


@dataclass(frozen=True, eq=False)
class RepeatedAttention:
    r"""Attention over tokens of which some are equal: the mean over weights of everything that the recursion needs.

    \[\kappa_V^2\Big[\sum_{jl}E[A_{ij}A_{kl}]X_{jl} + R_{ik}U_{ik}\Big]\] forward, and backward the gradients at
    values, keys and queries. \(E[A_{ij}A_{kl}]\) comes from exact moments of a softmax over types with their
    multiplicities; see ``docs/repeats.md``. With distinct tokens it agrees with the strong coupling to .001 dex.

    Attributes:
        gain: \(\kappa_V^2\).
        scores: the law of the logits.
        equal: whether two positions hold the same token.
        turning: \(c_{ik}\), the factor of rotary positions on the product of two equal vectors; None without them.
        kernel: what queries see; uniform over it on average.
        own_norm: whether queries and keys are normalised from inputs that are not.
    """

    gain: float
    scores: Scores
    equal: Bool[np.ndarray, "n n"]
    turning: Matrix | None = None
    kernel: Kernel = field(default_factory=Causal)
    own_norm: bool = False

    def forward(self, x: Pairs) -> Outcome:
        """Covariance of the outputs."""
        scale = 1 / np.sqrt(x.same)
        seen = x.scaled(scale)
        law = Law.of(self.told, seen.matrix, self._variance(x.same))
        values = Values.of(x.matrix, law)
        added = law.outputs(values)
        if self.scores.overlap:
            added += law.overlap(values) * seen.matrix
        added *= self.gain
        return Outcome(Pairs(added, added.diagonal().copy()), PassedRepeated(self, x, seen, scale, law.tables))

    @property
    def told(self) -> Told:
        """What the law of its layers is told."""
        return Told(self.scores, self.equal, self.turning, self.kernel)

    def _variance(self, energy: Vector) -> float:
        """Logit variance for inputs of mean square ``energy``, alike for all tokens unless QK-norm follows."""
        if self.own_norm:
            return self.scores.variance
        mean = float(energy.mean())
        if float(np.abs(energy - mean).max()) > UNEQUAL * mean:
            raise NotApplicable(
                "repeated tokens need a norm in front of attention scores: the inputs' mean squares differ by more "
                f"than {UNEQUAL:.0%}"
            )
        return self.scores.variance * mean**2


@dataclass(frozen=True, eq=False)
class PassedRepeated:
    """The forward pass: its inputs and row moments are kept, everything else is made again."""

    attention: RepeatedAttention
    x: Pairs
    seen: Pairs
    scale: Vector
    tables: RowTables

    def backward(self, gradient: Pairs) -> Pairs:
        """Mean attention and its spread, keys, queries, and the 1/d overlap."""
        law = Law.of(self.attention.told, self.seen.matrix, self.tables.variance, self.tables)
        values = Values.of(self.x.matrix, law)
        d = gradient.matrix
        through = law.through_scores(d, values)
        if self.attention.scores.overlap:
            through += d * law.overlap(values)
        through *= self.scale * self.scale[:, None]
        through += law.through_values(d)
        through *= self.attention.gain
        return Pairs(through, through.diagonal().copy())
