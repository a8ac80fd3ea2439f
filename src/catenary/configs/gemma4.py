"""Gemma 4 without experts and without embeddings per layer: norms on queries, keys and values, logits left unscaled."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Attention, sandwich
from catenary.configs import limits
from catenary.configs.decoder import Sizes, attentions, decoder, read_feed_forward, read_norm, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.gemma import scaled_embedding
from catenary.configs.rotary import read_turning
from catenary.configs.windows import FULL, SLIDING, full_every, kernels, read_kinds, read_window
from catenary.errors import NotApplicable, invalid

GLOBAL_HEAD_DIM = 512
"""The class's head size of full layers where the config gives none."""

THETA = {FULL: 1e6, SLIDING: 1e4}
"""The class's RoPE bases."""


@reads(
    "gemma4_text",
    "gemma4_unified_text",
    approximate="logits have the variance head_dim, so that nearly all of a query's weight falls on one key; published "
    "sizes (256 and 512) are refused, as the law ends at 100",
)
def gemma4(fields: Fields) -> Architecture:
    """Sandwich norms; the last of every six layers is full, with its own head size and key/value heads.

    A norm on values that come straight from a norm gives every channel the variance 1, as an std of 1/sqrt(width)
    would. The last layer is full whatever ``layer_types`` say.
    """
    _refuse(fields)
    local = read_sizes(fields)
    kinds = [*read_kinds(fields, local.depth, full_every(local.depth, 6))[:-1], FULL]
    full = replace(local, **_global_sizes(fields, local, kinds.index(FULL)))
    if fields.flag("attention_k_eq_v"):
        fields.note("attention_k_eq_v: values of full layers are their keys before norm and rotation, here independent")
    bands = kernels(fields, kinds, window=read_window(fields))
    of = {FULL: _heads(fields, full, FULL), SLIDING: _heads(fields, local, SLIDING)}
    heads = [
        replace(of[kind], groups=(replace(of[kind].groups[0], kernel=band),))
        for kind, band in zip(kinds, bands, strict=True)
    ]
    feed_forward = read_feed_forward(fields, local, activation="hidden_activation")
    norm, embedding = read_norm(fields), scaled_embedding(local)
    return decoder(fields, local, heads, feed_forward, norm, block=sandwich, embedding=embedding)


def _global_sizes(fields: Fields, local: Sizes, index: int) -> dict[str, int]:
    """Head size and key/value heads of full layers: fields of their own, or those of layer ``index`` in a saved config.

    transformers saves what differs in a layer as ``per_layer_config``.
    """
    saved = fields.optional_part("per_layer_config")
    own = saved.optional_part(str(index)) if saved is not None else None
    if own is not None:
        wide = own.optional_integer("head_dim", most=limits.HEADS)
        fewer = own.optional_integer("num_key_value_heads", most=limits.HEADS)
        wide = local.head_dim if wide is None else wide
    else:
        wide = fields.optional_integer("global_head_dim", most=limits.HEADS)
        fewer = fields.optional_integer("num_global_key_value_heads", most=limits.HEADS)
        fewer = fewer if fields.flag("attention_k_eq_v") else None
        wide = GLOBAL_HEAD_DIM if wide is None else wide
    if fewer is not None and local.heads % fewer:
        raise invalid("num_global_key_value_heads", f"must divide num_attention_heads={local.heads}", fewer)
    return {"head_dim": wide, "kv_heads": local.kv_heads if fewer is None else fewer}


def _heads(fields: Fields, sizes: Sizes, kind: str) -> Attention:
    turning = read_turning(fields, sizes.head_dim, kind, theta=THETA[kind], partial=0.25 if kind == FULL else 1.0)
    (heads,) = attentions(replace(sizes, depth=1), turnings=turning, query_scale=1.0, qk_norm=True)
    return replace(heads, value_std=sizes.width**-0.5)


def _refuse(fields: Fields) -> None:
    if fields.optional_integer("hidden_size_per_layer_input", least=0, most=limits.WIDTH):
        raise NotApplicable(f"{fields.family} with hidden_size_per_layer_input: embeddings per layer are not described")
    if fields.flag("enable_moe_block"):
        raise NotApplicable(f"{fields.family} with enable_moe_block: a network beside experts with norms of their own")
    if fields.optional_integer("num_kv_shared_layers", least=0, most=limits.DEPTH):
        raise NotApplicable(f"{fields.family} with num_kv_shared_layers: layers that share keys are not described")
    if fields.has("use_bidirectional_attention") and fields.text("use_bidirectional_attention") == "all":
        raise NotApplicable(f"{fields.family} with use_bidirectional_attention 'all' is not causal")
