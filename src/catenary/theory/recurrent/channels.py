"""Kernels of an activation averaged over channels of different scales: one polynomial where scales are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from catenary.theory.feed_forward.activations import Activation
from catenary.theory.feed_forward.hermite import Function, hermite_coefficients, horner
from catenary.theory.feed_forward.kernels import kernels_between
from catenary.theory.positions.pairs import Matrix, Pairs, Vector, constant

FEW = 8
"""Deviations up to which pairs of them have a polynomial each: normalised tokens share one but for the first taps."""


@dataclass(frozen=True)
class Channels:
    """A share of the channels: their variance relative to the mean one, and their weight."""

    variance: float
    weight: float


@dataclass(frozen=True, eq=False)
class Averaged:
    """E[f f] and E[f' f'] by pair of tokens, and E[f] by token, over all channels."""

    value: Pairs
    slope: Pairs
    mean: Vector


def averaged(function: Activation, deviations: Vector, channels: Sequence[Channels], rho: Pairs) -> Averaged:
    r"""The moments of \(f(\sqrt{v}\,s_iu)\) over Gaussians u of correlation ``rho`` and channels of variance v.

    A derivative weighs its channel by v once more, as its gradient passes the same weights. With Hermite coefficients
    \(a_k\), two tokens have \(\sum_k\rho^k\sum_v w_va_k(\sqrt v s_i)a_k(\sqrt v s_j)\).

    Args:
        function: f.
        deviations: s, one per token.
        channels: v and their weights.
        rho: correlations of the tokens.
    """
    distinct, which = np.unique(deviations, return_inverse=True)
    mean = sum(part.weight * _coefficients(function.value, function, distinct, part)[:, 0] for part in channels)
    if function.closed is None and distinct.size <= FEW:
        values = [(part, part.weight, function.value) for part in channels]
        slopes = [(part, part.weight * part.variance, function.derivative) for part in channels]
        value, slope = (_by_class(_polynomials(function, distinct, of), which, rho) for of in (values, slopes))
    else:
        value, slope = _one_by_one(function, deviations, channels, rho)
    return Averaged(value, slope, np.asarray(mean)[which])


def _one_by_one(
    function: Activation, deviations: Vector, channels: Sequence[Channels], rho: Pairs
) -> tuple[Pairs, Pairs]:
    first, *others = channels
    value, slope = _weighed(function, deviations, first, rho)
    for part in others:
        more = _weighed(function, deviations, part, rho)
        value, slope = value.plus(more[0]), slope.plus(more[1])
    return value, slope


def _weighed(function: Activation, deviations: Vector, part: Channels, rho: Pairs) -> tuple[Pairs, Pairs]:
    kernels = kernels_between(function, deviations * part.variance**0.5)
    value = kernels.value(rho).times(constant(part.weight))
    return value, kernels.derivative(rho).times(constant(part.weight * part.variance))


def _coefficients(f: Function, function: Activation, distinct: Vector, part: Channels) -> Float64[np.ndarray, "n k"]:
    return hermite_coefficients(f, distinct * part.variance**0.5, function.kinks)


def _polynomials(
    function: Activation, distinct: Vector, parts: Sequence[tuple[Channels, float, Function]]
) -> Float64[np.ndarray, "n n k"]:
    """For every two deviations the coefficients of their kernel in rho."""
    found = [(weight, _coefficients(f, function, distinct, part)) for part, weight, f in parts]
    total = np.zeros((distinct.size, distinct.size, max(rows.shape[1] for _, rows in found)))
    for weight, rows in found:
        total[..., : rows.shape[1]] += weight * rows[:, None] * rows
    return total


def _by_class(polynomials: Float64[np.ndarray, "n n k"], which: Int64[np.ndarray, " m"], rho: Pairs) -> Pairs:
    """Every pair of tokens by the polynomial of their two deviations."""
    members = [np.flatnonzero(which == each) for each in range(len(polynomials))]
    matrix: Matrix = np.empty_like(rho.matrix)
    same, near = np.empty_like(rho.same), np.empty_like(rho.near)
    for first, own in enumerate(members):
        same[own] = horner(polynomials[first, first], rho.same[own])
        if near.size:
            near[own] = horner(polynomials[first, first], rho.near[own])
        for second, other in enumerate(members[: first + 1]):
            block = horner(polynomials[first, second], rho.matrix[np.ix_(own, other)])
            matrix[np.ix_(own, other)] = block
            if second < first:
                matrix[np.ix_(other, own)] = block.T
    return Pairs(matrix, same, near)
