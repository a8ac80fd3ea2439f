"""Arcee's AFMoE: gated attention between two norms, windows in three of four layers, a router that starts at zero."""

from __future__ import annotations

from catenary.architecture import Architecture, Embedding, Gate, sandwich
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import SCALE, after_dense, multiple, read_experts, sparse_and_dense
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import SLIDING, full_every, kernels, read_kinds, read_window


@reads("afmoe")
def afmoe(fields: Fields) -> Architecture:
    """QK-norm, a sigmoid gate per channel; only sliding layers turn. ``mup_enabled`` scales embeddings by sqrt(d).

    The router's matrix is zero at birth, so that every token goes to the same experts with equal weights.
    """
    sizes = read_sizes(fields)
    period = fields.integer("global_attn_every_n_layers", most=limits.DEPTH)
    kinds = read_kinds(fields, sizes.depth, full_every(sizes.depth, period))
    turning = read_turning(fields, sizes.head_dim)
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=[turning if kind == SLIDING else None for kind in kinds],
        qk_norm=True,
        gate=Gate(sizes.std),
    )
    experts = read_experts(
        fields,
        sizes,
        score="sigmoid",
        normalised=True,
        scale=fields.number("route_scale", most=SCALE),
        shared=multiple(fields, "moe_intermediate_size", "num_shared_experts"),
        router_std=0.0,
    )
    where = after_dense(fields, sizes.depth, "num_dense_layers")
    return decoder(
        fields,
        sizes,
        heads,
        sparse_and_dense(fields, sizes, where, experts),
        read_norm(fields),
        block=sandwich,
        embedding=Embedding(sizes.std, scale=sizes.width**0.5 if fields.flag("mup_enabled") else 1.0),
    )
