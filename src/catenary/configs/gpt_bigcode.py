"""GPT-BigCode: SantaCoder and StarCoder, GPT-2's block with one key and value for all heads."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Embedding
from catenary.configs import limits
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
from catenary.errors import NotApplicable, invalid


@reads("gpt_bigcode")
def gpt_bigcode(fields: Fields) -> Architecture:
    """Both ``c_proj`` of a block have std / sqrt(2 n_layer); one key and value unless ``multi_query`` is false."""
    if fields.flag("add_cross_attention"):
        raise NotApplicable("gpt_bigcode with add_cross_attention=true: only decoders without an encoder are described")
    if fields.number("initializer_range", most=limits.STD) == 0:
        raise invalid("initializer_range", "must be > 0", 0.0, "transformers would set both c_proj to zero")
    sizes = read_even_sizes(fields)
    if fields.flag("multi_query"):
        sizes = replace(sizes, kv_heads=1)
    small = sizes.std / (2 * sizes.depth) ** 0.5
    inner = read_inner_width(fields, "n_inner", sizes.width)
    return decoder(
        fields,
        sizes,
        attentions(sizes, query_scale=None if fields.boolean("scale_attn_weights") else 1.0, output_std=small),
        read_feed_forward(
            fields, sizes, gated=False, width=inner, activation="activation_function", output_std=small
        ),
        read_norm(fields, "layer", "layer_norm_epsilon"),
        embedding=Embedding(sizes.std, position_std=sizes.std),
        position="learned",
        initialisation=(
            f"transformers' GPT-BigCode: embeddings, positions and matrices N(0, {sizes.std:.6g}^2), both c_proj of a "
            f"block N(0, {small:.6g}^2) = N(0, ({sizes.std:.6g}/sqrt(2 n_layer))^2), biases 0, norm weights 1"
        ),
    )
