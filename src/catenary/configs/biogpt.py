"""BioGPT: learned positions beside an embedding scaled by sqrt(d)."""

from __future__ import annotations

from catenary.architecture import Architecture, Embedding, Norm
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_feed_forward
from catenary.configs.family import reads
from catenary.configs.fields import Fields

NORM = Norm("layer", 1e-5)
"""The class gives its LayerNorms torch's own epsilon; ``layer_norm_eps`` is not read."""


@reads("biogpt")
def biogpt(fields: Fields) -> Architecture:
    """The scale sits inside the embedding module, so that fed vectors are already scaled."""
    sizes = read_even_sizes(fields)
    scale = sizes.width**0.5 if fields.boolean("scale_embedding") else 1.0
    return decoder(
        fields,
        sizes,
        attentions(sizes),
        read_feed_forward(fields, sizes, gated=False),
        NORM,
        embedding=Embedding(scale * sizes.std, position_std=sizes.std),
        position="learned",
    )
