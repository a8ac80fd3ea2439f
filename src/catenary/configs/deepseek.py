"""DeepSeek V2 and V3 and models of their classes: latent attention, experts in groups, dense layers first."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Attention, Branch, FeedForward, Layer, Norm, Step, pre_norm
from catenary.configs import limits
from catenary.configs.decoder import Block, decoder, read_norm
from catenary.configs.experts import SCALE, after_dense, multiple, read_experts, sparse_and_dense, where_sparse
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.glm_moe import grouped_experts
from catenary.configs.mla import latent_attentions, read_latent_sizes
from catenary.configs.windows import FULL, read_kinds, refused_layer

INDEXED = "indexed_attention"
"""The kind of layer whose keys an indexer chooses."""


@reads("deepseek_v3", "sarvam_mla", "kimi_k2")
def deepseek_v3(fields: Fields) -> Architecture:
    """Sigmoid scores; a group of experts is as good as its two best. Kimi K2's own code is a copy of this class."""
    sizes = read_latent_sizes(fields)
    where = after_dense(fields, sizes.depth)
    inner = sparse_and_dense(fields, sizes, where, grouped_experts(fields, sizes))
    return decoder(fields, sizes, latent_attentions(fields, sizes), inner, read_norm(fields))


@reads("glm4_moe_lite")
def glm4_moe_lite(fields: Fields) -> Architecture:
    """DeepSeek V3's layers, one dense layer first unless ``mlp_layer_types`` say otherwise."""
    return _one_dense_first(fields, pre_norm)


@reads("axk1")
def axk1(fields: Fields) -> Architecture:
    """GLM 4.7 Flash's layers, with a norm behind the experts, but none behind the dense networks."""
    return _one_dense_first(fields, _norm_behind_experts)


def _norm_behind_experts(attention: Attention, feed_forward: FeedForward, norm: Norm) -> Layer:
    after = norm if feed_forward.experts else None
    return Layer((
        Step((Branch(attention, before=norm),)),
        Step((Branch(feed_forward, before=norm, after=after),)),
    ))  # fmt: skip


def _one_dense_first(fields: Fields, block: Block) -> Architecture:
    sizes = read_latent_sizes(fields)
    first = fields.optional_integer("first_k_dense_replace", least=0, most=limits.DEPTH)
    step = fields.optional_integer("moe_layer_freq", most=limits.DEPTH) or 1
    otherwise = [i >= (1 if first is None else first) and i % step == 0 for i in range(sizes.depth)]
    where = where_sparse(fields, sizes.depth, otherwise)
    inner = sparse_and_dense(fields, sizes, where, grouped_experts(fields, sizes))
    return decoder(fields, sizes, latent_attentions(fields, sizes), inner, read_norm(fields), block=block)


@reads("deepseek_v32", "glm_moe_dsa")
def deepseek_v32(fields: Fields) -> Architecture:
    """DeepSeek V3's layers whose attention sees the ``index_topk`` keys that an indexer chooses: all, up to so many."""
    sizes = read_latent_sizes(fields)
    kinds = read_kinds(fields, sizes.depth, (INDEXED,) * sizes.depth)
    for index, kind in enumerate(kinds):
        if kind not in (INDEXED, FULL):
            raise refused_layer(fields, index, kind)
    where = where_sparse(fields, sizes.depth, after_dense(fields, sizes.depth))
    inner = sparse_and_dense(fields, sizes, where, grouped_experts(fields, sizes))
    found = decoder(fields, sizes, latent_attentions(fields, sizes), inner, read_norm(fields))
    if INDEXED not in kinds:
        return found
    chosen = fields.integer("index_topk", most=limits.POSITIONS)
    fields.note(f"index_topk={chosen}: beyond so many tokens the data chooses which keys attention sees")
    return replace(found, causal_up_to=chosen)


@reads("deepseek_v2")
def deepseek_v2(fields: Fields) -> Architecture:
    """A softmax over all experts; with ``group_limited_greedy`` a group is as good as its best expert.

    The class scales chosen weights and never renormalises them, whatever ``norm_topk_prob`` says.
    """
    sizes = read_latent_sizes(fields)
    if fields.flag("norm_topk_prob"):
        fields.note("norm_topk_prob is not read by transformers' deepseek_v2, whose weights are not renormalised")
    grouped = fields.choice("topk_method", known=("greedy", "group_limited_greedy")) == "group_limited_greedy"
    experts = read_experts(
        fields,
        sizes,
        count="n_routed_experts",
        scale=fields.number("routed_scaling_factor", most=SCALE),
        shared=multiple(fields, "moe_intermediate_size", "n_shared_experts"),
        grouped=grouped,
        group_score="best",
    )
    inner = sparse_and_dense(fields, sizes, after_dense(fields, sizes.depth), experts)
    return decoder(fields, sizes, latent_attentions(fields, sizes), inner, read_norm(fields))
