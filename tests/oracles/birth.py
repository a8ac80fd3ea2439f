"""The birth law by explicit loops over tokens and queries: slow, for a handful of positions.

Nothing is taken from the package. Scores fluctuate around uniform attention with the doubly centred kernel

    Rc[j, l] = R[j, l] - mean_m R[j, m] - mean_m R[m, l] + mean_mm R[m, m],   m over what queries i and k see,

and every term is written as the sum over (i, k, j, l) that defines it. Softmax moments come from adaptive quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.integrate import quad


@dataclass(frozen=True)
class Plain:
    """One network, in numbers."""

    width: int
    layers: tuple[LayerNumbers, ...]
    start: np.ndarray


@dataclass(frozen=True)
class LayerNumbers:
    """One layer: squared attention gain, logit variance, and the feed-forward maps as functions of rho."""

    gain: float
    variance: float
    head_dim: int | None
    epsilon: float
    phi: Callable[[float], float]
    chi: Callable[[float], float]


def profile(net: Plain, coupling: str, finite_width: bool = True) -> np.ndarray:
    """E||J_j||_F^2 / d for each position."""
    length = len(net.start)
    covariance, records = net.start.copy(), []
    for layer in net.layers:
        scale = [1 / math.sqrt(covariance[i, i] + layer.epsilon) for i in range(length)]
        correlation = np.array([[covariance[i, k] * scale[i] * scale[k] for k in range(length)] for i in range(length)])
        factors = fluctuations(correlation, layer, coupling, net.width if finite_width else None)
        middle = covariance.copy()
        for i in range(length):
            for k in range(length):
                r = correlation[: i + 1, : k + 1]
                centred = centre(r)
                middle[i, k] += layer.gain * (
                    r.mean() + correlation[i, k] * (factors.value[i, k] * (centred**2).mean() + factors.overlap[i, k])
                )
        inner = [1 / math.sqrt(middle[i, i] + layer.epsilon) for i in range(length)]
        between = np.array([[middle[i, k] * inner[i] * inner[k] for k in range(length)] for i in range(length)])
        records.append((layer, scale, correlation, factors, inner, between))
        covariance = middle + np.array([[layer.phi(x) for x in row] for row in between])
    gradient = np.zeros((length, length))
    gradient[-1, -1] = 1
    for layer, scale, correlation, factors, inner, between in reversed(records):
        for i in range(length):
            for k in range(length):
                gradient[i, k] *= 1 + layer.chi(between[i, k]) * inner[i] * inner[k]
        through = np.zeros((length, length))
        for i in range(length):
            for k in range(length):
                r = correlation[: i + 1, : k + 1]
                centred, d, pairs = centre(r), gradient[i, k], (i + 1) * (k + 1)
                both = factors.value[i, k] + factors.score[i, k]
                through[: i + 1, : k + 1] += (d + d * correlation[i, k] * both * centred) / pairs
                through[i, k] += d * (factors.score[i, k] * (centred**2).mean() + factors.overlap[i, k])
        gradient = gradient + layer.gain * through * np.outer(scale, scale)
    return gradient.diagonal().copy()


def centre(r: np.ndarray) -> np.ndarray:
    """Subtract the means over rows and columns."""
    return r - r.mean(0, keepdims=True) - r.mean(1, keepdims=True) + r.mean()


@dataclass(frozen=True)
class Factors:
    value: np.ndarray
    score: np.ndarray
    overlap: np.ndarray


def fluctuations(correlation: np.ndarray, layer: LayerNumbers, coupling: str, width: int | None) -> Factors:
    """The three factors of a layer, by their definitions."""
    length, v = len(correlation), layer.variance
    zero, one = np.zeros((length, length)), np.ones((length, length))
    if coupling == "uniform":
        return Factors(zero, zero, zero)
    if coupling == "first-order":
        return Factors(v * one, v * one, zero)
    participation, own_value, own_score = np.ones(length), np.full(length, v), np.full(length, v)
    for i in range(1, length):
        n = i + 1
        common = (correlation[:n, :n].sum() - n) / (n * (n - 1))
        alone = min(max(1 - common, 1e-6), 1)
        second, key = averaged_moments(n, round(v * alone, 14), layer.head_dim)
        participation[i] = n * (1 - n * second) / (n - 1)
        own_value[i] = (second - 1 / n**2) * n**3 / ((n - 1) * alone)
        own_score[i] = v * key * n**3 / (n - 1)
    value, score, overlap = zero.copy(), zero.copy(), zero.copy()
    for i in range(length):
        for k in range(length):
            r = min(max(correlation[i, k], 0), 1)
            different = v * participation[i] * participation[k]
            value[i, k] = different ** (1 - r) * (own_value[i] * own_value[k]) ** (r / 2)
            score[i, k] = different ** (1 - r) * (own_score[i] * own_score[k]) ** (r / 2)
            if i == k:
                value[i, i], score[i, i] = own_value[i], own_score[i]
            if width is not None:
                mean = correlation[: i + 1, : k + 1].mean()
                overlap[i, k] = different / width * (1 - 1 / (i + 1)) * (1 - 1 / (k + 1)) * (1 - mean) ** 2
    return Factors(value, score, overlap)


@cache
def averaged_moments(n: int, u: float, head_dim: int | None) -> tuple[float, float]:
    """E[A^2] and the key moment, averaged over the query's squared norm with the three-node rule."""
    if head_dim is None:
        return moments(n, u)
    spread = math.sqrt(6 / head_dim)
    second = key = 0.0
    for factor, weight in ((1.0, 2 / 3), (1 + spread, 1 / 6), (1 - spread, 1 / 6)):
        m, k = moments(n, u * factor)
        second, key = second + weight * m, key + weight * factor * k
    return second, key


def moments(n: int, u: float) -> tuple[float, float]:
    """The same at one variance, by adaptive quadrature over ln t and 200 Gauss-Hermite nodes over z."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    exponent = math.sqrt(u) * nodes

    def phi(p: int, log_t: float) -> float:
        y = np.exp(np.minimum(log_t + exponent, 700))
        return float(weights @ (y**p * np.exp(-y)))

    def integral(powers: tuple[int, ...]) -> float:
        total = sum(powers)

        def integrand(x: float) -> float:
            product = phi(0, x) ** (n - len(powers))
            for p in powers:
                product *= phi(p, x)
            return product

        value, _ = quad(integrand, -60, 20, points=(-20, -5, 0, 5), limit=400, epsabs=0, epsrel=1e-11)
        return value / math.gamma(total)

    second, third, fourth, pair = (integral(p) for p in ((2,), (3,), (4,), (2, 2)))
    return second, second - 2 * third + fourth + (n - 1) * pair
