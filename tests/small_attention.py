"""One small attention over a few tokens, and heads drawn for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from catenary.architecture import Attention, HeadGroup
from catenary.theory.sampled.heads import Head, HeadLaw

WIDTH = 64


def attention(
    heads: int = 1, kv_heads: int | None = None, head_dim: int = 8, v: float = 1.0, **other: Any
) -> Attention:
    """Heads whose logits have variance ``v`` at width 64, or 1 with QK-norm."""
    std = (v**0.5 / WIDTH) ** 0.5
    other = {"qk_norm": False, **other}
    return Attention(
        (HeadGroup(heads),), kv_heads or heads, head_dim, head_dim**-0.5, query_key_std=std, value_std=0.1,
        output_std=0.1, **other,
    )


def draw(held: Attention, covariance: np.ndarray, seed: int = 0, **other: Any) -> list[Head]:
    return list(HeadLaw(held, WIDTH, len(covariance), **other).draw(covariance, (seed,)))


def tokens(length: int, seed: int = 0) -> np.ndarray:
    """Correlations of unit diagonal, the second and the last token equal."""
    x = np.random.default_rng(seed).standard_normal((length, length + 2))
    x[-1] = x[1]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x @ x.T)
