"""Granite and HyperCLOVA X: multipliers on embeddings, logits and residual branches."""

from __future__ import annotations

from functools import partial

from catenary.architecture import Architecture, Attention, Branch, Embedding, FeedForward, Layer, Norm, Step, pre_norm
from catenary.configs.decoder import Sizes, attentions, decoder, read_feed_forward, read_norm, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning

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
    return _multiplied(fields, sizes, scale, block)


@reads("hyperclovax")
def hyperclovax(fields: Fields) -> Architecture:
    """Granite's multipliers, with a norm behind each branch unless ``use_post_norm`` is false."""
    sizes = read_sizes(fields)
    given = fields.optional_number("attention_multiplier", most=MULTIPLIER)
    factor = fields.number("residual_multiplier", most=MULTIPLIER)
    block = partial(scaled_sandwich if fields.boolean("use_post_norm") else pre_norm, scale=factor)
    return _multiplied(fields, sizes, sizes.head_dim**-0.5 if given is None else given, block)


def scaled_sandwich(attention: Attention, feed_forward: FeedForward, norm: Norm, scale: float) -> Layer:
    """x + scale * norm(branch(norm(x))) for attention, then the same for the feed-forward network."""
    mixers = (attention, feed_forward)
    return Layer(tuple(Step((Branch(mix, before=norm, after=norm, scale=scale),)) for mix in mixers))


def _multiplied(fields: Fields, sizes: Sizes, query_scale: float, block: partial[Layer]) -> Architecture:
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim), query_scale=query_scale)
    return decoder(
        fields, sizes, heads, read_feed_forward(fields, sizes), read_norm(fields), block=block,
        embedding=Embedding(sizes.std, scale=fields.number("embedding_multiplier", most=MULTIPLIER)),
    )  # fmt: skip
