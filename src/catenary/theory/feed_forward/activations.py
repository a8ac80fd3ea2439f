"""Activations by transformers' names: the function, its derivative as automatic differentiation gives it, its kinks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import erf, expit, ndtr

from catenary.errors import NotApplicable
from catenary.registry import Registry
from catenary.theory.feed_forward.arc_cosine import arc_cosine
from catenary.theory.feed_forward.hermite import Array, Function


@dataclass(frozen=True)
class Homogeneous:
    """Closed kernels of an activation with f(sx) = s^degree f(x), at unit scale."""

    degree: int
    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]


@dataclass(frozen=True)
class Activation:
    """A function f, its derivative, the points where f or f' jumps, and its closed kernels where it has them."""

    value: Function
    derivative: Function
    kinks: tuple[float, ...] = ()
    closed: Homogeneous | None = None


ACTIVATIONS: Registry[Activation] = Registry("activation")


def activation(name: str, limit: float | None = None) -> Activation:
    """The activation called ``name``, its input cut at ``limit`` from above if there is one.

    Raises:
        NotApplicable: for a name that is not registered.
    """
    if name not in ACTIVATIONS:
        raise NotApplicable(
            f"no Gaussian kernel is known for the activation {name!r}; known: {', '.join(sorted(ACTIVATIONS))}"
        )
    return ACTIVATIONS[name] if limit is None else _cut(name, limit)


@lru_cache(maxsize=64)
def cut_line(limit: float | None, offset: float) -> Activation:
    """The other half of a gated unit: x + offset, x cut at ``limit`` and -``limit``."""
    if limit is None:
        return Activation(lambda x: x + offset, np.ones_like)
    return Activation(
        lambda x: np.clip(x, -limit, limit) + offset, lambda x: np.where(np.abs(x) < limit, 1.0, 0.0), (-limit, limit)
    )


@lru_cache(maxsize=64)
def _cut(name: str, limit: float) -> Activation:
    whole = ACTIVATIONS[name]
    return Activation(
        lambda x: whole.value(np.minimum(x, limit)),
        lambda x: np.where(x < limit, whole.derivative(np.minimum(x, limit)), 0.0),
        (*whole.kinks, limit),
    )


def _sigmoid_linear(slope: float) -> Activation:
    """x sigmoid(slope x)."""

    def derivative(x: Array) -> Array:
        gate = expit(slope * x)
        return np.asarray(gate * (1 + slope * x * (1 - gate)))

    return Activation(lambda x: x * expit(slope * x), derivative)


def _leaky(below: float) -> Activation:
    r"""x above 0 and \(ax\) below: \(ax + (1-a)x_+\), with \(E[uv_+] = \rho/2\)."""
    both, above = below**2 + below * (1 - below), (1 - below) ** 2
    closed = Homogeneous(
        1, lambda rho: both * rho + above * arc_cosine(rho, 1), lambda rho: both + above * arc_cosine(rho, 0)
    )
    return Activation(
        lambda x: np.where(x > 0, x, below * x), lambda x: np.where(x > 0, 1.0, below), (0.0,), closed
    )


def _relu_squared() -> Activation:
    closed = Homogeneous(2, lambda rho: arc_cosine(rho, 2), lambda rho: 4 * arc_cosine(rho, 1))
    return Activation(lambda x: np.maximum(x, 0) ** 2, lambda x: 2 * np.maximum(x, 0), (0.0,), closed)


def _gelu() -> Activation:
    return Activation(
        lambda x: x * ndtr(x), lambda x: ndtr(x) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    )


def _gelu_tanh() -> Activation:
    scale, cubic = math.sqrt(2 / math.pi), 0.044715

    def bend(x: Array) -> Array:
        return np.tanh(scale * (x + cubic * x**3))

    def derivative(x: Array) -> Array:
        return np.asarray(0.5 * (1 + bend(x)) + 0.5 * x * (1 - bend(x) ** 2) * scale * (1 + 3 * cubic * x * x))

    return Activation(lambda x: 0.5 * x * (1 + bend(x)), derivative)


def _clipped_gelu(reach: float) -> Activation:
    """gelu, cut at ``reach`` (it is never below -0.2)."""
    whole = _gelu()
    return Activation(
        lambda x: np.minimum(whole.value(x), reach), lambda x: np.where(x < reach, whole.derivative(x), 0.0), (reach,)
    )


def _mish() -> Activation:
    """x tanh(softplus x)."""

    def derivative(x: Array) -> Array:
        bend = np.tanh(np.logaddexp(0, x))
        return np.asarray(bend + x * (1 - bend**2) * expit(x))

    return Activation(lambda x: x * np.tanh(np.logaddexp(0, x)), derivative)


def _laplace() -> Activation:
    """The normal distribution function of mean 0.707107 and std 0.282095, as transformers rounds them."""
    mean, std = 0.707107, 0.282095
    return Activation(
        lambda x: 0.5 * (1 + erf((x - mean) / (std * math.sqrt(2)))),
        lambda x: np.exp(-0.5 * ((x - mean) / std) ** 2) / (std * math.sqrt(2 * math.pi)),
    )


def _xielu() -> Activation:
    """The learned function of arXiv 2411.13010 at its initial parameters (alpha_p = alpha_n = 0.8, beta = 0.5).

    transformers keeps them in bfloat16, which moves the value by less than 0.4 %.
    """
    above, below, line = 0.8, 0.8, 0.5

    def value(x: Array) -> Array:
        low = np.minimum(x, 0)
        return np.asarray(np.where(x > 0, above * x * x, below * (np.expm1(low) - low)) + line * x)

    def derivative(x: Array) -> Array:
        return np.asarray(np.where(x > 0, 2 * above * x, below * np.expm1(np.minimum(x, 0))) + line)

    return Activation(value, derivative, (0.0,))


def _sqrt_softplus() -> Activation:
    return Activation(
        lambda x: np.sqrt(np.logaddexp(0, x)), lambda x: 0.5 * expit(x) / np.sqrt(np.logaddexp(0, x))
    )


def _hard_swish() -> Activation:
    """x clip(x + 3, 0, 6) / 6."""
    return Activation(
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
        lambda x: np.where(x > 3, 1.0, np.where(x < -3, 0.0, x / 3 + 0.5)),
        (-3.0, 3.0),
    )


for _names, _activation in (
    (("silu", "swish"), _sigmoid_linear(1.0)),
    (("gelu", "gelu_python"), _gelu()),
    (("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh", "gelu_accurate"), _gelu_tanh()),
    (("gelu_10",), _clipped_gelu(10.0)),
    (("quick_gelu",), _sigmoid_linear(1.702)),
    (("relu",), _leaky(0.0)),
    (("leaky_relu",), _leaky(0.01)),
    (("prelu",), _leaky(0.25)),
    (("linear",), _leaky(1.0)),
    (("relu2",), _relu_squared()),
    (("hardswish",), _hard_swish()),
    (("tanh",), Activation(np.tanh, lambda x: 1 - np.tanh(x) ** 2)),
    (("sigmoid",), Activation(expit, lambda x: expit(x) * expit(-x))),
    (("mish",), _mish()),
    (("laplace",), _laplace()),
    (("sqrtsoftplus",), _sqrt_softplus()),
    (("xielu",), _xielu()),
):
    for _name in _names:
        ACTIVATIONS.register(_name, _activation)
