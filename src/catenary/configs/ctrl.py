"""CTRL: sinusoidal positions, embeddings scaled by sqrt(d) on their way in, ReLU."""

from __future__ import annotations

from catenary.architecture import Architecture, Embedding, FeedForward
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_norm
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.sinusoid import paper_sinusoid


@reads("ctrl")
def ctrl(fields: Fields) -> Architecture:
    """ReLU by class; the vocabulary's vector of a control code changes nothing at birth."""
    sizes = read_even_sizes(fields)
    inner = fields.integer("dff", most=4 * limits.WIDTH)
    return decoder(
        fields,
        sizes,
        attentions(sizes),
        FeedForward(inner, False, "relu", sizes.std, sizes.std),
        read_norm(fields, "layer", "layer_norm_epsilon"),
        embedding=Embedding(sizes.std, scale=sizes.width**0.5, sinusoid=paper_sinusoid(sizes.width)),
        position="sinusoid",
    )
