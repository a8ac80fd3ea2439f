"""Rotary decoders with LayerNorm: Nemotron, StarCoder 2, StableLM, Phi, Jais 2."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, parallel, pre_norm
from catenary.configs.decoder import (
    attentions,
    decoder,
    even_split,
    read_feed_forward,
    read_norm,
    read_sizes,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_window


@reads("nemotron")
def nemotron(fields: Fields) -> Architecture:
    """A plain feed-forward network; half of each head turned.

    LayerNorm's weight is 1 + w, and transformers draws w = 1, so that norms double their output at birth (in training
    w starts at 0). Every norm stands in front of matrices, whose std here is twice that of their entries instead.
    """
    return _plain(fields, partial=0.5, epsilon="norm_eps", norm_gain=2.0)


@reads("jais2")
def jais2(fields: Fields) -> Architecture:
    """A plain feed-forward network, heads turned whole."""
    return _plain(fields, partial=1.0, epsilon="layer_norm_eps", norm_gain=1.0)


def _plain(fields: Fields, *, partial: float, epsilon: str, norm_gain: float) -> Architecture:
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim, partial=partial))
    seen = norm_gain * sizes.std
    heads = tuple(replace(mix, query_key_std=seen, value_std=seen) for mix in heads)
    feed_forward = replace(read_feed_forward(fields, sizes, gated=False), input_std=seen)
    return decoder(fields, sizes, heads, feed_forward, read_norm(fields, "layer", epsilon))


@reads("starcoder2")
def starcoder2(fields: Fields) -> Architecture:
    """A plain feed-forward network and one window for every layer, none unless given."""
    sizes = read_sizes(fields)
    window = read_window(fields)
    bands = kernels(fields, (FULL if window is None else SLIDING,) * sizes.depth, window=window)
    heads = attentions(sizes, kernels=bands, turnings=read_turning(fields, sizes.head_dim))
    feed_forward = read_feed_forward(fields, sizes, gated=False)
    return decoder(fields, sizes, heads, feed_forward, read_norm(fields, "layer", "norm_epsilon"))


@reads("stablelm")
def stablelm(fields: Fields) -> Architecture:
    """A quarter of each head turned; ``use_parallel_residual`` and ``qk_layernorm`` are off unless given."""
    sizes = read_sizes(fields, head_dim=even_split(fields))
    turning = read_turning(fields, sizes.head_dim, partial=0.25)
    heads = attentions(sizes, turnings=turning, qk_norm=fields.boolean("qk_layernorm"))
    block = parallel if fields.boolean("use_parallel_residual") else pre_norm
    return decoder(fields, sizes, heads, read_feed_forward(fields, sizes), read_norm(fields, "layer"), block=block)


@reads("phi")
def phi(fields: Fields) -> Architecture:
    """Phi 1 to 2: both branches behind one LayerNorm, side by side; half of each head turned."""
    sizes = read_sizes(fields)
    turning = read_turning(fields, sizes.head_dim, partial=0.5)
    heads = attentions(sizes, turnings=turning, qk_norm=fields.boolean("qk_layernorm"))
    feed_forward = read_feed_forward(fields, sizes, gated=False)
    return decoder(fields, sizes, heads, feed_forward, read_norm(fields, "layer"), block=parallel)
