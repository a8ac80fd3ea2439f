"""Beam: sandwich norms, a stream that shrinks as branches are added, gated attention, experts in groups."""

from __future__ import annotations

from catenary.architecture import Architecture, Attention, Branch, FeedForward, Gate, Layer, Norm, Step
from catenary.configs.decoder import assemble, attentions, read_norm, read_sizes
from catenary.configs.experts import SCALE, read_experts, sparse_and_dense, where_sparse
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import FULL, SLIDING, full_every, kernels, read_kinds, read_window

DENSE = 3
"""Layers without experts at the bottom, where ``mlp_layer_types`` say nothing."""


@reads("beam")
def beam(fields: Fields) -> Architecture:
    """The k-th summand has weight 1/sqrt(k), the stream before it sqrt((k - 1)/k), so that all keep equal shares.

    Windows in five of six layers, but never in the last; only sliding layers turn, and the others' queries grow slowly
    with the position, which is left out.
    """
    sizes = read_sizes(fields)
    kinds = read_kinds(fields, sizes.depth, (*full_every(sizes.depth, 6)[:-1], FULL))
    turning = read_turning(fields, sizes.head_dim, SLIDING)
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=[turning if kind == SLIDING else None for kind in kinds],
        qk_norm=True,
        gate=Gate(sizes.std),
    )
    if FULL in kinds:
        fields.note("queries of full layers are scaled by (1 + (position + 1)/2048)^0.1, read as 1")
    experts = read_experts(
        fields,
        sizes,
        score="sigmoid",
        normalised=fields.flag("norm_topk_prob"),
        scale=fields.number("routed_scaling_factor", most=SCALE),
        grouped=True,
    )
    where = where_sparse(fields, sizes.depth, [index >= DENSE for index in range(sizes.depth)])
    norm = read_norm(fields)
    inner = sparse_and_dense(fields, sizes, where, experts)
    layers = [
        _layer(attention, network, norm, 2 * index + 2)
        for index, (attention, network) in enumerate(zip(heads, inner, strict=True))
    ]
    return assemble(fields, sizes, layers, final_norm=norm)


def _layer(attention: Attention, feed_forward: FeedForward, norm: Norm, first: int) -> Layer:
    """The layer whose attention is summand ``first`` of the stream, the embedding being the first."""

    def step(mix: Attention | FeedForward, k: int) -> Step:
        return Step((Branch(mix, before=norm, after=norm, scale=k**-0.5),), keep=((k - 1) / k) ** 0.5)

    return Layer((step(attention, first), step(feed_forward, first + 1)))
