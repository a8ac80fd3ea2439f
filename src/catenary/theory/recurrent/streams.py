"""What drives a recurrence: activations of linear maps of the input, some of them convolved over a few tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import roots_genlaguerre

from catenary.theory.feed_forward.activations import Activation
from catenary.theory.positions.pairs import Pairs, Vector, constant
from catenary.theory.recurrent.channels import Channels, averaged
from catenary.theory.recurrent.taps import Taps

NODES = 4
"""Of the distribution over channels of a kernel's squared norm; with 8 the moments move by less than 1e-3."""

GRAIN = 1e-4
"""Relative steps of the scales that kernels are made for."""


@dataclass(frozen=True, eq=False)
class Stream:
    r"""f(Wx), or f(conv(Wx)) with independent taps of variance \(\sigma_w^2\), one channel per row of W.

    Inputs of covariance X give pre-activations of covariance \(P = \tau^2X\) or \(\tau^2\sigma_w^2TX\). With taps a
    channel is Gaussian only for given taps: its variance is P times \(q = |w|^2/(K\sigma_w^2)\), a chi-square with K
    degrees of freedom over K, and its moments are averages over q. The correlation of two tokens is taken at its mean.
    Derived here.

    Attributes:
        function: f.
        variance: \(\tau^2 = d\sigma^2\), W's entries having the std \(\sigma\).
        taps: the convolution; None: none.
        tap_variance: \(\sigma_w^2\).
    """

    function: Activation
    variance: float
    taps: Taps | None = None
    tap_variance: float = 1.0

    def forward(self, x: Pairs) -> PassedStream:
        """The second moments and means of the stream over inputs of covariance ``x``."""
        inside = x if self.taps is None else self.taps.earlier(x)
        deviations = _rounded(np.sqrt(self.variance * self.tap_variance * inside.same))
        rho = inside.scaled(1 / np.sqrt(inside.same))
        found = averaged(self.function, deviations, self._channels(), rho)
        return PassedStream(self, found.value, found.slope, found.mean)

    def energy(self) -> float:
        """E[f^2] over inputs of unit variance that have been there for the whole kernel."""
        inside = self.variance * self.tap_variance * (self.taps.count if self.taps else 1)
        one = Pairs(np.ones((1, 1)), np.ones(1))
        return float(averaged(self.function, np.array([inside**0.5]), self._channels(), one).value.same[0])

    def _channels(self) -> list[Channels]:
        """Values of q and their weights."""
        if self.taps is None:
            return [Channels(1.0, 1.0)]
        count = self.taps.count
        nodes, weights = roots_genlaguerre(NODES, count / 2 - 1)
        return [Channels(2 * node / count, weight) for node, weight in zip(nodes, weights / weights.sum(), strict=True)]


def _rounded(deviations: Vector) -> Vector:
    """Rounded to ``GRAIN``: normalised tokens then share their kernels, which are the cost of a stream."""
    return np.asarray(np.exp(np.round(np.log(deviations) / GRAIN) * GRAIN))


@dataclass(frozen=True, eq=False)
class PassedStream:
    """The forward pass: E[f f], E[f' f'] by pair of tokens, E[f] by token."""

    stream: Stream
    value: Pairs
    slope: Pairs
    mean: Vector

    def backward(self, gradient: Pairs) -> Pairs:
        """Covariance of the input's gradients from one channel's; ``gradient`` is consumed."""
        stream = self.stream
        inside = gradient.times(self.slope)
        if stream.taps is not None:
            inside = stream.taps.later(inside)
        return inside.times(constant(stream.variance * stream.tap_variance))
