r"""A sink: a logit without a value takes part of every row, so that the mean attention sums to less than 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catenary.theory.attention.scores import Scores
from catenary.theory.attention.strong import row_moments
from catenary.theory.positions.pairs import Half, Mean, Pairs, Positions, Vector


@dataclass(frozen=True, eq=False)
class Damped:
    r"""The averages of \(FA\) with F = diag(``kept``), from those of A: what attention keeps beside its sink.

    The fluctuations of a softmax with a sink have the form of those without, A replaced by FA: nothing in them uses
    that rows sum to 1. Derived here.
    """

    positions: Positions
    kept: Vector

    @property
    def counts(self) -> Vector:
        """How many tokens each query sees, the sink apart."""
        return self.positions.counts

    @property
    def sizes(self) -> Vector:
        """How many positions each group holds."""
        return self.positions.sizes

    def average(self, x: Pairs) -> Mean:
        """X A^T F and F A X A^T F."""
        return self.damped(self.positions.average(x))

    def damped(self, mean: Mean) -> Mean:
        """The averages by FA from those by A."""
        return Mean(mean.half * self.kept, mean.full.scaled(self.kept))

    def adjoint(self, x: Pairs) -> Mean:
        """A^T F X and A^T F X F A."""
        full = self.positions.adjoint(x.scaled(self.kept))
        return Mean(full.half / self.kept, full.full)

    def average_centred(self, x: Pairs, b: Half) -> Pairs:
        """F A X A^T F - F A b - (F A b)^T."""
        return self.positions.average_centred(x, b / self.kept).scaled(self.kept)

    def adjoint_centred(self, x: Pairs, b: Half) -> Pairs:
        """A^T F X F A - b F A - (b F A)^T."""
        return self.positions.adjoint_centred(x.scaled(self.kept), b * self.kept)


def kept_beside_sink(scores: Scores, counts: Vector) -> Vector | None:
    r"""\(E\sum_jA_{ij}\) over unrelated tokens, \(n/(n + e^s)\) at v = 0; None without a sink."""
    if scores.sink is None:
        return None
    kinds, kind = np.unique(counts, return_inverse=True)
    mean = row_moments(scores, kinds, np.array([scores.variance])).mean[:, 0]
    return np.asarray((kinds * mean)[kind])
