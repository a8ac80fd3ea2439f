r"""Decoders whose branches normalise in front of their last matrix: BitNet, and DiffLlama's differential attention.

W norm(z) with z of n channels and W of std sigma has the covariance \(n \sigma^2 K_{ij}/\sqrt{K_{ii}K_{jj}}\) that
\(\sqrt{n}\,\sigma\) norm(W z) has too, so the inner norm is described as one behind the branch with that scale; its
epsilon, which W z sees n sigma^2 times larger, is scaled with it (derived here).
"""

from __future__ import annotations

import math
from dataclasses import replace

from catenary.architecture import Architecture, Attention, Branch, FeedForward, Layer, Norm, Step
from catenary.configs.decoder import assemble, attentions, decoder, read_feed_forward, read_norm, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.errors import invalid


@reads("bitnet")
def bitnet(fields: Fields) -> Architecture:
    """An RMSNorm in front of both output matrices; heads fill the width. Ternary weights are a matter of training."""
    sizes = read_sizes(fields)
    if sizes.heads * sizes.head_dim != sizes.width:
        raise invalid("head_dim", f"must be hidden_size / num_attention_heads = {sizes.width}/{sizes.heads}",
                      sizes.head_dim)  # fmt: skip
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim))
    return decoder(
        fields, sizes, heads, read_feed_forward(fields, sizes), read_norm(fields), block=inner_normed
    )


def inner_normed(attention: Attention, feed_forward: FeedForward, norm: Norm) -> Layer:
    """x + W norm(inner(norm(x))) for attention, then the same for the feed-forward network."""
    inner = ((attention, attention.heads * attention.head_dim), (feed_forward, feed_forward.width))
    return Layer(tuple(Step((_inner_normed(mix, norm, channels),)) for mix, channels in inner))


def _inner_normed(mix: Attention | FeedForward, norm: Norm, channels: int, scale: float = 1.0) -> Branch:
    gain = channels * mix.output_std**2
    return Branch(mix, before=norm, after=Norm(norm.kind, norm.epsilon * gain), scale=scale * gain**0.5)


@reads(
    "diffllama",
    approximate="the difference of two attention maps is described by its mean and, to first order in the logit "
    "variance, its fluctuation",
)
def diffllama(fields: Fields) -> Architecture:
    r"""Heads in pairs give \((1-\lambda_0)\,norm[(A_1 - \lambda A_2)V]\), \(\lambda_0=.8-.6e^{-.3l}\), l from 0.

    The mean of the bracket is \((1-\lambda)\bar AV\), and its fluctuation relative to that mean is
    \(\sqrt{1+\lambda^2}/(1-\lambda)\) times that of one map, so the logits of the one map described here carry this
    factor (derived here). The learned part of lambda is 0 on average and left out.
    """
    sizes = read_sizes(fields)
    if sizes.kv_heads % 2:
        raise invalid("num_key_value_heads", "must be even, as heads work in pairs", sizes.kv_heads)
    norm, feed_forward = read_norm(fields), read_feed_forward(fields, sizes)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim))
    layers = tuple(_differential(index, mix, feed_forward, norm) for index, mix in enumerate(heads))
    return assemble(fields, sizes, layers, final_norm=norm)


def _differential(index: int, attention: Attention, feed_forward: FeedForward, norm: Norm) -> Layer:
    share = 0.8 - 0.6 * math.exp(-0.3 * index)
    noise = math.sqrt(1 + share**2) / (1 - share)
    mix = replace(attention, query_scale=attention.query_scale * noise)
    # The norm sees the mean (1 - share) A V, so that its epsilon weighs 1 / (1 - share)^2 times more.
    seen = Norm(norm.kind, norm.epsilon / (1 - share) ** 2)
    branch = replace(
        _inner_normed(mix, seen, attention.heads * attention.head_dim, scale=1 - share), before=norm
    )
    return Layer((Step((branch,)), Step((Branch(feed_forward, before=norm),))))
