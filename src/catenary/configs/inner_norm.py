r"""Decoders whose branches normalise in front of their last matrix: BitNet.

W norm(z) with z of n channels and W of std sigma has the covariance \(n \sigma^2 K_{ij}/\sqrt{K_{ii}K_{jj}}\) that
\(\sqrt{n}\,\sigma\) norm(W z) has too, so the inner norm is described as one behind the branch with that scale; its
epsilon, which W z sees n sigma^2 times larger, is scaled with it (derived here).
"""

from __future__ import annotations

from catenary.architecture import Architecture, Attention, Branch, FeedForward, Layer, Norm, Step
from catenary.configs.decoder import attentions, decoder, read_feed_forward, read_norm, read_sizes
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


def _inner_normed(mix: Attention | FeedForward, norm: Norm, channels: int) -> Branch:
    gain = channels * mix.output_std**2
    return Branch(mix, before=norm, after=Norm(norm.kind, norm.epsilon * gain), scale=gain**0.5)
