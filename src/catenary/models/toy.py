"""The network the theory assumes, in plain numpy: a pre-norm decoder with a Llama or GPT-2 block.

It shares nothing with torch or transformers. Its Jacobian comes from complex steps, so that a measurement on the
same weights can be checked by an unlike route. ``toy_weights`` draws or copies its weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Inexact

from catenary.architecture import Layer, Norm
from catenary.errors import unknown

Array = Inexact[np.ndarray, "..."]
STEP = 1e-30
"""Complex step: an analytic f has Im f(x + i h)/h = f'(x) + O(h^2), without cancellation, so h can be tiny."""


def _silu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def _gelu(x: Array) -> Array:
    from scipy.special import erf

    return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2))))


def _relu(x: Array) -> Array:
    return np.where(x.real > 0, x, 0)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": _silu,
    "swish": _silu,
    "gelu": _gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": _relu,
}


@dataclass(frozen=True, eq=False)
class Affine:
    """x W + b with W of shape (in, out)."""

    weight: Float64[np.ndarray, "inputs outputs"]
    bias: Float64[np.ndarray, " outputs"] | float = 0.0

    def __call__(self, x: Array) -> Array:
        """Apply to the last axis."""
        return np.asarray(x @ self.weight + self.bias)


@dataclass(frozen=True, eq=False)
class Normalise:
    """w (x - mean) / sqrt(var + eps) + b for ``layer``; w x / sqrt(mean x^2 + eps) for ``rms``."""

    norm: Norm
    weight: Float64[np.ndarray, " d"] | float = 1.0
    bias: Float64[np.ndarray, " d"] | float = 0.0

    def __call__(self, x: Array) -> Array:
        """Apply to the last axis."""
        centred = x - x.mean(axis=-1, keepdims=True) if self.norm.kind == "layer" else x
        square = (centred * centred).mean(axis=-1, keepdims=True)
        return np.asarray(self.weight * centred / np.sqrt(square + self.norm.epsilon) + self.bias)


@dataclass(frozen=True, eq=False)
class Block:
    """One layer: x + O attention(Q, K, V of norm(x)), then x + feed-forward(norm(x))."""

    layer: Layer
    norms: tuple[Normalise, Normalise]
    query: Affine
    key: Affine
    value: Affine
    output: Affine
    up: Affine
    down: Affine
    gate: Affine | None = None
    qk_norms: tuple[Normalise, Normalise] | None = None


@dataclass(frozen=True, eq=False)
class Toy:
    """A decoder of blocks, fed with embedded tokens (..., L, d).

    ``frequencies`` (head_dim/2 rotary frequencies) or ``positions`` ((L_max, d) learned vectors) or neither.
    """

    blocks: tuple[Block, ...]
    frequencies: Float64[np.ndarray, " half"] | None = None
    positions: Float64[np.ndarray, "L_max d"] | None = None

    def stream(self, vectors: Inexact[np.ndarray, "*batch L d"]) -> Inexact[np.ndarray, "*batch L d"]:
        """The residual stream in front of the final norm."""
        x = np.asarray(vectors)
        if self.positions is not None:
            x = x + self.positions[: x.shape[-2]]
        for block in self.blocks:
            x = x + self._attend(block, block.norms[0](x))
            x = x + _feed_forward(block, block.norms[1](x))
        return x

    def jacobian(self, vectors: Float64[np.ndarray, "L d"]) -> Float64[np.ndarray, "L d d"]:
        r"""J_j = d h_L / d e_j for every position j, (L, d out, d in), exact to rounding, by complex steps.

        One forward pass per input coordinate, O(L d) passes: for small networks.
        """
        length, width = vectors.shape
        result = np.empty((length, width, width))
        for j in range(length):
            stepped = np.repeat(vectors[None].astype(complex), width, axis=0)
            stepped[np.arange(width), j, np.arange(width)] += 1j * STEP
            result[j] = self.stream(stepped)[:, -1].imag.T / STEP
        return result

    def _attend(self, block: Block, x: Array) -> Array:
        """Causal softmax attention; each key/value head serves heads/kv_heads neighbouring query heads."""
        attention = block.layer.attention
        length = x.shape[-2]
        query, key, value = (self._heads(part(x), attention.head_dim) for part in (block.query, block.key, block.value))
        if block.qk_norms is not None:
            query, key = block.qk_norms[0](query), block.qk_norms[1](key)
        query, key = self._rotate(query), self._rotate(key)
        key, value = (np.repeat(part, attention.heads // attention.kv_heads, axis=-3) for part in (key, value))
        logits = attention.query_scale * query @ np.swapaxes(key, -1, -2)
        logits = np.where(np.tri(length, dtype=bool), logits, -np.inf)
        weights = np.exp(logits - logits.real.max(axis=-1, keepdims=True))
        mixed = weights @ value / weights.sum(axis=-1, keepdims=True)
        return block.output(np.swapaxes(mixed, -2, -3).reshape(*x.shape[:-1], -1))

    @staticmethod
    def _heads(x: Array, head_dim: int) -> Array:
        """(..., L, heads * head_dim) to (..., heads, L, head_dim)."""
        return np.swapaxes(x.reshape(*x.shape[:-1], -1, head_dim), -2, -3)

    def _rotate(self, x: Array) -> Array:
        """Turn the pairs (i, i + head_dim/2) by position times frequency."""
        if self.frequencies is None:
            return x
        angle = np.arange(x.shape[-2])[:, None] * self.frequencies
        first, second = np.split(x, 2, axis=-1)
        cos, sin = np.cos(angle), np.sin(angle)
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _feed_forward(block: Block, x: Array) -> Array:
    name = block.layer.feed_forward.activation
    if name not in ACTIVATIONS:
        raise unknown("activation", name, ACTIVATIONS)
    inner = block.up(x)
    inner = ACTIVATIONS[name](inner) if block.gate is None else ACTIVATIONS[name](block.gate(x)) * inner
    return block.down(inner)
