r"""Gaussian kernels of activations: \(K_f(\rho) = E[f(su)f(tv)]\), u and v standard normals of correlation rho.

A smooth activation has a power series in rho (``hermite``). Rectified powers have a slowly converging series and a
closed form (``arc_cosine``), which is used instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float64

from catenary.theory.feed_forward.activations import Activation, activation
from catenary.theory.feed_forward.hermite import Array, Series, hermite_coefficients, hermite_series
from catenary.theory.positions.pairs import Matrix, Pairs, Vector

Kernel = Callable[[Array], Array]
PairKernel = Callable[[Pairs], Pairs]


@dataclass(frozen=True)
class ActivationKernels:
    """K_f and K_f' of one activation at one input scale s."""

    value: Kernel
    derivative: Kernel


@dataclass(frozen=True)
class PairKernels:
    """K_f and K_f' of one activation where every position has its own input scale."""

    value: PairKernel
    derivative: PairKernel


def activation_kernels(name: str, scale: float) -> ActivationKernels:
    r"""The kernels \(K_f(\rho)\), \(K_{f'}(\rho)\) of activation ``name`` for inputs of standard deviation ``scale``.

    \[K_f(\rho) = E[f(su)f(sv)], \quad (u, v)\ \text{standard normal with correlation}\ \rho .\]

    Args:
        name: transformers' name of the activation (``silu``, ``gelu``, ``gelu_new``, ``relu``, ...).
        scale: s > 0, the standard deviation of the pre-activation.

    Raises:
        NotApplicable: for a name without kernels, or a scale at which the Hermite series does not converge.
    """
    return kernels_at(activation(name), scale)


@lru_cache(maxsize=256)
def kernels_at(function: Activation, scale: float) -> ActivationKernels:
    """The kernels of ``function`` for inputs of one standard deviation; ``NotApplicable`` as above."""
    if function.closed is None:
        value = hermite_series(function.value, scale, function.kinks)
        return ActivationKernels(value, hermite_series(function.derivative, scale, function.kinks))
    closed = function.closed
    outer, inner = scale ** (2 * closed.degree), scale ** (2 * closed.degree - 2)
    return ActivationKernels(lambda rho: outer * closed.value(rho), lambda rho: inner * closed.derivative(rho))


def kernels_between(function: Activation, scales: Vector) -> PairKernels:
    r"""The kernels \(E[f(s_iu)f(s_jv)]\), \(E[f'(s_iu)f'(s_jv)]\) for positions of standard deviations ``scales``.

    By \(\sum_k a_k(s_i)a_k(s_j)\rho^k\), exact on the diagonal, or in closed form for rectified powers.

    Raises:
        NotApplicable: where a Hermite series does not converge.
    """
    if function.closed is None:
        value = hermite_coefficients(function.value, scales, function.kinks)
        derivative = hermite_coefficients(function.derivative, scales, function.kinks)
        return PairKernels(lambda rho: _between(value, rho), lambda rho: _between(derivative, rho))
    closed = function.closed
    outer, inner = scales**closed.degree, scales ** (closed.degree - 1)
    return PairKernels(
        lambda rho: rho.map(closed.value).scaled(outer), lambda rho: rho.map(closed.derivative).scaled(inner)
    )


def product(first: Kernel, second: Kernel) -> Kernel:
    """The product of two kernels; series stay a series, which is one sum to evaluate instead of two."""
    if isinstance(first, Series) and isinstance(second, Series):
        return first.product(second)
    return lambda rho: first(rho) * second(rho)


def total(first: Kernel, second: Kernel) -> Kernel:
    """The sum of two kernels."""
    if isinstance(first, Series) and isinstance(second, Series):
        return first.plus(second)
    return lambda rho: first(rho) + second(rho)


def times(factor: float, kernel: Kernel) -> Kernel:
    """A kernel times a number."""
    if isinstance(kernel, Series):
        return kernel.times(factor)
    return lambda rho: factor * kernel(rho)


def _between(coefficients: Float64[np.ndarray, "n terms"], rho: Pairs) -> Pairs:
    """The sum over k of a_k(i) a_k(j) rho_ij^k, by Horner's rule."""
    matrix: Matrix = np.multiply.outer(coefficients[:, -1], coefficients[:, -1])
    same = coefficients[:, -1] ** 2
    near = np.broadcast_to(same[:, None], rho.near.shape) if rho.near.size else rho.near
    for column in coefficients.T[-2::-1]:
        matrix *= rho.matrix
        matrix += column[:, None] * column
        same = same * rho.same + column**2
        near = near * rho.near + column[:, None] ** 2 if rho.near.size else near
    return Pairs(matrix, same, near)
