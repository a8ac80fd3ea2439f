"""The feed-forward branch at birth: what it adds to the covariance of two tokens, and to that of their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from catenary.architecture import Experts, FeedForward, Gate
from catenary.errors import NotApplicable
from catenary.theory.feed_forward.activations import ACTIVATIONS, Activation, activation, cut_line
from catenary.theory.feed_forward.experts import Weights, routing
from catenary.theory.feed_forward.hermite import Array
from catenary.theory.feed_forward.kernels import (
    Kernel,
    PairKernels,
    kernels_at,
    kernels_between,
    product,
    times,
    total,
)
from catenary.theory.mixers import Outcome
from catenary.theory.positions.pairs import Pairs, Vector

SPREAD, MOST_SPREAD = 5e-3, 0.1
"""Relative spread of the inputs' variances below which they count as one: each position's kernels are off by less than
that. And the one above which experts weighed on their inputs have no law; at a spread of .08 they err by .4 %."""


@dataclass(frozen=True)
class FeedForwardKernels:
    r"""The two maps of a feed-forward branch, both functions of the correlation \(\rho\) of two inputs.

    ``forward`` is \(\Phi(\rho)\), the covariance per coordinate of the two outputs; ``backward`` is \(\chi(\rho)\),
    the factor from the covariance of the outputs' gradients to that of the inputs' gradients.
    """

    forward: Kernel
    backward: Kernel

    def weighed(self, weights: Weights) -> FeedForwardKernels:
        r"""The network behind random weights: \(W\Phi\) and \(W\chi + S\Phi\)."""
        through = total(product(weights.value, self.backward), product(weights.slope, self.forward))
        return FeedForwardKernels(product(weights.value, self.forward), through)


@dataclass(frozen=True)
class FeedForwardMixer:
    r"""A feed-forward network: \(\Phi(R)\) forward, \(D\circ\chi(R)\) backward.

    ``normalised`` inputs have unit diagonal, up to a norm's epsilon. Other inputs of covariance X have the
    pre-activation variance \(s^2X_{ii}\): where it is the same for all positions (post-branch layers, whose branches
    all end in a norm) the kernels are taken at that variance, elsewhere (the first layer of a post-norm network) at
    those of each pair. So are those of experts: a choice's kernel has a cusp at equal tokens, where epsilon shows.
    """

    branch: FeedForward
    width: int
    normalised: bool

    def forward(self, x: Pairs) -> Outcome:
        """The pass over inputs of covariance ``x``."""
        if self.normalised and self.branch.experts is None:
            return _alike(feed_forward_kernels(self.branch, self.width), x)
        deviations = np.sqrt(x.same)
        correlation = x.scaled(1 / deviations)
        level = float(x.same.mean())
        if np.ptp(x.same) <= SPREAD * level:
            return _alike(feed_forward_kernels(self.branch, self.width, level), correlation)
        maps = _unlike_maps(self.branch, self.width, deviations)
        return Outcome(maps.forward(correlation), PassedFeedForward(maps.backward, correlation))


@dataclass(frozen=True, eq=False)
class PassedFeedForward:
    """The forward pass of a feed-forward network: its backward map, and the correlation it is taken at."""

    chi: Callable[[Pairs], Pairs]
    correlation: Pairs

    def backward(self, gradient: Pairs) -> Pairs:
        r"""\(D\circ\chi(R)\)."""
        return self.chi(self.correlation).times(gradient)


def feed_forward_kernels(branch: FeedForward, width: int, level: float = 1.0) -> FeedForwardKernels:
    r"""\(\Phi\) and \(\chi\) for independent Gaussian weights and infinite widths, and inputs of variance ``level``.

    With \(s^2 = d\sigma_{in}^2\), m the inner width, \(\sigma\) the std of the output matrix, and kernels of
    pre-activations of variance \(s^2X\), X the ``level``,

    \[\text{plain:}\quad \Phi = m\sigma^2 K_f(\rho), \qquad \chi = m\sigma^2 s^2 K_{f'}(\rho);\]
    \[\text{gated:}\quad \Phi = m\sigma^2 K_f(\rho)K_g(\rho), \qquad
      \chi = m\sigma^2 s^2 [K_{f'}(\rho)K_g(\rho) + K_f(\rho)K_{g'}(\rho)],\]

    where g(x) = x + offset, cut at the limit if there is one; without both \(K_g = s^2X\rho\), \(K_{g'} = 1\).
    A gate or experts multiply the network by random weights (``FeedForwardKernels.weighed``); a shared network adds.
    In a bottleneck of l channels and the stds a, b, \(s^2 = da^2\,l\sigma_{in}^2\) and \(m\sigma^2\) becomes
    \(lb^2\,m\sigma^2\): linear maps of independent weights multiply covariances, forward and backward.
    Exact at infinite width; the error at width d is O(1/d). Derived here.

    Args:
        branch: the branch as initialised.
        width: d, the width of the residual stream.
        level: X, the variance of the inputs' coordinates, 1 behind a norm.

    Raises:
        NotApplicable: an activation without a kernel, or words that have none here.
    """
    kernels = _network(branch, width, level)
    if branch.gate is not None:
        kernels = kernels.weighed(_gate(branch.gate, width * branch.gate.std**2, level))
    if branch.experts is None:
        return kernels
    experts = branch.experts
    variance, alone = width * experts.router_std**2, replace(experts, shared=None)
    if experts.weighed == "input":
        kernels = _weighed_inputs(branch, alone, width, level)
    else:
        kernels = kernels.weighed(routing(alone, variance, level))
    if experts.shared is None:
        return kernels
    shared = feed_forward_kernels(experts.shared, width, level)
    return FeedForwardKernels(
        total(kernels.forward, shared.forward), total(kernels.backward, shared.backward)
    )


def _network(branch: FeedForward, width: int, level: float) -> FeedForwardKernels:
    """One network without its gate and its router."""
    gain, variance = _strengths(branch, width)
    scale = math.sqrt(variance * level)
    inner = kernels_at(_inner(branch), scale)
    if not branch.gated:
        return FeedForwardKernels(times(gain, inner.value), times(gain * variance, inner.derivative))
    line = kernels_at(cut_line(branch.limit, branch.offset), scale)
    both = total(product(inner.derivative, line.value), product(inner.value, line.derivative))
    return FeedForwardKernels(times(gain, product(inner.value, line.value)), times(gain * variance, both))


def _strengths(branch: FeedForward, width: int) -> tuple[float, float]:
    """The energy gained behind the activation, and the pre-activations' variance per unit of the input's."""
    gain, variance = branch.width * branch.output_std**2, branch.input_std**2
    if branch.bottleneck is None:
        return gain, width * variance
    inner = branch.bottleneck
    return gain * inner.width * inner.output_std**2, variance * inner.width * width * inner.input_std**2


ELASTICITY_STEP = 1.05
"""Ratio of the two levels between which a network's growth with the size of its input is measured."""


def _weighed_inputs(branch: FeedForward, experts: Experts, width: int, level: float) -> FeedForwardKernels:
    r"""Experts \(h(g_ex)\) whose weights multiply their inputs: near the weights' rms w as \((g_e/w)^p\,h(wx)\).

    p is the growth of the network's rms output with the size of its input at w, so that the router's weights to the
    power p are weights on outputs: first order in the spread of the weights around w. Derived here.

    Raises:
        NotApplicable: weights that are divided by their sum.
    """
    variance = width * experts.router_std**2
    strength = float(routing(experts, variance, level).value(np.ones(1))[0]) / experts.top
    kernels, larger = (_network(branch, width, level * strength * step) for step in (1.0, ELASTICITY_STEP))
    one = np.ones(1)
    power = math.log(float(larger.forward(one)[0] / kernels.forward(one)[0])) / math.log(ELASTICITY_STEP)
    weights = routing(experts, variance, level, round(power, 5))  # one table for layers whose powers differ by 1e-8
    scaled = Weights(times(strength**-power, weights.value), times(strength**-power, weights.slope))
    return FeedForwardKernels(kernels.forward, times(strength, kernels.backward)).weighed(scaled)


@dataclass(frozen=True)
class _Maps:
    """As ``FeedForwardKernels``, with kernels that differ between pairs of positions."""

    forward: Callable[[Pairs], Pairs]
    backward: Callable[[Pairs], Pairs]

    def weighed(self, weights: Weights) -> _Maps:
        """The network behind random weights."""

        def forward(rho: Pairs) -> Pairs:
            return self.forward(rho).times(rho.map(weights.value))

        def backward(rho: Pairs) -> Pairs:
            through = self.backward(rho).times(rho.map(weights.value))
            return through.plus(self.forward(rho).times(rho.map(weights.slope)))

        return _Maps(forward, backward)

    def plus(self, other: _Maps) -> _Maps:
        """Two networks side by side."""
        return _Maps(
            lambda rho: self.forward(rho).plus(other.forward(rho)),
            lambda rho: self.backward(rho).plus(other.backward(rho)),
        )


def _unlike_maps(branch: FeedForward, width: int, deviations: Vector) -> _Maps:
    r"""\(\Phi\) and \(\chi\) of the pairs of positions whose inputs have the standard deviations ``deviations``.

    The weights of a gate or router are taken at the inputs' mean variance. Which experts are chosen does not depend on
    it, and how unequal their weights are does so little (1 % of W for 30 % of variance).
    """
    level = float((deviations**2).mean())
    experts = branch.experts
    if experts is not None and experts.weighed == "input":
        return _grown_maps(branch, width, deviations)
    maps = _network_maps(branch, width, deviations)
    if branch.gate is not None:
        maps = maps.weighed(_gate(branch.gate, width * branch.gate.std**2, level))
    if experts is None:
        return maps
    maps = maps.weighed(routing(replace(experts, shared=None), width * experts.router_std**2, level))
    return maps if experts.shared is None else maps.plus(_unlike_maps(experts.shared, width, deviations))


def _grown_maps(branch: FeedForward, width: int, deviations: Vector) -> _Maps:
    r"""The maps at the inputs' mean variance, times a power of each input's own: first order in how they differ.

    With a the variance over its mean and p, q the growth of the logarithms of \(\Phi(1)\) and \(\chi(1)\) with
    that of the variance, \((a_ia_k)^{p/2}\Phi(\rho)\) and \((a_ia_k)^{q/2}\chi(\rho)\). Derived here.

    Raises:
        NotApplicable: variances that differ by more than ``MOST_SPREAD``.
    """
    level = float((deviations**2).mean())
    ratio = deviations**2 / level
    if np.ptp(ratio) > MOST_SPREAD:
        raise NotApplicable(
            "weights on experts' inputs have no law where the size of those inputs differs between positions by more "
            f"than {MOST_SPREAD:.0%} (here by {np.ptp(ratio):.1%})"
        )
    here, above = (feed_forward_kernels(branch, width, level * step) for step in (1.0, ELASTICITY_STEP))

    def grown(kernel: Kernel, larger: Kernel) -> Callable[[Pairs], Pairs]:
        one = np.ones(1)
        power = math.log(float(larger(one)[0] / kernel(one)[0])) / math.log(ELASTICITY_STEP)
        factor = ratio ** (power / 2)
        return lambda rho: rho.map(kernel).scaled(factor)

    return _Maps(grown(here.forward, above.forward), grown(here.backward, above.backward))


def _network_maps(branch: FeedForward, width: int, deviations: Vector) -> _Maps:
    """One network without its gate and its router."""
    gain, variance = _strengths(branch, width)
    scales = math.sqrt(variance) * deviations
    inner = kernels_between(_inner(branch), scales)
    if not branch.gated:
        return _Maps(_scaled(gain, inner.value), _scaled(gain * variance, inner.derivative))
    line = kernels_between(cut_line(branch.limit, branch.offset), scales)

    def forward(rho: Pairs) -> Pairs:
        return inner.value(rho).times(line.value(rho))

    def backward(rho: Pairs) -> Pairs:
        return _slopes(inner, line, rho).plus(_slopes(line, inner, rho))

    return _Maps(_scaled(gain, forward), _scaled(gain * variance, backward))


def _slopes(first: PairKernels, second: PairKernels, rho: Pairs) -> Pairs:
    return first.derivative(rho).times(second.value(rho))


def _scaled(factor: float, kernel: Callable[[Pairs], Pairs]) -> Callable[[Pairs], Pairs]:
    root = np.full(1, math.sqrt(factor))
    return lambda rho: kernel(rho).scaled(root)


def _alike(kernels: FeedForwardKernels, correlation: Pairs) -> Outcome:
    chi = kernels.backward
    return Outcome(correlation.map(kernels.forward), PassedFeedForward(lambda rho: rho.map(chi), correlation))


def _inner(branch: FeedForward) -> Activation:
    """The activation, cut where the branch says so."""
    if not branch.gated and (branch.limit is not None or branch.offset):
        raise NotApplicable("an offset or a limit belongs to a gated feed-forward network, and this one is plain")
    return activation(branch.activation, branch.limit)


def _gate(gate: Gate, variance: float, level: float) -> Weights:
    r"""A gate g(Wx) per channel or per token: \(W = K_g\), \(S = d\sigma^2K_{g'}\)."""
    if gate.per == "head":
        raise NotApplicable("a feed-forward network has no heads to gate")
    kernels = kernels_at(GATES[gate.function], math.sqrt(variance * level))
    return Weights(kernels.value, times(variance, kernels.derivative))


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0, x))


GATES = {"sigmoid": ACTIVATIONS["sigmoid"], "softplus": Activation(_softplus, ACTIVATIONS["sigmoid"].value)}
"""The functions of gates."""
