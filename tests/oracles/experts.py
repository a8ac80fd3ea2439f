"""A router by plain loops over tokens and experts: the choice, the weights, and their slopes by finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import multivariate_normal, norm

Router = Callable[[list[float], list[int]], list[float]]


def best(logits: list[float], top: int) -> list[int]:
    return sorted(range(len(logits)), key=lambda e: -logits[e])[:top]


def softmax_over_all(logits: list[float], chosen: list[int]) -> list[float]:
    total = sum(math.exp(z) for z in logits)
    return [math.exp(z) / total if e in chosen else 0.0 for e, z in enumerate(logits)]


def softmax_over_chosen(logits: list[float], chosen: list[int]) -> list[float]:
    total = sum(math.exp(logits[e]) for e in chosen)
    return [math.exp(z) / total if e in chosen else 0.0 for e, z in enumerate(logits)]


def sigmoids(logits: list[float], chosen: list[int]) -> list[float]:
    return [1 / (1 + math.exp(-z)) if e in chosen else 0.0 for e, z in enumerate(logits)]


def divided_sigmoids(logits: list[float], chosen: list[int]) -> list[float]:
    weights = sigmoids(logits, chosen)
    return [w / sum(weights) for w in weights]


def divided_roots(logits: list[float], chosen: list[int]) -> list[float]:
    weights = [math.sqrt(math.log1p(math.exp(z))) if e in chosen else 0.0 for e, z in enumerate(logits)]
    return [w / sum(weights) for w in weights]


def averages(
    router: Router, choose: Callable[[list[float]], list[int]], count: int, variance: float, rho: float, draws: int
) -> np.ndarray:
    """Rows (sum_e g g', variance * sum_{e,f} d_f g_e d_f g'_e) of every draw."""
    generator = np.random.default_rng(7)
    rows = []
    for _ in range(draws):
        z = math.sqrt(variance) * generator.standard_normal((2, count))
        z[1] = rho * z[0] + math.sqrt(1 - rho**2) * z[1]
        weights, slopes = [], []
        for logits in z.tolist():
            chosen = choose(logits)
            weights.append(router(logits, chosen))
            moved = []
            for f in range(count):
                up, down = list(logits), list(logits)
                up[f] += 1e-4
                down[f] -= 1e-4
                pairs = zip(router(up, chosen), router(down, chosen), strict=True)
                moved.append([(a - b) / 2e-4 for a, b in pairs])
            slopes.append(moved)
        value = sum(a * b for a, b in zip(*weights, strict=True))
        slope = sum(slopes[0][f][e] * slopes[1][f][e] for f in range(count) for e in range(count))
        rows.append((value, variance * slope))
    return np.array(rows)


def same_first_choice(count: int, rho: float) -> float:
    """Probability that two tokens' highest logits belong to one expert, by quadrature over that expert's two logits."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    x, w = 6.5 * nodes, 6.5 * weights
    pair = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    u, v = np.meshgrid(x, x, indexing="ij")
    below = pair.cdf(np.stack([u, v], axis=-1))
    density = norm.pdf(u) * norm.pdf((v - rho * u) / math.sqrt(1 - rho**2)) / math.sqrt(1 - rho**2)
    return float(count * (w @ (density * below ** (count - 1)) @ w))
