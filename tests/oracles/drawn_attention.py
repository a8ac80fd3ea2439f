"""One attention layer over given tokens by drawing heads: exact softmax, rotary positions, windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

VALUES = 24
"""Value channels drawn per head, to average over."""


@dataclass(frozen=True)
class Drawn:
    """Means over heads: covariance of outputs, and of gradients at values, keys and queries, for each D given."""

    outputs: np.ndarray
    values: list[np.ndarray]
    keys: list[np.ndarray]
    queries: list[np.ndarray]


def drawn_attention(
    r: np.ndarray, variance: float, gradients: list[np.ndarray], *, head_dim: int = 16, theta: float | None = None,
    width: int | None = None, heads: int = 4000, seed: int = 0,
) -> Drawn:
    """Heads whose queries, keys and values are independent linear maps of vectors with correlation ``r``."""
    n = len(r)
    generator = np.random.default_rng(seed)
    root = np.linalg.cholesky(r + 1e-9 * np.eye(n))
    roots = [np.linalg.cholesky(d + 1e-9 * np.eye(n)) for d in gradients]
    i = np.arange(n)
    hidden = i[:, None] < i
    if width is not None:
        hidden |= i[:, None] - i >= width
    turn = np.ones((n, head_dim // 2), complex)
    if theta is not None:
        turn = np.exp(1j * i[:, None] * theta ** (-np.arange(0, head_dim, 2) / head_dim))
    outputs = np.zeros((n, n))
    sums = [[np.zeros((n, n)) for _ in gradients] for _ in range(3)]
    for _ in range(heads):
        q, k = (root @ (generator.standard_normal((n, head_dim // 2, 2)) @ [1, 1j]) for _ in range(2))
        q, k = q * turn, k * turn
        z = np.sqrt(variance / head_dim) * (q @ k.conj().T).real
        z[hidden] = -np.inf
        a = np.exp(z - z.max(axis=1, keepdims=True))
        a /= a.sum(axis=1, keepdims=True)
        outputs += a @ r @ a.T / heads
        x = root @ generator.standard_normal((n, VALUES))
        for at, (d, d_root) in enumerate(zip(gradients, roots, strict=True)):
            sums[0][at] += a.T @ d @ a / heads
            g = d_root @ generator.standard_normal((n, VALUES))
            s = g @ x.T / np.sqrt(VALUES)
            s = a * (s - (a * s).sum(axis=1, keepdims=True))
            at_keys, at_queries = turn.conj() * (s.T @ q), turn.conj() * (s @ k)
            sums[1][at] += variance / head_dim * (at_keys @ at_keys.conj().T).real / heads
            sums[2][at] += variance / head_dim * (at_queries @ at_queries.conj().T).real / heads
    return Drawn(outputs, *sums)
