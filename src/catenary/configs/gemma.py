"""Gemma 1 to 3 and VaultGemma: embeddings times sqrt(width), norms on both sides of a branch, windows, soft-capping."""

from __future__ import annotations

from dataclasses import dataclass, replace

from catenary.architecture import Architecture, Embedding, pre_norm, sandwich
from catenary.configs import limits
from catenary.configs.decoder import (
    Block,
    Sizes,
    attentions,
    decoder,
    even_split,
    read_feed_forward,
    read_norm,
    read_sizes,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_local_turnings, read_turning
from catenary.configs.windows import full_every, kernels, read_kinds, read_window
from catenary.errors import NotApplicable

SOFTCAP = 1e6
"""Upper bound of a soft-capping constant."""


@dataclass(frozen=True)
class Variant:
    """What tells one Gemma from another: its block, the period of its full layers, its QK-norm."""

    block: Block
    period: int
    qk_norm: bool = False


@reads("gemma")
def gemma(fields: Fields) -> Architecture:
    """Llama's block with embeddings times sqrt(hidden_size); ``gelu`` means its tanh form, as transformers reads it."""
    refuse_bidirectional(fields)
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim))
    feed_forward = read_feed_forward(fields, sizes)
    if feed_forward.activation == "gelu":
        feed_forward = replace(feed_forward, activation="gelu_pytorch_tanh")
    return decoder(fields, sizes, heads, feed_forward, read_norm(fields), embedding=scaled_embedding(sizes))


@reads("gemma2")
def gemma2(fields: Fields) -> Architecture:
    """Sandwich norms; layers 0, 2, 4, ... slide unless ``layer_types`` says otherwise."""
    return _gemma(fields, Variant(sandwich, 2))


@reads("vaultgemma")
def vaultgemma(fields: Fields) -> Architecture:
    """Gemma 2 without the norms behind the branches."""
    return _gemma(fields, Variant(pre_norm, 2))


@reads("gemma3_text")
def gemma3(fields: Fields) -> Architecture:
    """Sandwich norms and QK-norm; the last of every six layers (``sliding_window_pattern``) sees everything."""
    period = fields.optional_integer("sliding_window_pattern", most=limits.DEPTH)
    return _gemma(fields, Variant(sandwich, 6 if period is None else period, qk_norm=True))


def _gemma(fields: Fields, variant: Variant) -> Architecture:
    refuse_bidirectional(fields)
    even_split(fields)
    sizes = read_sizes(fields)
    kinds = read_kinds(fields, sizes.depth, full_every(sizes.depth, variant.period))
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=read_local_turnings(fields, sizes.head_dim, kinds),
        query_scale=fields.number("query_pre_attn_scalar", least=1e-6, most=1e9) ** -0.5,
        qk_norm=variant.qk_norm,
        softcap=fields.optional_number("attn_logit_softcapping", least=1e-6, most=SOFTCAP),
    )
    feed_forward = read_feed_forward(fields, sizes, activation="hidden_activation")
    norm, embedding = read_norm(fields), scaled_embedding(sizes)
    return decoder(fields, sizes, heads, feed_forward, norm, block=variant.block, embedding=embedding)


def scaled_embedding(sizes: Sizes) -> Embedding:
    """Embeddings that the embedding module itself multiplies by sqrt(width)."""
    return Embedding(sizes.std * sizes.width**0.5)


def refuse_bidirectional(fields: Fields) -> None:
    """Refuse ``use_bidirectional_attention``, under which all tokens see each other."""
    if fields.flag("use_bidirectional_attention"):
        raise NotApplicable(f"{fields.family} with use_bidirectional_attention: only causal attention is described")
