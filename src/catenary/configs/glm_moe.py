"""GLM 4.5 and its kin: sigmoid scores, experts in groups, a network that every token passes, dense layers first."""

from __future__ import annotations

from collections.abc import Sequence

from catenary.architecture import Architecture, Attention, FeedForward
from catenary.configs import limits
from catenary.configs.decoder import Sizes, attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import SCALE, after_dense, multiple, read_experts, sparse_and_dense, where_sparse
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning, read_turnings
from catenary.configs.windows import FULL, SLIDING, full_every, kernels, read_kinds, read_window


@reads("glm4_moe", "sarvam_moe")
def glm4_moe(fields: Fields) -> Architecture:
    """QK-norm by ``use_qk_norm``; half of each head turns unless the config says otherwise, in Sarvam the whole."""
    sizes = read_sizes(fields)
    turning = read_turning(fields, sizes.head_dim, partial=1.0 if fields.family == "sarvam_moe" else 0.5)
    heads = attentions(sizes, turnings=turning, qk_norm=fields.flag("use_qk_norm"))
    return _decoder(fields, sizes, heads, after_dense(fields, sizes.depth), grouped_experts(fields, sizes))


@reads("solar_open")
def solar_open(fields: Fields) -> Architecture:
    """Experts in every layer, no QK-norm."""
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim))
    return decoder(fields, sizes, heads, grouped_experts(fields, sizes), read_norm(fields))


@reads("dots1")
def dots1(fields: Fields) -> Architecture:
    """QK-norm; with a window, layers from ``max_window_layers`` on slide."""
    sizes = read_sizes(fields)
    window = read_window(fields)
    first = fields.integer("max_window_layers", least=0, most=limits.POSITIONS) if window else sizes.depth
    kinds = read_kinds(fields, sizes.depth, [SLIDING if i >= first else FULL for i in range(sizes.depth)])
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=window),
        turnings=read_turnings(fields, sizes.head_dim, kinds),
        qk_norm=True,
    )
    return _decoder(fields, sizes, heads, after_dense(fields, sizes.depth), grouped_experts(fields, sizes))


@reads("exaone_moe")
def exaone_moe(fields: Fields) -> Architecture:
    """QK-norm, windows in three of four layers; with a window, layers without one do not turn queries and keys."""
    sizes = read_sizes(fields)
    window = read_window(fields)
    period = fields.integer("sliding_window_pattern", most=limits.DEPTH) if window else 1
    kinds = read_kinds(fields, sizes.depth, full_every(sizes.depth, period))
    turning = read_turning(fields, sizes.head_dim)
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=window),
        turnings=[turning if window is None or kind == SLIDING else None for kind in kinds],
        qk_norm=True,
    )
    where = where_sparse(fields, sizes.depth, after_dense(fields, sizes.depth))
    return _decoder(
        fields, sizes, heads, where, grouped_experts(fields, sizes, count="num_experts", shared="num_shared_experts")
    )


@reads("hy_v3")
def hy_v3(fields: Fields) -> Architecture:
    """QK-norm, weights renormalised and scaled by ``router_scaling_factor``, one dense layer first."""
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim), qk_norm=True)
    experts = read_experts(
        fields,
        sizes,
        score="sigmoid",
        normalised=True,
        scale=fields.number("router_scaling_factor", most=SCALE),
        shared=multiple(fields, "moe_intermediate_size", "num_shared_experts"),
    )
    where = where_sparse(fields, sizes.depth, [index > 0 for index in range(sizes.depth)])
    return _decoder(fields, sizes, heads, where, experts)


def grouped_experts(
    fields: Fields, sizes: Sizes, count: str = "n_routed_experts", shared: str = "n_shared_experts"
) -> FeedForward:
    """DeepSeek V3's router: sigmoid scores, experts from the best groups, weights renormalised and scaled."""
    return read_experts(
        fields,
        sizes,
        count=count,
        score="sigmoid",
        normalised=fields.flag("norm_topk_prob"),
        scale=fields.number("routed_scaling_factor", most=SCALE),
        shared=multiple(fields, "moe_intermediate_size", shared),
        grouped=True,
    )


def _decoder(
    fields: Fields, sizes: Sizes, heads: Sequence[Attention], where: Sequence[bool], experts: FeedForward
) -> Architecture:
    return decoder(fields, sizes, heads, sparse_and_dense(fields, sizes, where, experts), read_norm(fields))
