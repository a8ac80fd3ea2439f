"""ERNIE 4.5, Hunyuan and Aria: experts beside a network that every token passes."""

from __future__ import annotations

from catenary.architecture import Architecture
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import multiple, read_experts, sparse_and_dense
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning


@reads("ernie4_5_moe")
def ernie_moe(fields: Fields) -> Architecture:
    """A softmax over all experts, renormalised; in layers of ``moe_layer_interval`` between two indices."""
    sizes = read_sizes(fields)
    first = fields.integer("moe_layer_start_index", least=0, most=limits.DEPTH)
    last = fields.integer("moe_layer_end_index", least=-1, most=limits.DEPTH)
    step = fields.integer("moe_layer_interval", most=limits.DEPTH)
    last = sizes.depth - 1 if last == -1 else last
    where = [(index + 1) % step == 0 and first <= index <= last for index in range(sizes.depth)]
    experts = read_experts(
        fields,
        sizes,
        count="moe_num_experts",
        top="moe_k",
        normalised=True,
        shared=multiple(fields, "moe_intermediate_size", "moe_num_shared_experts"),
    )
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim))
    return decoder(fields, sizes, heads, sparse_and_dense(fields, sizes, where, experts), read_norm(fields))


@reads("hunyuan_v1_moe")
def hunyuan_moe(fields: Fields) -> Architecture:
    """QK-norm, a softmax over all experts, renormalised, beside a network of the same width."""
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim), qk_norm=True)
    width = fields.integer("intermediate_size", most=limits.WIDTH)
    experts = read_experts(fields, sizes, width=width, top="moe_topk", normalised=True, shared=width)
    return decoder(fields, sizes, heads, experts, read_norm(fields))


@reads("aria_text")
def aria_text(fields: Fields) -> Architecture:
    """A softmax over the chosen experts."""
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim))
    experts = read_experts(
        fields,
        sizes,
        width="intermediate_size",
        count="moe_num_experts",
        top="moe_topk",
        score="softmax-top",
        shared=multiple(fields, "intermediate_size", "moe_num_shared_experts"),
    )
    return decoder(fields, sizes, heads, experts, read_norm(fields))
