"""GPT-J and CodeGen: attention and feed-forward in parallel behind one LayerNorm, rotation of part of each head."""

from __future__ import annotations

from catenary.architecture import Architecture, Rotary, parallel
from catenary.configs.decoder import (
    attentions,
    decoder,
    read_even_sizes,
    read_feed_forward,
    read_inner_width,
    read_norm,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import Turning

THETA = 10_000.0
"""The class computes its angles from this base and has no field for it."""


@reads("gptj", "codegen")
def gptj(fields: Fields) -> Architecture:
    """Parallel by class; the first ``rotary_dim`` channels of a head turn."""
    sizes = read_even_sizes(fields)
    turning = Turning(Rotary(THETA, fields.integer("rotary_dim", most=sizes.head_dim)))
    width = read_inner_width(fields, "n_inner", sizes.width)
    return decoder(
        fields,
        sizes,
        attentions(sizes, turnings=turning),
        read_feed_forward(fields, sizes, gated=False, width=width, activation="activation_function"),
        read_norm(fields, "layer", "layer_norm_epsilon"),
        block=parallel,
    )
