"""Residual steps by explicit loops over pairs of tokens: slow, for a handful of positions. Nothing from the package.

A network is a list of steps. A step is written as the formula that it is,

    y = before(x);   x <- after(keep * y + sum_b scale_b * after_b(mix_b(before_b(y)))),

with attention that averages by a fixed matrix, and feed-forward networks whose moments come from a plane of
Gauss-Hermite nodes at each pair's own three numbers X_ii, X_kk, X_ik.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class Attend:
    """kappa^2 and the mean attention matrix."""

    gain: float
    matrix: np.ndarray

    def forward(self, x: np.ndarray) -> np.ndarray:
        n = len(x)
        out = np.zeros((n, n))
        for i in range(n):
            for k in range(n):
                for j in range(n):
                    for m in range(n):
                        out[i, k] += self.gain * self.matrix[i, j] * self.matrix[k, m] * x[j, m]
        return out

    def backward(self, x: np.ndarray, d: np.ndarray) -> np.ndarray:
        n = len(x)
        out = np.zeros((n, n))
        for i in range(n):
            for k in range(n):
                for j in range(n):
                    for m in range(n):
                        out[j, m] += self.gain * self.matrix[i, j] * self.matrix[k, m] * d[i, k]
        return out


@dataclass(frozen=True)
class Network:
    """m sigma_out^2, d sigma_in^2, f, and the other half's function for a gated one."""

    gain: float
    variance: float
    f: Callable[[np.ndarray], np.ndarray]
    g: Callable[[np.ndarray], np.ndarray] | None

    def forward(self, x: np.ndarray) -> np.ndarray:
        out = np.zeros_like(x)
        for i in range(len(x)):
            for k in range(len(x)):
                out[i, k] = self.gain * self.moment(self.f, x, i, k)
                if self.g is not None:
                    out[i, k] *= self.moment(self.g, x, i, k)
        return out

    def backward(self, x: np.ndarray, d: np.ndarray) -> np.ndarray:
        out = np.zeros_like(x)
        for i in range(len(x)):
            for k in range(len(x)):
                slope = self.moment(derivative(self.f), x, i, k)
                if self.g is not None:
                    slope = slope * self.moment(self.g, x, i, k)
                    slope += self.moment(self.f, x, i, k) * self.moment(derivative(self.g), x, i, k)
                out[i, k] = self.gain * self.variance * slope * d[i, k]
        return out

    def moment(self, f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, i: int, k: int) -> float:
        """E[f(a) f(b)] for the pre-activations a, b of tokens i and k."""
        first, second = math.sqrt(self.variance * x[i, i]), math.sqrt(self.variance * x[k, k])
        rho = min(1.0, x[i, k] / math.sqrt(x[i, i] * x[k, k]))
        u = NODES[:, None]
        v = rho * u + math.sqrt(1 - rho**2) * NODES
        return float(WEIGHTS @ (f(first * u) * f(second * v)) @ WEIGHTS)


@dataclass(frozen=True)
class Part:
    mix: Attend | Network
    before: bool
    after: bool
    scale: float


@dataclass(frozen=True)
class Formula:
    parts: tuple[Part, ...]
    keep: float
    before: bool
    after: bool


def derivative(f: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: (f(x + 1e-5) - f(x - 1e-5)) / 2e-5


def profile(steps: list[Formula], start: np.ndarray) -> np.ndarray:
    """E||J_j||_F^2 / d for each position, before a last norm that the caller leaves out of ``steps``."""
    record, x = [], start.copy()
    for step in steps:
        entry = roots(x) if step.before else np.ones(len(x))
        y = x * np.outer(entry, entry)
        z = step.keep**2 * y
        inner = []
        for part in step.parts:
            into = roots(y) if part.before else np.ones(len(x))
            seen = y * np.outer(into, into)
            made = part.mix.forward(seen)
            out = roots(made) if part.after else np.ones(len(x))
            z = z + part.scale**2 * made * np.outer(out, out)
            inner.append((part, into, seen, out))
        leave = roots(z) if step.after else np.ones(len(x))
        record.append((step, entry, inner, leave))
        x = z * np.outer(leave, leave)
    d = np.zeros_like(x)
    d[-1, -1] = 1.0
    for step, entry, inner, leave in reversed(record):
        d = d * np.outer(leave, leave)
        e = step.keep**2 * d
        for part, into, seen, out in inner:
            through = part.mix.backward(seen, part.scale**2 * d * np.outer(out, out))
            e = e + through * np.outer(into, into)
        d = e * np.outer(entry, entry)
    return d.diagonal().copy()


def roots(x: np.ndarray) -> np.ndarray:
    return np.array([1 / math.sqrt(x[i, i]) for i in range(len(x))])
