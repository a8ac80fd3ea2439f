"""GPT-2: learned positions, LayerNorm, and residual outputs initialised smaller by sqrt(2 n_layer)."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Embedding
from catenary.configs import limits
from catenary.configs.decoder import (
    attentions,
    decoder,
    even_split,
    read_feed_forward,
    read_heads,
    read_length,
    read_norm,
    read_sizes,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.errors import NotApplicable, invalid


@reads("gpt2", "gpt-sw3")
def gpt2(fields: Fields) -> Architecture:
    """The architecture, with std / sqrt(2 n_layer) on both ``c_proj`` of every block.

    Logits are multiplied by head_dim^(-1/2) with ``scale_attn_weights`` and further by 1/(i + 1) in layer
    i = 0, 1, ... with ``scale_attn_by_inverse_layer_idx``. ``reorder_and_upcast_attn`` changes the precision alone and
    is not read, nor is ``n_ctx``.
    """
    if fields.boolean("add_cross_attention"):
        raise NotApplicable("gpt2 with add_cross_attention=true: only decoders without an encoder are described")
    if fields.number("initializer_range", most=limits.STD) == 0:
        hint = "transformers would set every GPT-2 matrix to zero, and every profile with it"
        raise invalid("initializer_range", "must be > 0", 0.0, hint)
    head_dim = even_split(fields)
    sizes = read_sizes(fields, head_dim=head_dim, kv_heads=read_heads(fields))
    small = sizes.std / (2 * sizes.depth) ** 0.5
    scale = head_dim**-0.5 if fields.boolean("scale_attn_weights") else 1.0
    heads_of = attentions(sizes, query_scale=scale, output_std=small)
    if fields.boolean("scale_attn_by_inverse_layer_idx"):
        heads_of = tuple(replace(mix, query_scale=scale / (index + 1)) for index, mix in enumerate(heads_of))
    feed_forward = read_feed_forward(
        fields, sizes, gated=False, width=inner_width(fields, sizes.width), activation="activation_function",
        output_std=small,
    )  # fmt: skip
    positions = read_length(fields)
    if fields.has("n_ctx") and fields.integer("n_ctx", most=limits.POSITIONS) != positions:
        fields.note(f"n_ctx is not read by transformers; n_positions={positions} is the context")
    return decoder(
        fields, sizes, heads_of, feed_forward, read_norm(fields, "layer", "layer_norm_epsilon"),
        embedding=Embedding(sizes.std, position_std=sizes.std), position="learned",
        initialisation=(
            f"transformers' GPT-2: embeddings, positions and matrices N(0, {sizes.std:.6g}^2), both c_proj of a block "
            f"N(0, {small:.6g}^2) = N(0, ({sizes.std:.6g}/sqrt(2 n_layer))^2), biases 0, norm weights 1"
        ),
    )  # fmt: skip


def inner_width(fields: Fields, width: int, name: str = "n_inner") -> int:
    """The feed-forward width, 4 times the residual width where the config gives none."""
    inner = fields.optional_integer(name, most=4 * limits.WIDTH)
    if inner is None:
        fields.assume(name, 4 * width, f"left out or null: 4 {fields.own_name('hidden_size')}")
        return 4 * width
    return inner
