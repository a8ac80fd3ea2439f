r"""Layers that read decaying states at birth: linear attention with fixed decays, Mamba 2's state spaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catenary.architecture import Norm
from catenary.theory.mixers import Outcome
from catenary.theory.positions.pairs import Pairs, Vector, constant
from catenary.theory.recurrent.memory import Memory
from catenary.theory.recurrent.reading import Drive, Gradients, Read, summed
from catenary.theory.recurrent.streams import PassedStream, Stream


@dataclass(frozen=True, eq=False)
class RecurrentMixer:
    r"""Groups of heads behind a gate and a norm: \(W_{out}\,norm(gate\circ o)\) or \(W_{out}(gate\circ norm(o))\).

    The heads of a group share its norm; P is the mean over its heads of the outputs' covariance (``Read``),
    \(\Gamma\) the gate's second moment. m channels and \(\sigma\) the std of the output matrix give the gain
    \(g = m\sigma^2\). Forward \(g\,N(\Gamma\circ P)\) with the norm's scaling N, averaged over the groups; backward
    each stream's own map of the gradients (``Read.backward``), the gate's being \(P\circ D\). A norm is taken at the
    mean over heads, an error of order 1/heads. Derived here: ``docs/recurrent.md``.

    Attributes:
        gain: g.
        query, key, value, gate: the streams.
        step_variance: of the input of softplus in a step, per unit of the input's variance.
        entries: N.
        skip: c.
        groups: the shares of each group's heads and their memories.
        norm: None: none.
        norm_last: the norm sees gated outputs.
    """

    gain: float
    query: Stream
    key: Stream
    value: Stream
    gate: Stream
    step_variance: float
    entries: int
    skip: float
    groups: tuple[tuple[tuple[float, Memory], ...], ...]
    norm: Norm | None
    norm_last: bool

    def forward(self, x: Pairs) -> Outcome:
        """The pass over inputs of covariance ``x``, behind a norm."""
        query, key, value = self.query.forward(x), self.key.forward(x), self.value.forward(x)
        drive = Drive(query, key, value, self.entries)
        gate = self.gate.forward(x)
        groups = tuple(self._group(shares, drive, gate.value) for shares in self.groups)
        added = summed([(self.gain / len(groups), group.added) for group in groups])
        passed = tuple(group.passed for group in groups)
        return Outcome(added, PassedRecurrence(self, (query, key, value), gate, passed))

    def _group(self, shares: tuple[tuple[float, Memory], ...], drive: Drive, gate: Pairs) -> _Group:
        reads = tuple((share, Read.of(memory, drive, self.skip)) for share, memory in shares)
        outputs = summed([(share, read.outputs) for share, read in reads])
        gated = gate * outputs
        scale: Vector | None = None
        if self.norm is not None:
            scale = 1 / np.sqrt((gated if self.norm_last else outputs).same + self.norm.epsilon)
        return _Group(gated if scale is None else gated.scaled(scale), PassedGroup(reads, outputs, scale))


@dataclass(frozen=True, eq=False)
class _Group:
    added: Pairs
    passed: PassedGroup


@dataclass(frozen=True, eq=False)
class PassedGroup:
    """One group's forward pass: its heads by decay, their mean outputs, the norm's scale."""

    reads: tuple[tuple[float, Read], ...]
    outputs: Pairs
    scale: Vector | None


@dataclass(frozen=True, eq=False)
class PassedRecurrence:
    """The forward pass of all groups."""

    mixer: RecurrentMixer
    streams: tuple[PassedStream, PassedStream, PassedStream]
    gate: PassedStream
    groups: tuple[PassedGroup, ...]

    def backward(self, gradient: Pairs) -> Pairs:
        """Through queries, keys, values, steps and gates."""
        mixer, (query, key, value) = self.mixer, self.streams
        found: Gradients | None = None
        to_gate: Pairs | None = None
        for group in self.groups:
            seen = gradient if group.scale is None else gradient.scaled(group.scale)
            gated = (seen * group.outputs).times(constant(1 / len(self.groups)))
            to_gate = gated if to_gate is None else to_gate.plus(gated)
            inner = seen * self.gate.value
            for share, read in group.reads:
                part = read.backward(inner).times(share / len(self.groups))
                found = part if found is None else found.plus(part)
        assert found is not None
        assert to_gate is not None
        total = query.backward(found.query).plus(key.backward(found.key))
        total = total.plus(value.backward(found.value)).plus(self.gate.backward(to_gate))
        if found.step is not None:
            total = total.plus(found.step.times(constant(mixer.step_variance)))
        return total.times(constant(mixer.gain))
