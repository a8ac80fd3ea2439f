"""Qwen's mixtures of experts and their kin: experts by ``decoder_sparse_step`` or by layer, windows by layer."""

from __future__ import annotations

from collections.abc import Sequence

from catenary.architecture import Architecture, Gate, Sink
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import read_experts, sparse_and_dense, where_sparse
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning, read_turnings
from catenary.configs.windows import FULL, SLIDING, kernels, read_kinds, read_qwen_window, read_window


@reads("qwen2_moe")
def qwen2_moe(fields: Fields) -> Architecture:
    """A shared network whose output a sigmoid of the token multiplies; with windows, every other low layer has one."""
    sizes = read_sizes(fields)
    window = read_qwen_window(fields)
    slides = range(0, fields.integer("max_window_layers", least=0, most=limits.POSITIONS) if window else 0, 2)
    kinds = read_kinds(fields, sizes.depth, [SLIDING if i in slides else FULL for i in range(sizes.depth)])
    heads = attentions(
        sizes, kernels=kernels(fields, kinds, window=window), turnings=read_turnings(fields, sizes.head_dim, kinds)
    )
    experts = read_experts(
        fields,
        sizes,
        normalised=fields.flag("norm_topk_prob"),
        shared=fields.integer("shared_expert_intermediate_size", most=limits.WIDTH),
        shared_gate=Gate(sizes.std, "token"),
    )
    inner = sparse_and_dense(fields, sizes, _by_step(fields, sizes.depth), experts)
    return decoder(fields, sizes, heads, inner, read_norm(fields))


@reads("qwen3_moe")
def qwen3_moe(fields: Fields) -> Architecture:
    """QK-norm, no shared network; with ``use_sliding_window`` every layer has a window."""
    sizes = read_sizes(fields)
    window = read_qwen_window(fields)
    bands = kernels(fields, (FULL if window is None else SLIDING,) * sizes.depth, window=window)
    heads = attentions(sizes, kernels=bands, turnings=read_turning(fields, sizes.head_dim), qk_norm=True)
    experts = read_experts(fields, sizes, normalised=fields.flag("norm_topk_prob"))
    inner = sparse_and_dense(fields, sizes, _by_step(fields, sizes.depth), experts)
    return decoder(fields, sizes, heads, inner, read_norm(fields))


@reads("mellum")
def mellum(fields: Fields) -> Architecture:
    """Qwen 3's block with windows by ``layer_types`` and experts by ``mlp_layer_types``."""
    sizes = read_sizes(fields)
    kinds = read_kinds(fields, sizes.depth)
    turnings = {
        kind: read_turning(fields, sizes.head_dim, kind, theta=base) for kind, base in ((FULL, 5e5), (SLIDING, 1e4))
    }
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=[turnings[kind] for kind in kinds],
        qk_norm=True,
    )
    experts = read_experts(fields, sizes, normalised=fields.flag("norm_topk_prob"))
    where = where_sparse(fields, sizes.depth, (True,) * sizes.depth)
    return decoder(fields, sizes, heads, sparse_and_dense(fields, sizes, where, experts), read_norm(fields))


@reads("flint")
def flint(fields: Fields) -> Architecture:
    """QK-norm, a sink per head, windows in three of four layers; only those turn queries and keys."""
    sizes = read_sizes(fields)
    last = sizes.depth - 1
    pattern = [FULL if i < 2 or i % 4 == 1 or i == last else SLIDING for i in range(sizes.depth)]
    kinds = read_kinds(fields, sizes.depth, pattern)
    turning = read_turning(fields, sizes.head_dim)
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=[turning if kind == SLIDING else None for kind in kinds],
        qk_norm=True,
        sink=Sink(std=sizes.std),
    )
    experts = read_experts(
        fields,
        sizes,
        score="sigmoid",
        normalised=fields.flag("norm_topk_prob"),
        shared=fields.integer("shared_expert_intermediate_size", most=limits.WIDTH),
    )
    where = _by_step(fields, sizes.depth, dense=(0, 1))
    return decoder(fields, sizes, heads, sparse_and_dense(fields, sizes, where, experts), read_norm(fields))


def _by_step(fields: Fields, depth: int, dense: Sequence[int] = ()) -> tuple[bool, ...]:
    """Experts in every ``decoder_sparse_step``-th layer, except ``mlp_only_layers``."""
    step = fields.integer("decoder_sparse_step", most=limits.DEPTH)
    given = fields.optional_list("mlp_only_layers")
    without = set(dense if given is None else given)
    return tuple((index + 1) % step == 0 and index not in without for index in range(depth))
