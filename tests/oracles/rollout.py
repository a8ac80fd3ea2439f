"""Attention rollout with whole matrices: a softmax per row over what the mask shows, in floats or in fractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

Sees = Callable[[int, int], bool]


def attention(
    length: int, sees: Sees, slope: float = 0.0, content: float = 0.0, temperature: float = 1.0, base: float = 0.0
) -> np.ndarray:
    """Softmax of (base + content on the diagonal - slope |i - j|) / temperature over the keys that are seen."""
    scores = np.full((length, length), -np.inf)
    for i in range(length):
        for j in range(length):
            if sees(i, j):
                scores[i, j] = (base + content * (i == j) - slope * abs(i - j)) / temperature
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def rollout(attentions: Sequence[np.ndarray], strengths: Sequence[float]) -> np.ndarray:
    """The whole product R_{T-1} ... R_0."""
    total = np.eye(len(attentions[0]))
    for matrix, strength in zip(attentions, strengths, strict=True):
        total = ((1 - strength) * np.eye(len(matrix)) + strength * matrix) @ total
    return total


def exact_row(length: int, factor: Fraction, own: Fraction, strengths: Sequence[Fraction]) -> list[Fraction]:
    """The last row for one causal head with exp(-slope) = ``factor`` and exp(content) = ``own``, in fractions."""
    weights = [[own if i == j else factor ** (i - j) for j in range(i + 1)] for i in range(length)]
    row = [Fraction(int(j == length - 1)) for j in range(length)]
    for strength in reversed(strengths):
        moved = [(1 - strength) * entry for entry in row]
        for i, entry in enumerate(row):
            total = sum(weights[i])
            for j, weight in enumerate(weights[i]):
                moved[j] += strength * entry * weight / total
        row = moved
    return row
