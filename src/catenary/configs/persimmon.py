"""Persimmon: LayerNorm on every query and key, half of each head turned, squared ReLU."""

from __future__ import annotations

from catenary.architecture import Architecture
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_feed_forward, read_norm
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning


@reads("persimmon")
def persimmon(fields: Fields) -> Architecture:
    """A LayerNorm of a head's channels gives queries and keys unit rms, as an RMSNorm would."""
    sizes = read_even_sizes(fields)
    turning = read_turning(fields, sizes.head_dim, partial=0.5)
    return decoder(
        fields,
        sizes,
        attentions(sizes, turnings=turning, qk_norm=fields.boolean("qk_layernorm")),
        read_feed_forward(fields, sizes, gated=False),
        read_norm(fields, "layer"),
    )
