"""The five terms of every layer as dense matrices: complex steps through the numpy network, then plain products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catenary.models.toy import Block, Toy

STEP = 1e-30


def dense(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """d function / d x for x of shape (L, d), as a matrix (L d, L d)."""
    size = x.size
    stepped = np.repeat(x.reshape(1, -1).astype(complex), size, axis=0)
    stepped[np.arange(size), np.arange(size)] += 1j * STEP
    return (function(stepped.reshape(size, *x.shape)).imag / STEP).reshape(size, size).T


def attention(toy: Toy, block: Block, x: np.ndarray, fixed: np.ndarray | None = None) -> np.ndarray:
    """The attention branch at x (..., L, d); its weights are computed at ``fixed``, if that is given."""
    heads = block.layer.attention
    normed = block.norms[0](x)
    at = normed if fixed is None else block.norms[0](fixed)

    def split(affine: Callable[[np.ndarray], np.ndarray], y: np.ndarray) -> np.ndarray:
        return np.swapaxes(affine(y).reshape(*y.shape[:-1], -1, heads.head_dim), -2, -3)

    query, key = toy._rotate(split(block.query, at)), toy._rotate(split(block.key, at))
    value = split(block.value, normed)
    group = heads.heads // heads.kv_heads
    mixed = []
    for head in range(heads.heads):
        k, v = key[..., head // group, :, :], value[..., head // group, :, :]
        weights = np.exp(heads.query_scale * query[..., head, :, :] @ np.swapaxes(k, -1, -2))
        weights = weights * np.tri(x.shape[-2])
        mixed.append(weights @ v / weights.sum(-1, keepdims=True))
    return block.output(np.concatenate(mixed, -1))


def feed_forward(block: Block, y: np.ndarray) -> np.ndarray:
    x = block.norms[1](y)
    gate = block.gate(x)
    return block.down(gate / (1 + np.exp(-gate)) * block.up(x))


def dense_terms(toy: Toy, x: np.ndarray) -> list[list[np.ndarray]]:
    """Per layer [I, V, S, F, F(V+S)], each (L d, L d), for vectors x (L, d) and Llama blocks."""
    result = []
    identity = np.eye(x.size)
    for block in toy.blocks:
        value = dense(lambda y, b=block, at=x: attention(toy, b, y, at), x)
        whole = dense(lambda y, b=block: attention(toy, b, y), x)
        y = x + attention(toy, block, x)
        forward = dense(lambda z, b=block: feed_forward(b, z), y)
        result.append([identity, value, whole - value, forward, forward @ whole])
        x = y + feed_forward(block, y)
    return result
