"""Dense, slow versions of the particle systems: every pair of tokens, the interaction in closed form, no Fourier modes.

Nothing here is shared with the package.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def weights(tokens: int, b: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """omega (tokens, tokens); the first row is 0."""
    lags = np.subtract.outer(np.arange(tokens), np.arange(tokens)) / tokens
    raw = np.where(lags > 0, b(np.where(lags > 0, lags, 1.0)), 0.0)
    sums = raw.sum(axis=1, keepdims=True)
    return raw / np.where(sums > 0, sums, 1.0)


def decay_weights(tokens: int, lam: float) -> np.ndarray:
    """omega for b(x) = exp(-lam x), each row in units of its nearest token, so that no row underflows."""
    lags = np.subtract.outer(np.arange(tokens), np.arange(tokens)).astype(float)
    raw = np.where(lags > 0, np.exp(-lam / tokens * np.maximum(lags - 1, 0)), 0.0)
    sums = raw.sum(axis=1, keepdims=True)
    return raw / np.where(sums > 0, sums, 1.0)


def force(angles: np.ndarray, omega: np.ndarray, beta: float) -> np.ndarray:
    """F by the double sum."""
    difference = np.subtract.outer(angles, angles)
    return (omega * -beta * np.sin(difference) * np.exp(beta * np.cos(difference))).sum(axis=1)


def jacobian(angles: np.ndarray, omega: np.ndarray, beta: float) -> np.ndarray:
    """dF_j/dtheta_k."""
    difference = np.subtract.outer(angles, angles)
    bend = omega * beta * (beta * np.sin(difference) ** 2 - np.cos(difference)) * np.exp(beta * np.cos(difference))
    return np.diag(bend.sum(axis=1)) - bend


def attention_push(
    points: np.ndarray, beta: float, lam: float, query: np.ndarray, key: np.ndarray, value: np.ndarray
) -> np.ndarray:
    """The sphere's drift by loops over tokens."""
    tokens = len(points)
    out = np.zeros_like(points)
    for j in range(1, tokens):
        shares = [
            np.exp(beta * (query @ points[j]) @ (key @ points[k]) - lam * (j - k) / tokens) for k in range(j)
        ]
        push = sum(share * (value @ points[k]) for k, share in enumerate(shares)) / sum(shares)
        out[j] = push - (points[j] @ push) * points[j]
    return out
