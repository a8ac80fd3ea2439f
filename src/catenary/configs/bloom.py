"""BLOOM: ALiBi, a LayerNorm right behind the embedding, plain feed-forward networks of 4 times the width."""

from __future__ import annotations

from catenary.architecture import Architecture, Attention, Branch, Embedding, FeedForward, Layer, Norm, Step, pre_norm
from catenary.configs import limits
from catenary.configs.alibi import biased, bloom_heads
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_norm
from catenary.configs.family import reads
from catenary.configs.fields import Fields


@reads("bloom")
def bloom(fields: Fields) -> Architecture:
    """ALiBi comes with the class and has no field; ``slow_but_exact`` and ``pretraining_tp`` are not read.

    With ``apply_residual_connection_post_layernorm`` the stream itself is normalised: n + attention(n), n = norm(x).
    """
    sizes = read_even_sizes(fields)
    norm = read_norm(fields, "layer", "layer_norm_epsilon")
    return decoder(
        fields,
        sizes,
        biased(attentions(sizes), bloom_heads(sizes.heads)),
        FeedForward(4 * sizes.width, False, "gelu_pytorch_tanh", sizes.std, sizes.std),
        norm,
        block=_normalised_stream if fields.flag("apply_residual_connection_post_layernorm") else pre_norm,
        embedding=Embedding(sizes.std, norm=norm),
        position="alibi",
        length=lambda fields: fields.optional_integer("seq_length", most=limits.POSITIONS),
    )


def _normalised_stream(attention: Attention, feed_forward: FeedForward, norm: Norm) -> Layer:
    """n + attention(n) with n = norm(x), then the same with the feed-forward network."""
    return Layer(tuple(Step((Branch(mix),), before=norm) for mix in (attention, feed_forward)))
