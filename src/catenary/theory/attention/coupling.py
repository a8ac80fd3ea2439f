r"""How attention scores fluctuate at birth, and how strongly: what a coupling sees and what it says.

Scores scatter around the mean attention with logit variance v per head, and add to the covariance of two tokens'
attention outputs. A coupling says by how much, for every pair of queries (i, k).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from catenary.theory.positions.pairs import Pairs, Vector


@dataclass(frozen=True, eq=False)
class Rows:
    """What a coupling knows of the rows of a mean kernel.

    Attributes:
        counts: n, how many tokens each query sees; the participation number where they weigh unequally.
        sizes: how many positions each query group holds.
    """

    counts: Vector
    sizes: Vector


@dataclass(frozen=True, eq=False)
class Seen:
    r"""What the scores of one layer see, K being the covariance of their inputs and X that of the values.

    Attributes:
        correlation: R, K at unit diagonal.
        mean: \(AKA^\top\) over \(\sqrt{\bar K_i\bar K_k}\), \(\bar K_i\) the mean of \(K_{jj}\) over what query i sees.
        strength: \(K_{ii}\bar K_i\), by which a row's logit variance exceeds that of unit inputs.
        reach: mean of \(\sqrt{K_{jj}X_{jj}}\) over what query i sees.
    """

    correlation: Pairs
    mean: Pairs
    strength: Vector
    reach: Vector


@dataclass(frozen=True, eq=False)
class Fluctuation:
    r"""The coefficients of the fluctuation terms for queries (i, k); arrays broadcast against (n, n) and (n,).

    ``value`` is \(S^{val}\) (of the averaged values), ``score`` is \(S^{sc}\) (of the keys and queries), ``overlap``
    is U (overlap \(\pm 1/\sqrt d\) of unrelated tokens), None at infinite width. ``kept`` is what each row keeps beside
    a sink, by which the mean kernel is multiplied; None without one.
    """

    value: Pairs
    score: Pairs
    overlap: Pairs | None
    kept: Vector | None = None


@runtime_checkable
class Coupling(Protocol):
    """From what the scores see to a layer's fluctuation, None where there is none."""

    def __call__(self, seen: Seen) -> Fluctuation | None:
        """The fluctuation terms of one layer."""
        ...
