"""Rotary decoders with LayerNorm: Nemotron, StarCoder 2, StableLM, Phi, Jais 2."""

from __future__ import annotations

from catenary.architecture import Architecture, parallel, pre_norm
from catenary.configs.decoder import (
    Sizes,
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
    """A plain feed-forward network; LayerNorm's weight is 1 + w with w = 0 at birth."""
    sizes = read_sizes(fields)
    return _plain(fields, sizes, partial=0.5, epsilon="norm_eps")


@reads("jais2")
def jais2(fields: Fields) -> Architecture:
    """A plain feed-forward network, heads turned whole."""
    return _plain(fields, read_sizes(fields), partial=1.0, epsilon="layer_norm_eps")


def _plain(fields: Fields, sizes: Sizes, *, partial: float, epsilon: str) -> Architecture:
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim, partial=partial))
    feed_forward = read_feed_forward(fields, sizes, gated=False)
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
