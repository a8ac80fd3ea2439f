"""Moshi's text decoder: Llama's block with gated networks of half ``ffn_dim``."""

from __future__ import annotations

from catenary.architecture import Architecture
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_feed_forward, read_norm, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning


@reads("moshi")
def moshi(fields: Fields) -> Architecture:
    """The class masks causally and leaves ``sliding_window`` unread; audio codebooks belong to another decoder."""
    sizes = read_sizes(fields)
    fields.note("the text decoder of moshi by itself, without audio codebooks and depth decoder")
    inner = fields.integer("ffn_dim", most=4 * limits.WIDTH) // 2
    return decoder(
        fields,
        sizes,
        attentions(sizes, turnings=read_turning(fields, sizes.head_dim)),
        read_feed_forward(fields, sizes, width=inner),
        read_norm(fields),
    )
