r"""Masked softmax attention with a positional and a content prior, in O(L) per head: no L x L matrix is formed.

A row splits in three: the query's own key, earlier keys, later keys. What is the same for all keys of a row (a content
prior's base) cancels; a prior c on the own key, and the temperature, change only how the row's mass is shared, because
the others keep their ratios:

\[A = \mathrm{diag}(p) + \mathrm{diag}(q)K^{<} + \mathrm{diag}(r)K^{>},\qquad
  (p_i, q_i, r_i) = \mathrm{softmax}(c/\tau, \ln Z^{<}_i, \ln Z^{>}_i),\]

with \(K^{<}, K^{>}\) the softmaxes over earlier and later keys alone and Z their sums of exp(score/tau). Only positive
terms are added, whatever the sign of c. Derived here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final, runtime_checkable

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Causal
from catenary.errors import invalid
from catenary.theory.rollout.sides import Mask, Rows, Side, Vector, earlier, later


@dataclass(frozen=True)
class Head:
    """One head's prior, or that of ``count`` equal ones.

    Attributes:
        slope: ALiBi's m >= 0: the score of a key at distance k is -m k.
        mask: which keys a query sees.
        content: added to the score of the query's own key, in logits.
        temperature: what all scores are divided by, > 0.
        count: how many heads are like this one, >= 0; or their weight in the mean over heads.
    """

    slope: float = 0.0
    mask: Mask = Causal()  # noqa: RUF009  # frozen and without fields
    content: float = 0.0
    temperature: float = 1.0
    count: float = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers that are no prior."""
        for name, value, lowest in (("slope", self.slope, 0.0), ("content", self.content, -math.inf)):
            if not (math.isfinite(value) and value >= lowest):
                raise invalid(name, "must be finite" + (" and >= 0" if name == "slope" else ""), value)
        if not (math.isfinite(self.temperature) and self.temperature > 0):
            raise invalid("temperature", "must be finite and > 0", self.temperature)
        if not (math.isfinite(self.count) and self.count >= 0):
            raise invalid("count", "must be finite and >= 0", self.count)


@runtime_checkable
class Attending(Protocol):
    """A layer's attention A, averaged over heads, as the rollout needs it: rows and columns along the last axis."""

    @property
    def length(self) -> int:
        """Number of positions L."""
        ...

    @property
    def diagonal(self) -> Vector:
        """A_ii."""
        ...

    def average(self, x: Rows) -> Rows:
        """A x."""
        ...

    def adjoint(self, x: Rows) -> Rows:
        """A^T x."""
        ...


@final
@dataclass(frozen=True, eq=False)
class Prior:
    """The attention of one head, from its prior alone."""

    head: Head
    length: int

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """Earlier keys, and later ones where the mask shows any."""
        slope = self.head.slope / self.head.temperature
        behind = later(self.head.mask, slope, self.length)
        ahead = earlier(self.head.mask, slope, self.length)
        return (ahead,) if behind is None else (ahead, behind)

    @cached_property
    def shares(self) -> Float64[np.ndarray, "parts L"]:
        """What the own key and each side get of every row; columns sum to 1."""
        own = np.full(self.length, self.head.content / self.head.temperature)
        logs = np.stack([own, *(side.log_weights for side in self.sides)])
        weights = np.exp(logs - logs.max(axis=0))
        return np.asarray(weights / weights.sum(axis=0))

    @property
    def diagonal(self) -> Vector:
        """A_ii."""
        return np.asarray(self.shares[0])

    def average(self, x: Rows) -> Rows:
        """A x along the last axis."""
        others = (share * side.average(x) for share, side in zip(self.shares[1:], self.sides, strict=True))
        return np.asarray(sum(others, self.shares[0] * x))

    def adjoint(self, x: Rows) -> Rows:
        """A^T x along the last axis."""
        others = (side.adjoint(share * x) for share, side in zip(self.shares[1:], self.sides, strict=True))
        return np.asarray(sum(others, self.shares[0] * x))


@final
@dataclass(frozen=True, eq=False)
class Heads:
    """The mean of several heads' attention: of softmaxes, not a softmax of means."""

    parts: tuple[Prior, ...]
    weights: tuple[float, ...]

    @property
    def length(self) -> int:
        """Number of positions L."""
        return self.parts[0].length

    @cached_property
    def diagonal(self) -> Vector:
        """A_ii."""
        return np.asarray(sum(w * part.diagonal for w, part in zip(self.weights, self.parts, strict=True)))

    def average(self, x: Rows) -> Rows:
        """A x along the last axis."""
        return np.asarray(sum(w * part.average(x) for w, part in zip(self.weights, self.parts, strict=True)))

    def adjoint(self, x: Rows) -> Rows:
        """A^T x along the last axis."""
        return np.asarray(sum(w * part.adjoint(x) for w, part in zip(self.weights, self.parts, strict=True)))


def head_mean(heads: Sequence[Head], length: int) -> Heads:
    """The mean attention of ``heads`` at ``length`` positions, each weighted by its count; equal heads are one.

    Raises:
        InvalidInput: no head, or no weight at all.
    """
    counts: dict[Head, float] = {}
    for head in heads:
        alike = Head(head.slope, head.mask, head.content, head.temperature)
        counts[alike] = counts.get(alike, 0.0) + head.count
    total = sum(counts.values())
    if not total > 0:
        raise invalid("heads", "must hold at least one head with weight > 0", list(heads))
    return Heads(tuple(Prior(head, length) for head in counts), tuple(count / total for count in counts.values()))
