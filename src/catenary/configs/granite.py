"""Granite 3 and its windowed form, HyperCLOVA X: multipliers on embeddings, logits and residual branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from catenary.architecture import (
    Architecture,
    Attention,
    Branch,
    Embedding,
    FeedForward,
    Layer,
    Norm,
    Sink,
    Step,
    pre_norm,
)
from catenary.configs import limits
from catenary.configs.decoder import Sizes, attentions, decoder, read_feed_forward, read_norm, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import Turning, read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_kinds, read_window

MULTIPLIER = 1e6
"""Upper bound of a multiplier; published ones stay below 100."""


@reads("granite")
def granite(fields: Fields) -> Architecture:
    """``attention_multiplier`` takes the place of 1/sqrt(head_dim). The class's defaults are 1, published values not.

    Granite 3 publishes embedding x 12, residual x 0.22, so a config without them is a warning sign.
    """
    sizes = read_sizes(fields)
    scale = fields.number("attention_multiplier", most=MULTIPLIER)
    block = partial(pre_norm, scale=fields.number("residual_multiplier", most=MULTIPLIER))
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim), query_scale=scale)
    return _multiplied(fields, sizes, heads, block)


@reads("granite_swa")
def granite_swa(fields: Fields) -> Architecture:
    """Granite with windows outside layers 0, 4, 8, ..., a sink logit per head that starts at 0, and a base per layer.

    ``layer_rope_theta`` holds one base per layer, 0 for a layer that turns nothing.
    """
    sizes = read_sizes(fields)
    pattern = tuple(SLIDING if index % 4 else FULL for index in range(sizes.depth))
    bands = kernels(fields, read_kinds(fields, sizes.depth, pattern), window=read_window(fields))
    heads = attentions(
        sizes,
        kernels=bands,
        turnings=layer_turnings(fields, sizes),
        query_scale=fields.number("attention_multiplier", most=MULTIPLIER),
        sink=Sink(),
    )
    block = partial(pre_norm, scale=fields.number("residual_multiplier", most=MULTIPLIER))
    return _multiplied(fields, sizes, heads, block)


def layer_turnings(fields: Fields, sizes: Sizes) -> tuple[Turning | None, ...]:
    """The rotation of each layer with its base from ``layer_rope_theta`` (0: not turned), or one for all."""
    turning = read_turning(fields, sizes.head_dim)
    bases = fields.optional_numbers("layer_rope_theta", count=sizes.depth, most=limits.THETA)
    if bases is None:
        return (turning,) * sizes.depth
    return tuple(replace(turning, rotary=replace(turning.rotary, theta=base)) if base else None for base in bases)


@reads("hyperclovax")
def hyperclovax(fields: Fields) -> Architecture:
    """Granite's multipliers, with a norm behind each branch unless ``use_post_norm`` is false."""
    sizes = read_sizes(fields)
    given = fields.optional_number("attention_multiplier", most=MULTIPLIER)
    factor = fields.number("residual_multiplier", most=MULTIPLIER)
    block = partial(scaled_sandwich if fields.boolean("use_post_norm") else pre_norm, scale=factor)
    scale = sizes.head_dim**-0.5 if given is None else given
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim), query_scale=scale)
    return _multiplied(fields, sizes, heads, block)


def scaled_sandwich(attention: Attention, feed_forward: FeedForward, norm: Norm, scale: float) -> Layer:
    """x + scale * norm(branch(norm(x))) for attention, then the same for the feed-forward network."""
    mixers = (attention, feed_forward)
    return Layer(tuple(Step((Branch(mix, before=norm, after=norm, scale=scale),)) for mix in mixers))


def _multiplied(
    fields: Fields, sizes: Sizes, heads: Sequence[Attention], block: partial[Layer]
) -> Architecture:
    return decoder(
        fields, sizes, heads, read_feed_forward(fields, sizes), read_norm(fields), block=block,
        embedding=Embedding(sizes.std, scale=fields.number("embedding_multiplier", most=MULTIPLIER)),
    )  # fmt: skip
