"""Granite's mixtures of experts: the multipliers of Granite, a network that every token passes, windows with sinks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from catenary.architecture import Architecture, Attention, Embedding, Sink, pre_norm
from catenary.configs import limits
from catenary.configs.decoder import Sizes, attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import read_experts
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.granite import MULTIPLIER
from catenary.configs.rotary import Turning, read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_kinds, read_window
from catenary.errors import invalid


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
        turnings=_bases(fields, sizes),
        query_scale=fields.number("attention_multiplier", most=MULTIPLIER),
        sink=Sink(),
    )
    return _granite(fields, sizes, heads)


def _bases(fields: Fields, sizes: Sizes) -> Sequence[Turning | None]:
    given = fields.optional_list("layer_rope_theta")
    if given is None:
        return (read_turning(fields, sizes.head_dim),) * sizes.depth
    if len(given) != sizes.depth:
        raise invalid("layer_rope_theta", f"must be a list of {sizes.depth} numbers, one per layer", len(given))
    one = "layer_rope_theta"
    bases = [Fields({one: base}, fields.family).number(one, most=limits.THETA) for base in given]
    return tuple(read_turning(fields, sizes.head_dim, theta=base) if base else None for base in bases)


def _granite(fields: Fields, sizes: Sizes, heads: Sequence[Attention]) -> Architecture:
    name = "shared_intermediate_size"
    shared = fields.integer(name, least=0, most=limits.WIDTH) if fields.knows(name) else 0
    experts = read_experts(
        fields, sizes, width="intermediate_size", count="num_local_experts", score="softmax-top", shared=shared
    )
    return decoder(
        fields,
        sizes,
        heads,
        experts,
        read_norm(fields),
        block=partial(pre_norm, scale=fields.number("residual_multiplier", most=MULTIPLIER)),
        embedding=Embedding(sizes.std, scale=fields.number("embedding_multiplier", most=MULTIPLIER)),
    )
