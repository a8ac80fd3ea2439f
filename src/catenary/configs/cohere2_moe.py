"""Cohere's mixture of experts: attention and experts side by side, windows in three of four layers."""

from __future__ import annotations

from catenary.architecture import Architecture, Attention, Branch, FeedForward, Layer, Norm, Step
from catenary.configs import limits
from catenary.configs.decoder import Sizes, assemble, attentions, read_feed_forward, read_norm, read_sizes
from catenary.configs.experts import Score, mixed, multiple, read_experts, where_sparse
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import SLIDING, full_every, kernels, read_kinds, read_window


@reads("cohere2_moe")
def cohere2_moe(fields: Fields) -> Architecture:
    """Dense layers first, with a window pattern of their own; only sliding layers turn queries and keys.

    A shared network and the experts are added, or averaged by ``shared_expert_combination_strategy``. With
    ``prefix_dense_sliding_window_pattern`` 1 the dense layers turn too.
    """
    sizes = read_sizes(fields)
    first = fields.optional_integer("first_k_dense_replace", least=0, most=sizes.depth) or 0
    prefix = fields.integer("prefix_dense_sliding_window_pattern", most=limits.DEPTH)
    period = fields.integer("sliding_window_pattern", most=limits.DEPTH)
    pattern = (*full_every(first, prefix), *full_every(sizes.depth - first, period))
    kinds = read_kinds(fields, sizes.depth, pattern)
    where = where_sparse(fields, sizes.depth, [index >= first for index in range(sizes.depth)])
    turning = read_turning(fields, sizes.head_dim)
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=[
            turning if kind == SLIDING or (prefix == 1 and not sparse) else None
            for kind, sparse in zip(kinds, where, strict=True)
        ],
    )
    norm = read_norm(fields) if fields.has("rms_norm_eps") else read_norm(fields, "layer")
    experts = _experts(fields, sizes)
    dense = experts if all(where) else read_feed_forward(fields, sizes, width="prefix_dense_intermediate_size")
    inner = mixed(where, experts, dense)
    share = 0.5 if _averaged(fields) else 1.0
    layers = [
        _layer(attention, network, norm, share if sparse else 1.0)
        for attention, network, sparse in zip(heads, inner, where, strict=True)
    ]
    return assemble(fields, sizes, layers, final_norm=norm)


def _experts(fields: Fields, sizes: Sizes) -> FeedForward:
    scores: dict[str, Score] = {"softmax": "softmax-top", "sigmoid": "sigmoid"}
    return read_experts(
        fields,
        sizes,
        width="intermediate_size",
        score=scores[fields.choice("expert_selection_fn", known=scores)],
        normalised=fields.flag("norm_topk_prob"),
        shared=multiple(fields, "intermediate_size", "num_shared_experts"),
    )


def _averaged(fields: Fields) -> bool:
    """Whether experts and a shared network are averaged instead of added."""
    shared = fields.optional_integer("num_shared_experts", least=0, most=limits.HEADS)
    return bool(shared) and fields.choice("shared_expert_combination_strategy", known=("sum", "average")) == "average"


def _layer(attention: Attention, feed_forward: FeedForward, norm: Norm, share: float) -> Layer:
    """x + attention(norm(x)) + share * feed_forward(norm(x))."""
    return Layer((Step((Branch(attention, before=norm), Branch(feed_forward, before=norm, scale=share))),))
