"""OPT and Galactica: learned positions, plain feed-forward networks; OPT-350m normalises behind each addition."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Embedding, Norm, post_norm, pre_norm
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_feed_forward
from catenary.configs.family import reads
from catenary.configs.fields import Fields

NORM = Norm("layer", 1e-5)
"""OPT's LayerNorms have torch's own epsilon and no field for it."""


@reads("opt")
def opt(fields: Fields) -> Architecture:
    """``do_layer_norm_before`` false is post-norm without a final norm.

    Where ``word_embed_proj_dim`` is not the width, vectors of that many channels are projected before positions are
    added. Biases start at 0 and norm weights at 1, so ``enable_bias`` and ``layer_norm_elementwise_affine`` change
    nothing at birth.
    """
    sizes = read_even_sizes(fields)
    before = fields.boolean("do_layer_norm_before")
    fed = fields.optional_integer("word_embed_proj_dim", most=limits.WIDTH)
    embedding = Embedding(sizes.std, position_std=sizes.std)
    if fed not in (None, sizes.width):
        embedding = replace(embedding, fed_width=fed, projection_std=sizes.std)
    return decoder(
        fields,
        sizes,
        attentions(sizes),
        read_feed_forward(fields, sizes, gated=False, width="ffn_dim", activation="activation_function"),
        NORM,
        block=pre_norm if before else post_norm,
        final_norm=NORM if before and not fields.flag("_remove_final_layer_norm") else None,
        embedding=embedding,
        position="learned",
    )
