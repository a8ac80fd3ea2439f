"""The couplings by name: strong (any logit variance), first order in it, and none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from catenary.registry import Registry
from catenary.theory.attention.coupling import Coupling, Fluctuation, Rows, Seen
from catenary.theory.attention.scores import Scores
from catenary.theory.attention.sinks import kept_beside_sink
from catenary.theory.attention.strong import Strong
from catenary.theory.positions.pairs import Vector, constant


@dataclass(frozen=True)
class Uniform:
    """No fluctuation: every head attends by its mean kernel. Exact for v = 0."""

    def __call__(self, seen: Seen) -> None:
        """Nothing to add."""


@dataclass(frozen=True, eq=False)
class FirstOrder:
    r"""First order in the logit variance: \(S^{val} = S^{sc} = v\), U = 0, for any mean kernel.

    Error O(v): .003 to .03 dex of the profile for v <= .25, .1 to .2 dex at v = 2.7. Derived here.
    """

    variance: float
    kept: Vector | None = None

    def __call__(self, seen: Seen) -> Fluctuation:
        """The constant v for every pair of queries; ``kept`` of every row beside a sink."""
        return Fluctuation(constant(self.variance), constant(self.variance), None, self.kept)


MakeCoupling = Callable[[Scores, Rows], Coupling]
"""From the law of the scores and the rows of the mean kernel to the coupling of a head group."""

COUPLINGS: Registry[MakeCoupling] = Registry("coupling")


def strong(scores: Scores, rows: Rows) -> Strong | Uniform | FirstOrder:
    """The strong coupling; uniform where the logits have no variance."""
    return Strong(scores, rows) if scores.variance > 0 else uniform(scores, rows)


def first_order(scores: Scores, rows: Rows) -> FirstOrder:
    r"""The first-order coupling; a soft-cap scales the variance by \((E\cosh^{-2}(z/c))^2\)."""
    slope = 1.0
    if scores.softcap is not None:
        nodes, weights = np.polynomial.hermite_e.hermegauss(60)
        slope = float(weights @ np.cosh(scores.variance**0.5 * nodes / scores.softcap) ** -2.0 / weights.sum())
    return FirstOrder(scores.variance * slope**2, kept_beside_sink(scores, rows.counts))


def uniform(scores: Scores, rows: Rows) -> Uniform | FirstOrder:
    """No fluctuation, beside a sink if there is one."""
    kept = kept_beside_sink(scores, rows.counts)
    return Uniform() if kept is None else FirstOrder(0.0, kept)


COUPLINGS.register("strong", strong)
COUPLINGS.register("first-order", first_order)
COUPLINGS.register("uniform", uniform)
