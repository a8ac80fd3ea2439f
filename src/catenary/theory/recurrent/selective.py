r"""Mamba 1 at birth: states whose keys, queries and steps are linear in the values that they store."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catenary.architecture import SelectiveStateSpace
from catenary.theory.mixers import Outcome
from catenary.theory.positions.pairs import Pairs, Vector, constant
from catenary.theory.recurrent.memory import Memory
from catenary.theory.recurrent.reading import Drive, Gradients, Read, summed
from catenary.theory.recurrent.streams import PassedStream, Stream


@dataclass(frozen=True, eq=False)
class Projected:
    """Entries of random linear maps of the values: their second moments, and means of 0."""

    value: Pairs
    mean: Vector


@dataclass(frozen=True, eq=False)
class SelectiveMixer:
    r"""\(W_{out}(silu(W_zx)\circ y)\), y the values u and what N entries of a state give back of them.

    With V the second moment of u over m channels, b and c have that of \(\kappa V\) per entry,
    \(\kappa=m\sigma_p^2\), and behind a norm \(V_{ik}/\sqrt{V_{ii}V_{kk}}\). Entry n forgets at n times the step. So
    \(P = V + N\,Q\circ\langle R_n(K\circ V)\rangle\), Q = K the moments of c and b, the mean over entries and
    channels, and a gradient at b, c or a step's input reaches u with \(\kappa\), or 1/V and without the part along b
    or c itself.
    Steps' inputs have the variance r \(\sigma_t^2\) times that of an entry. Products of b and c are the same for all
    channels and scatter between networks: the law is their mean. Derived here: ``docs/recurrent.md``.

    Attributes:
        word: the layer.
        values, gate: the streams.
        memories: the decays and their shares.
    """

    word: SelectiveStateSpace
    values: Stream
    gate: Stream
    memories: tuple[tuple[float, Memory], ...]

    def forward(self, x: Pairs) -> Outcome:
        """The pass over inputs of covariance ``x``, behind a norm."""
        values, gate = self.values.forward(x), self.gate.forward(x)
        scale = self._scale(values.value)
        entry = Projected(values.value.scaled(scale), np.zeros_like(scale))
        drive = Drive(entry, entry, values, self.word.state)
        reads = tuple((share, Read.of(memory, drive, 1.0)) for share, memory in self.memories)
        outputs = summed([(share, read.outputs) for share, read in reads])
        added = (gate.value * outputs).times(constant(self.word.width * self.word.output_std**2))
        return Outcome(added, PassedSelection(self, values, gate, reads, outputs, scale))

    def _scale(self, values: Pairs) -> Vector:
        """What multiplies a token's values in its entries, as a root of energy."""
        strength = self.word.width * self.word.project_std**2
        if self.word.norm is None:
            return np.full_like(values.same, strength**0.5)
        return np.asarray((values.same + self.word.norm.epsilon / strength) ** -0.5)


@dataclass(frozen=True, eq=False)
class PassedSelection:
    """The forward pass."""

    mixer: SelectiveMixer
    values: PassedStream
    gate: PassedStream
    reads: tuple[tuple[float, Read], ...]
    outputs: Pairs
    scale: Vector

    def backward(self, gradient: Pairs) -> Pairs:
        """Through queries, keys, steps and values to the values, and through the gate."""
        word = self.mixer.word
        inner = gradient * self.gate.value
        found: Gradients | None = None
        for share, read in self.reads:
            part = read.backward(inner).times(share)
            found = part if found is None else found.plus(part)
        assert found is not None
        assert found.step is not None
        across, along = (1 - 1 / word.state, 1 - 1 / word.rank) if word.norm else (1.0, 1.0)
        projected = found.query.plus(found.key).times(constant(across))
        projected = projected.plus(found.step.times(constant(along * word.rank * word.step_std**2)))
        total = self.values.backward(found.value.plus(projected.scaled(self.scale)))
        total = total.plus(self.gate.backward(gradient * self.outputs))
        return total.times(constant(word.width * word.output_std**2))
