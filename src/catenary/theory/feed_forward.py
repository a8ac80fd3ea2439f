"""The feed-forward branch at birth: what it adds to the covariance of two tokens, and to that of their gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

from catenary.architecture import FeedForward
from catenary.theory.activations import Kernel, Series, activation_kernels
from catenary.theory.mixers import Outcome
from catenary.theory.pairs import Pairs


@dataclass(frozen=True)
class FeedForwardKernels:
    r"""The two maps of a feed-forward branch, both functions of the correlation \(\rho\) of two normalised inputs.

    ``forward`` is \(\Phi(\rho)\), the covariance per coordinate of the two outputs; ``backward`` is \(\chi(\rho)\),
    the factor from the covariance of the outputs' gradients to that of the inputs' gradients.
    """

    forward: Kernel
    backward: Kernel


@dataclass(frozen=True)
class FeedForwardMixer:
    r"""A feed-forward network behind a norm: \(\Phi(R)\) forward, \(D\circ\chi(R)\) backward."""

    kernels: FeedForwardKernels

    def forward(self, x: Pairs) -> Outcome:
        """The pass over inputs of unit diagonal."""
        return Outcome(x.map(self.kernels.forward), PassedFeedForward(self.kernels, x))


@dataclass(frozen=True, eq=False)
class PassedFeedForward:
    """The forward pass of a feed-forward network."""

    kernels: FeedForwardKernels
    x: Pairs

    def backward(self, gradient: Pairs) -> Pairs:
        r"""\(D\circ\chi(R)\)."""
        return self.x.map(self.kernels.backward).times(gradient)


def feed_forward_kernels(branch: FeedForward, width: int) -> FeedForwardKernels:
    r"""\(\Phi\) and \(\chi\) for independent Gaussian weights and infinite widths.

    With \(s^2 = d\sigma_{in}^2\), m the inner width and \(\sigma\) the std of the output matrix,

    \[\text{plain:}\quad \Phi = m\sigma^2 K_f(\rho), \qquad \chi = m\sigma^2 s^2 K_{f'}(\rho);\]
    \[\text{gated:}\quad \Phi = m\sigma^2 s^2\rho K_f(\rho), \qquad
      \chi = m\sigma^2 s^2 [s^2\rho K_{f'}(\rho) + K_f(\rho)].\]

    Exact at infinite width; the error at width d is O(1/d). Derived here.

    Args:
        branch: the branch as initialised.
        width: d, the width of the residual stream.

    Raises:
        NotApplicable: when the activation has no known kernel.
    """
    variance = width * branch.input_std**2
    kernels = activation_kernels(branch.activation, math.sqrt(variance))
    gain = branch.width * branch.output_std**2
    value, slope = kernels.value, kernels.derivative
    if not branch.gated:
        return FeedForwardKernels(_times(gain, value), _times(gain * variance, slope))
    both = _sum(_times(variance, _raised(slope)), value)
    return FeedForwardKernels(_times(gain * variance, _raised(value)), _times(gain * variance, both))


def _times(factor: float, kernel: Kernel) -> Kernel:
    """The kernel factor * K; a series stays a series, which is one sum to evaluate instead of several."""
    if isinstance(kernel, Series):
        return kernel.times(factor)
    return lambda rho: factor * kernel(rho)


def _raised(kernel: Kernel) -> Kernel:
    """The kernel rho * K(rho)."""
    if isinstance(kernel, Series):
        return kernel.raised()
    return lambda rho: rho * kernel(rho)


def _sum(first: Kernel, second: Kernel) -> Kernel:
    if isinstance(first, Series) and isinstance(second, Series):
        return first.plus(second)
    return lambda rho: first(rho) + second(rho)
