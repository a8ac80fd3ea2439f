"""nanochat: a norm right behind the embedding, QK-norm, and attention outputs smaller by sqrt(2 layers)."""

from __future__ import annotations

from catenary.architecture import Architecture, Embedding
from catenary.configs.decoder import attentions, decoder, read_feed_forward, read_norm, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning


@reads("nanochat")
def nanochat(fields: Fields) -> Architecture:
    """Norms have no weights. Of the two output matrices of a layer only attention's has std / sqrt(2 layers)."""
    sizes = read_sizes(fields)
    small = sizes.std / (2 * sizes.depth) ** 0.5
    norm = read_norm(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim), qk_norm=True, output_std=small)
    return decoder(
        fields, sizes, heads, read_feed_forward(fields, sizes, gated=False), norm,
        embedding=Embedding(sizes.std, norm=norm),
        initialisation=(
            f"transformers' nanochat: embedding and matrices N(0, {sizes.std:.6g}^2), attention outputs "
            f"N(0, {small:.6g}^2) = N(0, ({sizes.std:.6g}/sqrt(2 layers))^2)"
        ),
    )  # fmt: skip
