r"""A gate on attention's outputs, driven by the same inputs: it correlates between tokens as they do."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from catenary.theory.feed_forward.activations import Activation
from catenary.theory.feed_forward.kernels import PairKernels, kernels_at, kernels_between
from catenary.theory.mixers import Mixer, Outcome, Passed
from catenary.theory.positions.pairs import Pairs, Vector, constant


@dataclass(frozen=True, eq=False)
class Gated:
    r"""A mixer whose outputs are multiplied by f(Gx), G of independent entries: one gate per channel or per head.

    With \(\tau^2X_{ii}\), \(\tau^2 = d\sigma_G^2\), the variance of a gate's input and P the covariance of the
    mixer's outputs, the outputs have the covariance \(\Gamma\circ P\), \(\Gamma_{ik} = E[f(g_i)f(g_k)]\), and a
    gradient of covariance D becomes

    \[mix^*(\Gamma\circ D) + \tau^2\,\Gamma'\circ P\circ D,\quad \Gamma'_{ik} = E[f'(g_i)f'(g_k)].\]

    A gate per head has the same second moments as one per channel. Exact at infinite width. Derived here.

    Attributes:
        mixer: what is gated.
        function: f.
        variance: \(\tau^2\).
    """

    mixer: Mixer
    function: Activation
    variance: float

    def forward(self, x: Pairs) -> Outcome:
        """The pass of the mixer, and the gates' kernels at ``x``."""
        inner = self.mixer.forward(x)
        scales = np.sqrt(self.variance * x.same)
        correlation = x.scaled(1 / np.sqrt(x.same))
        kernels = self._kernels(scales)
        gate = kernels.value(correlation)
        slope = kernels.derivative(correlation)
        added = gate * inner.added
        driven = slope.times(inner.added).times(constant(self.variance))
        return Outcome(added, PassedGate(inner.passed, gate, driven))

    def _kernels(self, scales: Vector) -> PairKernels:
        """The gates' kernels where inputs have the standard deviations ``scales``."""
        if np.ptp(scales) <= ALIKE * scales.max():
            alike = kernels_at(self.function, math.sqrt(float(np.mean(scales**2))))
            return PairKernels(lambda rho: rho.map(alike.value), lambda rho: rho.map(alike.derivative))
        return kernels_between(self.function, scales)


ALIKE = 0.03
"""Relative spread of the gates' input scales up to which one kernel serves all: behind a norm, its epsilon."""


@dataclass(frozen=True, eq=False)
class PassedGate:
    r"""The forward pass: ``gate`` is \(\Gamma\), ``driven`` is \(\tau^2\Gamma'\circ P\)."""

    mixer: Passed
    gate: Pairs
    driven: Pairs

    def backward(self, gradient: Pairs) -> Pairs:
        """Through the mixer, and through the gates."""
        return self.mixer.backward(self.gate * gradient).plus(self.driven * gradient)
