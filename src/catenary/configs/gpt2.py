"""GPT-2: learned positions, LayerNorm, and residual outputs initialised smaller by sqrt(2 n_layer)."""

from __future__ import annotations

from collections.abc import Mapping

from catenary.architecture import Architecture, Attention, Embedding, FeedForward, HeadGroup, Norm, pre_norm
from catenary.configs import limits
from catenary.configs.activations import ACTIVATIONS
from catenary.configs.family import register
from catenary.configs.fields import Fields
from catenary.errors import NotApplicable, invalid

DEFAULTS: Mapping[str, object] = {
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_inner": None,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "initializer_range": 0.02,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}


class GPT2:
    """``reorder_and_upcast_attn`` changes the precision alone and is not read, nor is ``n_ctx``."""

    model_types: tuple[str, ...] = ("gpt2",)
    defaults: Mapping[str, object] = DEFAULTS

    def read(self, fields: Fields) -> Architecture:
        """The architecture, with std / sqrt(2 n_layer) on both ``c_proj`` of every block.

        Logits are multiplied by head_dim^(-1/2) with ``scale_attn_weights`` and further by 1/(i + 1) in layer
        i = 0, 1, ... with ``scale_attn_by_inverse_layer_idx``.
        """
        if fields.boolean("add_cross_attention"):
            raise NotApplicable("gpt2 with add_cross_attention=true: only decoders without an encoder are described")
        depth = fields.integer("n_layer", "num_hidden_layers", most=limits.DEPTH)
        width = fields.integer("n_embd", "hidden_size", most=limits.WIDTH)
        heads = fields.integer("n_head", "num_attention_heads", most=limits.HEADS)
        if width % heads:
            raise invalid("n_embd", f"must be a multiple of n_head={heads}", width)
        std = fields.number("initializer_range", most=limits.STD)
        if std == 0:
            hint = "transformers would set every GPT-2 matrix to zero, and every profile with it"
            raise invalid("initializer_range", "must be > 0", std, hint)
        norm = Norm("layer", fields.number("layer_norm_epsilon", most=1.0))
        scale = _query_scales(fields, width // heads, depth)
        inner = _inner_width(fields, width)
        activation = fields.choice("activation_function", known=ACTIVATIONS)
        small = std / (2 * depth) ** 0.5
        layers = tuple(
            pre_norm(
                Attention((HeadGroup(heads),), heads, width // heads, scale[index], False, std, std, small),
                FeedForward(inner, False, activation, std, small),
                norm,
            )
            for index in range(depth)
        )
        positions = fields.integer("n_positions", "max_position_embeddings", most=limits.POSITIONS)
        if fields.has("n_ctx") and fields.integer("n_ctx", most=limits.POSITIONS) != positions:
            fields.note(f"n_ctx is not read by transformers; n_positions={positions} is the context")
        return Architecture(
            name=fields.family,
            family=fields.family,
            width=width,
            layers=layers,
            embedding=Embedding(std, position_std=std),
            final_norm=norm,
            position="learned",
            max_length=positions,
            vocabulary=fields.integer("vocab_size", most=limits.VOCABULARY),
            initialisation=(
                f"transformers' GPT-2: embeddings, positions and matrices N(0, {std:.6g}^2), both c_proj of a block "
                f"N(0, {small:.6g}^2) = N(0, ({std:.6g}/sqrt(2 n_layer))^2), biases 0, norm weights 1"
            ),
        )


def _query_scales(fields: Fields, head_dim: int, depth: int) -> tuple[float, ...]:
    scale = head_dim**-0.5 if fields.boolean("scale_attn_weights") else 1.0
    by_layer = fields.boolean("scale_attn_by_inverse_layer_idx")
    return tuple(scale / (index + 1) if by_layer else scale for index in range(depth))


def _inner_width(fields: Fields, width: int) -> int:
    inner = fields.optional_integer("n_inner", most=4 * limits.WIDTH)
    if inner is None:
        fields.assume("n_inner", 4 * width, "left out or null: 4 n_embd")
        return 4 * width
    return inner


GPT2_FAMILY = register(GPT2())
