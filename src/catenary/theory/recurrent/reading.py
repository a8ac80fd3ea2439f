r"""Heads that read a decaying state: \(o_i = \sum_j(q_i\cdot k_j)\,a_i\cdots a_{j+1}t_jv_j + c\,v_i\)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from catenary.theory.positions.pairs import Pairs, Vector, constant
from catenary.theory.recurrent.memory import Memory


class Moments(Protocol):
    """Second moments by pair of tokens and means by token of one entry."""

    @property
    def value(self) -> Pairs:
        """E[f f]."""
        ...

    @property
    def mean(self) -> Vector:
        """E[f]."""
        ...


@dataclass(frozen=True, eq=False)
class Drive:
    """The moments of queries, keys and values over one input, and the number of entries of a query."""

    query: Moments
    key: Moments
    value: Moments
    entries: int

    @property
    def coherent(self) -> bool:
        """Whether different entries add up in the mean."""
        return bool(self.query.mean.any() and self.key.mean.any())


@dataclass(frozen=True, eq=False)
class Gradients:
    """Covariances of the gradients at the streams and at the steps' inputs, each per channel of the outputs."""

    query: Pairs
    key: Pairs
    value: Pairs
    step: Pairs | None

    def plus(self, other: Gradients) -> Gradients:
        """The sum, in the memory of both."""
        step = other.step if self.step is None else self.step if other.step is None else self.step.plus(other.step)
        return Gradients(
            self.query.plus(other.query), self.key.plus(other.key), self.value.plus(other.value), step
        )

    def times(self, factor: float) -> Gradients:
        """All of them times a number."""
        by = constant(factor)
        step = None if self.step is None else self.step.times(by)
        return Gradients(self.query.times(by), self.key.times(by), self.value.times(by), step)


@dataclass(frozen=True, eq=False)
class Read:
    r"""The forward pass of heads with one decay.

    With \(Q, K, V\) the second moments of the streams, \(\mu\) their means, N entries per query and \(R(Z)\) the
    covariance of the state that w of covariance Z drives, the outputs have per channel the covariance

    \[N\,Q\circ R(K\circ V) + N(N-1)\,\mu_q\mu_q^\top\circ R(\mu_k\mu_k^\top\circ V) + c^2V
      + cN\,[\mu_q\circ mA(\mu_k\circ V) + \cdot^\top].\]

    An entry's own product averages to Q and K, two different entries' to the products of means. Derived here.

    Attributes:
        memory: the decay.
        drive: the streams.
        skip: c.
        state: R(K o V).
        common: R of the means, None where they are 0.
    """

    memory: Memory
    drive: Drive
    skip: float
    state: Pairs
    common: Pairs | None

    @classmethod
    def of(cls, memory: Memory, drive: Drive, skip: float) -> Read:
        """The pass over the streams."""
        key, value = drive.key, drive.value
        common = memory.state(value.value.scaled(key.mean)) if drive.coherent else None
        return cls(memory, drive, skip, memory.state(key.value * value.value), common)

    @property
    def outputs(self) -> Pairs:
        """Covariance of the outputs, per channel."""
        drive, entries = self.drive, float(self.drive.entries)
        total = (drive.query.value * self.state).times(constant(entries))
        if self.skip != 0:
            total = total.plus(drive.value.value * constant(self.skip**2))
        if self.common is None:
            return total
        total = total.plus(self.common.scaled(drive.query.mean).times(constant(entries * (entries - 1))))
        if self.skip == 0:
            return total
        crossed = self.memory.one_sided(drive.value.value.scaled(np.sqrt(drive.key.mean)))
        weight = constant(self.skip * entries * self.memory.decay.step)
        return total.plus(crossed.scaled(np.sqrt(drive.query.mean)).times(weight))

    def backward(self, gradient: Pairs) -> Gradients:
        r"""From D at the outputs, per channel: the derivatives of ``outputs`` in each stream's moments, transposed.

        With \(\Lambda(Y)\) the covariance of the adjoint state that y of covariance Y drives, queries get
        \(N D\circ R\), keys \(N\,V\circ tt\circ\Lambda(D\circ Q)\), values the same with K for V, and both what the
        means and the skip pass; steps \(\Lambda\circ E[\xi\xi]\). An entry of a query or key is seen by every channel
        of its heads, so that per channel of the outputs it counts once for every entry.
        """
        drive, memory, entries = self.drive, self.memory, float(self.drive.entries)
        key, value = drive.key, drive.value
        one, both = constant(entries), constant(entries * (entries - 1))
        adjoint = memory.adjoint_state(gradient * drive.query.value).times(one)
        stepped = memory.stepped(adjoint)
        to_value = stepped * key.value
        common: Pairs | None = None
        if self.common is not None:
            common = memory.adjoint_state(gradient.scaled(drive.query.mean)).times(both)
            to_value = to_value.plus(memory.stepped(common).scaled(key.mean))
        if self.skip != 0:
            to_value = to_value.plus(gradient * constant(self.skip**2))
        if self.skip != 0 and self.common is not None:
            crossed = memory.one_sided_later(gradient.scaled(np.sqrt(drive.query.mean)))
            weight = constant(self.skip * entries * memory.decay.step)
            to_value = to_value.plus(crossed.scaled(np.sqrt(key.mean)).times(weight))
        step = None
        if memory.decay.random:
            step = adjoint.times(memory.moved(self.state, key.value * value.value))
            if common is not None and self.common is not None:
                step = step.plus(common.times(memory.moved(self.common, value.value.scaled(key.mean))))
        return Gradients((gradient * self.state).times(one), stepped.times(value.value), to_value, step)


def summed(parts: list[tuple[float, Pairs]]) -> Pairs:
    """The sum of weight * part, in the memory of the parts."""
    (weight, first), *others = parts
    total = first.times(constant(weight))
    for weight, part in others:
        total = total.plus(part.times(constant(weight)))
    return total
