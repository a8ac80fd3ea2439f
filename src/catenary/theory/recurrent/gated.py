r"""Griffin's gated recurrence (RG-LRU) at birth: channels that decay at their own rates behind a convolution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from catenary.theory.mixers import Outcome
from catenary.theory.positions.pairs import Pairs, Vector, constant
from catenary.theory.recurrent.memory import Memory
from catenary.theory.recurrent.reading import summed
from catenary.theory.recurrent.streams import PassedStream, Stream
from catenary.theory.recurrent.taps import Taps

OPEN = 0.5
"""Gates at birth: sigmoids of inputs whose variance is the square of the weights' scale, 1e-4 in published models."""


@dataclass(frozen=True, eq=False)
class GatedMixer:
    r"""\(W_{out}(f(W_yx)\circ h)\), \(h_i = ah_{i-1} + \tfrac12m_iz_i\), \(m_1 = 1\), \(m_i = \sqrt{1-a^2}\) behind it.

    Gates stand at 1/2, so that a channel is a fixed decay a. Its convolution z has the covariance
    \(Z = s^2\sigma_w^2TX\), its state \(P_a = \tfrac14A_aM_aZM_aA_a^\top\) with \(M_a = diag(m)\). With P the mean over
    channels, \(\Gamma\) the second moment of the branch, and g = (channels) \(\sigma^2\),

    \[X \to g\,\Gamma\circ P, \qquad
      D \to g\,[\Gamma^*(D\circ P) + \tfrac14s^2\sigma_w^2\,T^*\langle M_aA_a^\top(D\circ\Gamma)A_aM_a\rangle].\]

    Exact at infinite width but for the gates. Derived here: ``docs/recurrent.md``.

    Attributes:
        gain: g.
        branch: f(W_y x).
        taps: T.
        variance: \(s^2\sigma_w^2\).
        memories: the channels' decays and their shares.
    """

    gain: float
    branch: Stream
    taps: Taps
    variance: float
    memories: tuple[tuple[float, Memory], ...]

    def forward(self, x: Pairs) -> Outcome:
        """The pass over inputs of covariance ``x``, behind a norm."""
        branch = self.branch.forward(x)
        inside = self.taps.earlier(x).times(constant(OPEN**2 * self.variance))
        state = summed([
            (share, memory.summed(inside.scaled(entering(memory)))) for share, memory in self.memories
        ])
        added = (branch.value * state).times(constant(self.gain))
        return Outcome(added, PassedGated(self, branch, state))


@dataclass(frozen=True, eq=False)
class PassedGated:
    """The forward pass: the branch, and P."""

    mixer: GatedMixer
    branch: PassedStream
    state: Pairs

    def backward(self, gradient: Pairs) -> Pairs:
        """Through the branch, and through the channels' states and their convolution."""
        mixer = self.mixer
        inner = gradient * self.branch.value
        sent = summed([
            (share, memory.summed_later(inner).scaled(entering(memory))) for share, memory in mixer.memories
        ])
        through = mixer.taps.later(sent).times(constant(OPEN**2 * mixer.variance))
        return through.plus(self.branch.backward(gradient * self.state)).times(constant(mixer.gain))


def entering(memory: Memory) -> Vector:
    """M: what a token enters with, sqrt(1 - a^2), and 1 for the first one."""
    roots = np.full(memory.positions.sizes.size, math.sqrt(-math.expm1(2 * math.log(memory.decay.keep))))
    roots[0] = 1.0
    return roots
