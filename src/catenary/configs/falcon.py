"""Falcon: parallel or sequential, rotary or ALiBi, with one key and value for all heads, for groups, or for each."""

from __future__ import annotations

from catenary.architecture import Architecture, parallel, pre_norm
from catenary.configs.alibi import biased, bloom_heads
from catenary.configs.decoder import (
    attentions,
    decoder,
    even_split,
    read_feed_forward,
    read_heads,
    read_inner_width,
    read_kv_heads,
    read_norm,
    read_sizes,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning

ROUNDED = 256
"""Positions up to which a bfloat16 holds every integer."""


@reads("falcon")
def falcon(fields: Fields) -> Architecture:
    """The new decoder architecture is always parallel; whether it has one norm or two is the same at birth.

    ALiBi's biases are scaled by 1/sqrt(head_dim) with the logits.
    """
    new = fields.flag("new_decoder_architecture")
    heads = read_heads(fields)
    kv_heads = read_kv_heads(fields, heads, "num_kv_heads") if new else 1 if fields.flag("multi_query") else heads
    sizes = read_sizes(fields, head_dim=even_split(fields), kv_heads=kv_heads)
    inner = read_inner_width(fields, "ffn_hidden_size", sizes.width)
    if fields.flag("alibi"):
        found = biased(attentions(sizes), bloom_heads(heads, sizes.head_dim**-0.5))
        fields.note(f"alibi: beyond {ROUNDED} positions transformers rounds Falcon's biases to bfloat16, read as exact")
        fields.note("alibi: transformers' eager attention adds Falcon's biases twice, its default once, as here")
    else:
        found = attentions(sizes, turnings=read_turning(fields, sizes.head_dim))
    return decoder(
        fields,
        sizes,
        found,
        read_feed_forward(fields, sizes, gated=False, width=inner, activation="activation"),
        read_norm(fields, "layer", "layer_norm_epsilon"),
        block=parallel if new or fields.flag("parallel_attn") else pre_norm,
        position="alibi" if fields.flag("alibi") else "rope",
    )
