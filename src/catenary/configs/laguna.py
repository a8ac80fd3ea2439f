"""Laguna: softplus gates on attention outputs, a number of heads per layer, sigmoid experts."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Attention, Gate
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import SCALE, read_experts, sparse_and_dense, where_sparse
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_kinds, read_window
from catenary.errors import invalid

ROTATIONS = {FULL: (5e5, 0.5), SLIDING: (1e4, 1.0)}
"""Base and turned share of a head that the class takes for each kind of layer."""


@reads("laguna")
def laguna(fields: Fields) -> Architecture:
    """QK-norm, one gate per head, or per channel unless ``gating`` is true or 'per-head'."""
    sizes = read_sizes(fields)
    kinds = read_kinds(fields, sizes.depth)
    turnings = {
        kind: read_turning(fields, sizes.head_dim, kind, theta=base, partial=share)
        for kind, (base, share) in ROTATIONS.items()
    }
    gating = fields.raw("gating")
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=[turnings[kind] for kind in kinds],
        qk_norm=True,
        gate=Gate(sizes.std, "head" if gating is True or gating == "per-head" else "channel", "softplus"),
    )
    if fields.optional_number("moe_router_logit_softcapping", most=1e6):
        fields.note("moe_router_logit_softcapping: soft-capped router logits are read as uncapped")
    experts = read_experts(
        fields,
        sizes,
        score="sigmoid",
        normalised=True,
        scale=fields.number("moe_routed_scaling_factor", most=SCALE),
        shared=fields.integer("shared_expert_intermediate_size", most=limits.WIDTH),
        weighed="input" if fields.flag("moe_apply_router_weight_on_input") else "output",
    )
    where = where_sparse(fields, sizes.depth, [index > 0 for index in range(sizes.depth)])
    return decoder(
        fields,
        sizes,
        _with_own_heads(fields, heads),
        sparse_and_dense(fields, sizes, where, experts),
        read_norm(fields),
    )


def _with_own_heads(fields: Fields, heads: tuple[Attention, ...]) -> tuple[Attention, ...]:
    """Each layer with its own number of query heads, where ``num_attention_heads_per_layer`` gives them."""
    name = "num_attention_heads_per_layer"
    counts = fields.optional_integers(name, count=len(heads), most=limits.HEADS, least=1)
    if counts is None:
        return heads
    for count in counts:
        if count % heads[0].kv_heads:
            raise invalid(name, f"must hold multiples of num_key_value_heads={heads[0].kv_heads}", count)
    return tuple(
        replace(mix, groups=(replace(mix.groups[0], heads=count),)) for mix, count in zip(heads, counts, strict=True)
    )
