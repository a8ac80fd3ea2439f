"""Granite's mixtures of experts: the multipliers of Granite, a network that every token passes, windows with sinks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from catenary.architecture import Architecture, Attention, Embedding, FeedForward, Sink, StateSpace, pre_norm
from catenary.configs import limits
from catenary.configs.decoder import Sizes, attentions, decoder, read_feed_forward, read_norm, read_sizes
from catenary.configs.experts import EXPERTS, read_experts
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.granite import MULTIPLIER, layer_turnings
from catenary.configs.rotary import read_turning
from catenary.configs.state_space import check_attends, read_inner_width, read_state_space
from catenary.configs.windows import FULL, SLIDING, kernels, read_kinds, read_window, refused_layer


@reads("granitemoe", "granitemoeshared")
def granitemoe(fields: Fields) -> Architecture:
    """A softmax over the chosen experts; ``attention_multiplier`` takes the place of 1/sqrt(head_dim)."""
    sizes = read_sizes(fields)
    scale = fields.number("attention_multiplier", most=MULTIPLIER)
    return _granite(fields, sizes, attentions(sizes, turnings=read_turning(fields, sizes.head_dim), query_scale=scale))


@reads("granitemoe_swa")
def granitemoe_swa(fields: Fields) -> Architecture:
    """Full attention in layers 0, 4, 8, ..., a sink per head, and one RoPE base per layer (0: not turned)."""
    sizes = read_sizes(fields)
    kinds = read_kinds(fields, sizes.depth, [SLIDING if i % 4 else FULL for i in range(sizes.depth)])
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=layer_turnings(fields, sizes),
        query_scale=fields.number("attention_multiplier", most=MULTIPLIER),
        sink=Sink(),
    )
    return _granite(fields, sizes, heads)


@reads("granitemoehybrid")
def granitemoehybrid(fields: Fields) -> Architecture:
    """Granite 4: Mamba 2 or attention; a network that every token passes, experts beside it where counted.

    Queries and keys turn only with ``position_embedding_type`` "rope". Without ``layer_types`` all layers are Mamba 2.
    """
    sizes = read_sizes(fields)
    kinds = fields.optional_texts("layer_types", count=sizes.depth) or ("mamba",) * sizes.depth
    for index, kind in enumerate(kinds):
        if kind not in (*ATTENDING, *STATE_SPACE):
            raise refused_layer(fields, index, kind)
    turned = fields.raw("position_embedding_type") == "rope"
    heads = attentions(
        sizes,
        turnings=read_turning(fields, sizes.head_dim) if turned else None,
        query_scale=fields.number("attention_multiplier", most=MULTIPLIER),
    )
    state_space = read_state_space(fields, sizes, read_inner_width(fields, sizes), read_norm(fields))
    mixes = [mix if kind in ATTENDING else state_space for kind, mix in zip(kinds, heads, strict=True)]
    dense = not fields.integer("num_local_experts", least=0, most=EXPERTS)
    inner = read_feed_forward(fields, sizes, width="shared_intermediate_size") if dense else None
    architecture = _granite(fields, sizes, mixes, inner)
    check_attends(architecture.layers, "granitemoehybrid")
    return architecture


ATTENDING, STATE_SPACE = ("attention", FULL), ("mamba", "linear_attention")
"""Older and newer names of the kinds of layers."""


def _granite(
    fields: Fields, sizes: Sizes, heads: Sequence[Attention | StateSpace], inner: FeedForward | None = None
) -> Architecture:
    """The decoder with Granite's multipliers, around ``inner`` or the experts that the config describes."""
    return decoder(
        fields,
        sizes,
        heads,
        _experts(fields, sizes) if inner is None else inner,
        read_norm(fields),
        block=partial(pre_norm, scale=fields.number("residual_multiplier", most=MULTIPLIER)),
        embedding=Embedding(sizes.std, scale=fields.number("embedding_multiplier", most=MULTIPLIER)),
        position="rope" if any(isinstance(mix, Attention) and mix.rotary for mix in heads) else "none",
    )


def _experts(fields: Fields, sizes: Sizes) -> FeedForward:
    name = "shared_intermediate_size"
    shared = fields.integer(name, least=0, most=limits.WIDTH) if fields.knows(name) else 0
    return read_experts(
        fields, sizes, width="intermediate_size", count="num_local_experts", score="softmax-top", shared=shared
    )
