"""XGLM: sinusoidal positions beside an embedding scaled by sqrt(d)."""

from __future__ import annotations

from catenary.architecture import Architecture, Embedding, Norm
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_feed_forward
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.sinusoid import fairseq_sinusoid
from catenary.errors import NotApplicable

NORM = Norm("layer", 1e-5)
"""The class gives its LayerNorms torch's own epsilon."""


@reads("xglm")
def xglm(fields: Fields) -> Architecture:
    """The scale sits inside the embedding module, so that fed vectors are already scaled."""
    if fields.flag("add_cross_attention"):
        raise NotApplicable("xglm with add_cross_attention=true: only decoders without an encoder are described")
    sizes = read_even_sizes(fields)
    scale = sizes.width**0.5 if fields.boolean("scale_embedding") else 1.0
    return decoder(
        fields,
        sizes,
        attentions(sizes),
        read_feed_forward(fields, sizes, gated=False, width="ffn_dim", activation="activation_function"),
        NORM,
        embedding=Embedding(scale * sizes.std, sinusoid=fairseq_sinusoid(sizes.width)),
        position="sinusoid",
    )
