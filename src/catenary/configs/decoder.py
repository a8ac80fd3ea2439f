"""The block that Llama, Qwen and Mistral share: pre-norm, RMSNorm, rotary attention, gated feed-forward."""

from __future__ import annotations

from catenary.architecture import Architecture, Attention, Embedding, FeedForward, HeadGroup, Norm, pre_norm
from catenary.configs import limits
from catenary.configs.activations import ACTIVATIONS
from catenary.configs.fields import Fields
from catenary.configs.initial import initial_std, uniform_initialisation
from catenary.configs.rotary import read_rotary
from catenary.errors import invalid


def gated_decoder(fields: Fields, *, head_dim: int, qk_norm: bool = False) -> Architecture:
    """The architecture of a decoder of equal blocks x + attention(norm(x)), x + feed_forward(norm(x)).

    Every matrix has the same initial std sigma, biases start at 0, and logits are q.k / sqrt(head_dim), so
    ``attention_bias``, ``mlp_bias`` and ``tie_word_embeddings`` change nothing at birth and are not read.

    Raises:
        InvalidInput: a field is missing, of the wrong type or out of range, or heads do not divide.
    """
    depth, width, heads = read_depth(fields), read_width(fields), read_heads(fields)
    kv_heads = fields.optional_integer("num_key_value_heads", most=limits.HEADS)
    if kv_heads is None:
        kv_heads = heads
        fields.assume("num_key_value_heads", heads, "left out or null: one per query head")
    if heads % kv_heads:
        raise invalid("num_attention_heads", f"must be a multiple of num_key_value_heads={kv_heads}", heads)
    if head_dim % 2:
        raise invalid("head_dim", "must be even for rotary positions", head_dim)
    max_length = fields.integer("max_position_embeddings", most=limits.POSITIONS)
    rotary = read_rotary(fields, max_length)
    std = initial_std(fields)
    norm = Norm("rms", fields.number("rms_norm_eps", most=1.0))
    layer = pre_norm(
        Attention(
            groups=(HeadGroup(heads),),
            kv_heads=kv_heads,
            head_dim=head_dim,
            query_scale=rotary.attention_factor**2 / head_dim**0.5,
            qk_norm=qk_norm,
            query_key_std=std,
            value_std=std,
            output_std=std,
        ),
        FeedForward(
            width=fields.integer("intermediate_size", most=limits.WIDTH),
            gated=True,
            activation=fields.choice("hidden_act", known=ACTIVATIONS),
            input_std=std,
            output_std=std,
        ),
        norm,
    )
    return Architecture(
        name=fields.family,
        family=fields.family,
        width=width,
        layers=(layer,) * depth,
        embedding=Embedding(std),
        final_norm=norm,
        position="rope",
        rope_theta=rotary.theta,
        max_length=max_length,
        vocabulary=fields.integer("vocab_size", most=limits.VOCABULARY),
        initialisation=uniform_initialisation(std),
    )


def read_depth(fields: Fields) -> int:
    """``num_hidden_layers``."""
    return fields.integer("num_hidden_layers", most=limits.DEPTH)


def read_width(fields: Fields) -> int:
    """``hidden_size``."""
    return fields.integer("hidden_size", most=limits.WIDTH)


def read_heads(fields: Fields) -> int:
    """``num_attention_heads``."""
    return fields.integer("num_attention_heads", most=limits.HEADS)


def read_head_dim(fields: Fields) -> int:
    """``head_dim`` where the config gives it, else hidden_size / num_attention_heads."""
    given = fields.optional_integer("head_dim", most=limits.HEADS)
    return given if given is not None else even_split(fields)


def even_split(fields: Fields) -> int:
    """hidden_size / num_attention_heads, refused where it is no whole number."""
    width, heads = read_width(fields), read_heads(fields)
    if width % heads:
        raise invalid("hidden_size", f"must be a multiple of num_attention_heads={heads}", width)
    return width // heads
