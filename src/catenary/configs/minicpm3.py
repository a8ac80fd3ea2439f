"""MiniCPM 3 and Youtu: latent attention with dense networks."""

from __future__ import annotations

from functools import partial

from catenary.architecture import Architecture, Embedding, pre_norm
from catenary.configs import limits
from catenary.configs.decoder import decoder, even_split, read_feed_forward, read_norm, read_width
from catenary.configs.experts import SCALE
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.initial import initial_std
from catenary.configs.mla import latent_attentions, read_latent_sizes


@reads("minicpm3")
def minicpm3(fields: Fields) -> Architecture:
    """Branches are multiplied by ``scale_depth`` / sqrt(num_hidden_layers); null means sqrt(num_hidden_layers).

    ``scale_emb`` sits inside the embedding module, so that fed vectors are already scaled; ``dim_model_base`` acts on
    the output alone.
    """
    sizes = read_latent_sizes(fields)
    given = fields.optional_number("scale_depth", most=SCALE)
    factor = 1.0 if given is None else given / sizes.depth**0.5
    value_dim = None if fields.has("v_head_dim") else even_split(fields)
    return decoder(
        fields,
        sizes,
        latent_attentions(fields, sizes, value_dim=value_dim),
        read_feed_forward(fields, sizes),
        read_norm(fields),
        block=partial(pre_norm, scale=factor),
        embedding=Embedding(sizes.std * fields.number("scale_emb", most=SCALE)),
    )


@reads("youtu")
def youtu(fields: Fields) -> Architecture:
    """The std is 2/sqrt(5 d) where ``initializer_range`` is null or left out, and twice that in embeddings."""
    given = fields.optional_number("initializer_range", most=limits.STD)
    std = 2 / (5 * read_width(fields)) ** 0.5 if given is None else initial_std(fields)
    if given is None:
        fields.assume("initializer_range", std, "left out or null: 2/sqrt(5 hidden_size)")
    sizes = read_latent_sizes(fields, std)
    embedding = fields.optional_number("embedding_initializer_range", most=limits.STD)
    return decoder(
        fields,
        sizes,
        latent_attentions(fields, sizes),
        read_feed_forward(fields, sizes),
        read_norm(fields),
        embedding=Embedding(embedding or 2 * std),
    )
