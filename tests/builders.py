"""Architectures written out by hand, so that theory tests need no config reader.

Weights have std ``std``, the Hugging Face default of these families; GPT-2 scales its residual outputs by
1/sqrt(2 layers).
"""

from __future__ import annotations

import math

from catenary.architecture import Architecture, Attention, Embedding, FeedForward, HeadGroup, Norm, pre_norm


def decoder(
    *,
    family: str,
    width: int,
    depth: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    ffn: int,
    std: float = 0.02,
    output_std: float | None = None,
    embedding_std: float | None = None,
    position_std: float = 0.0,
    epsilon: float = 1e-6,
    activation: str = "silu",
    gated: bool = True,
    qk_norm: bool = False,
    norm: str = "rms",
) -> Architecture:
    """A pre-norm sequential decoder whose layers are all alike."""
    output = std if output_std is None else output_std
    layer = pre_norm(
        Attention((HeadGroup(heads),), kv_heads, head_dim, head_dim**-0.5, qk_norm, std, std, output),
        FeedForward(ffn, gated, activation, std, output),
        Norm("layer" if norm == "layer" else "rms", epsilon),
    )
    return Architecture(
        name=f"{family}-test",
        family=family,
        width=width,
        layers=(layer,) * depth,
        embedding=Embedding(std if embedding_std is None else embedding_std, position_std),
        final_norm=layer.norm,
        position="learned" if position_std else "rope",
        source="tests/builders.py",
    )


def qwen2_like(
    width: int = 896,
    depth: int = 24,
    heads: int = 14,
    kv_heads: int = 2,
    head_dim: int = 64,
    ffn: int = 4864,
    std: float = 0.02,
    epsilon: float = 1e-6,
    **other: object,
) -> Architecture:
    """Qwen2-0.5B unless said otherwise: RMSNorm, gated silu, RoPE."""
    return decoder(
        family="qwen2", width=width, depth=depth, heads=heads, kv_heads=kv_heads, head_dim=head_dim, ffn=ffn,
        std=std, epsilon=epsilon, **other,  # type: ignore[arg-type]
    )


def qwen3_like(
    width: int = 1024,
    depth: int = 28,
    heads: int = 16,
    kv_heads: int = 8,
    head_dim: int = 128,
    ffn: int = 3072,
    std: float = 0.02,
    **other: object,
) -> Architecture:
    """Qwen3-0.6B unless said otherwise: as Qwen2, with normalised queries and keys."""
    return decoder(
        family="qwen3", width=width, depth=depth, heads=heads, kv_heads=kv_heads, head_dim=head_dim, ffn=ffn,
        std=std, qk_norm=True, **other,  # type: ignore[arg-type]
    )


def llama_like(
    width: int = 4096,
    depth: int = 32,
    heads: int = 32,
    kv_heads: int = 8,
    head_dim: int = 128,
    ffn: int = 14336,
    std: float = 0.02,
    **other: object,
) -> Architecture:
    """Llama-3-8B unless said otherwise: RMSNorm with epsilon 1e-5, gated silu, RoPE."""
    return decoder(
        family="llama", width=width, depth=depth, heads=heads, kv_heads=kv_heads, head_dim=head_dim, ffn=ffn,
        std=std, epsilon=1e-5, **other,  # type: ignore[arg-type]
    )


def smollm2_like(depth: int = 30) -> Architecture:
    """SmolLM2-135M: the llama family at width 576 with weight std 1/24."""
    return llama_like(width=576, depth=depth, heads=9, kv_heads=3, head_dim=64, ffn=1536, std=1 / 24)


def gpt2_like(width: int = 768, depth: int = 12, heads: int = 12, std: float = 0.02) -> Architecture:
    """GPT-2 small unless said otherwise: learned positions, LayerNorm, gelu_new, outputs scaled by 1/sqrt(2H)."""
    return decoder(
        family="gpt2", width=width, depth=depth, heads=heads, kv_heads=heads, head_dim=width // heads,
        ffn=4 * width, std=std, output_std=std / math.sqrt(2 * depth), position_std=std, epsilon=1e-5,
        activation="gelu_new", gated=False, norm="layer",
    )
