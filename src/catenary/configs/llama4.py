"""Llama 4: chunks in three of four layers, the fourth without rotation, experts whose weight is on their input."""

from __future__ import annotations

from catenary.architecture import Architecture
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import read_experts, sparse_and_dense
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import CHUNKED, FULL, kernels, read_kinds


@reads("llama4_text")
def llama4_text(fields: Fields) -> Architecture:
    """``no_rope_layers`` is 1 where queries and keys turn (and are normalised), 0 where they do not.

    In layers without rotation ``attn_temperature_tuning`` multiplies queries from position ``floor_scale`` on.
    """
    sizes = read_sizes(fields)
    turned = fields.optional_integers("no_rope_layers", count=sizes.depth, most=1)
    if not turned:
        interval = fields.integer("no_rope_layer_interval", most=limits.DEPTH)
        turned = tuple(int((index + 1) % interval != 0) for index in range(sizes.depth))
    chunk = fields.optional_integer("attention_chunk_size", most=limits.POSITIONS)
    kinds = read_kinds(fields, sizes.depth, [CHUNKED if flag and chunk else FULL for flag in turned])
    turning = read_turning(fields, sizes.head_dim)
    normed = fields.flag("use_qk_norm")
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, chunk=chunk),
        turnings=[turning if flag else None for flag in turned],
        qk_norm=[normed and bool(flag) for flag in turned],
    )
    if fields.flag("attn_temperature_tuning") and not all(turned):
        floor = fields.integer("floor_scale", most=limits.POSITIONS)
        fields.note(f"attn_temperature_tuning: logits of layers without rotation grow from position {floor} on")
    experts = read_experts(
        fields,
        sizes,
        width="intermediate_size",
        count="num_local_experts",
        score="sigmoid",
        weighed="input",
        shared=fields.integer("intermediate_size", most=limits.WIDTH),
    )
    inner = sparse_and_dense(fields, sizes, _where(fields, sizes.depth), experts, width="intermediate_size_mlp")
    return decoder(fields, sizes, heads, inner, read_norm(fields))


def _where(fields: Fields, depth: int) -> tuple[bool, ...]:
    """The layers with experts: ``moe_layers``, or every ``interleave_moe_layer_step``-th."""
    given = fields.optional_list("moe_layers")
    if given is not None:
        return tuple(index in given for index in range(depth))
    step = fields.integer("interleave_moe_layer_step", most=limits.DEPTH)
    return tuple((index + 1) % step == 0 for index in range(depth))
