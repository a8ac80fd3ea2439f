"""MiMo V2 Flash: windows with sinks and twice the keys in five of six layers, values of fewer channels than keys."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Sink
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import SCALE, read_experts, sparse_and_dense, where_sparse
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_kinds, read_window
from catenary.errors import InvalidInput

ROTATIONS = {FULL: 5e6, SLIDING: 1e4}
"""Base that the class takes for each kind of layer."""

TURNED = 0.334
"""The share of a head that turns where a config gives none."""


@reads("mimo_v2_flash")
def mimo_v2_flash(fields: Fields) -> Architecture:
    """Published configs give ``sliding_window_size``, to which transformers adds the query's own key.

    Their ``hybrid_layer_pattern`` and ``moe_layer_freq`` transformers does not read; ``layer_types`` and
    ``mlp_layer_types`` count. ``attention_value_scale`` multiplies values.
    """
    sizes = read_sizes(fields)
    pattern = [FULL if i == 0 or (i + 1) % 6 == 0 else SLIDING for i in range(sizes.depth)]
    kinds = read_kinds(fields, sizes.depth, pattern)
    size = fields.optional_integer("sliding_window_size", most=limits.POSITIONS)
    window = read_window(fields) if size is None else size + 1
    turnings = {
        kind: read_turning(fields, sizes.head_dim, kind, theta=base, partial=TURNED)
        for kind, base in ROTATIONS.items()
    }
    factor = fields.optional_number("attention_value_scale", most=SCALE)
    value_dim = fields.integer("v_head_dim", most=limits.HEADS)
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=window),
        turnings=[turnings[kind] for kind in kinds],
        value_dim=value_dim,
    )
    value_std = sizes.std * (1.0 if factor is None else factor)
    full = [replace(mix, value_std=value_std) for mix in heads]
    if sizes.heads % (2 * sizes.kv_heads) and SLIDING in kinds:
        raise InvalidInput("num_attention_heads must be a multiple of twice num_key_value_heads, for sliding layers")
    mixed = [
        replace(mix, kv_heads=2 * mix.kv_heads, sink=Sink(std=sizes.std)) if kind == SLIDING else mix
        for mix, kind in zip(full, kinds, strict=True)
    ]
    scale = fields.optional_number("routed_scaling_factor", most=SCALE)
    experts = read_experts(
        fields,
        sizes,
        count="n_routed_experts",
        score="sigmoid",
        normalised=fields.flag("norm_topk_prob"),
        scale=1.0 if scale is None else scale,
        grouped=True,
    )
    where = where_sparse(fields, sizes.depth, [index > 0 for index in range(sizes.depth)])
    return decoder(fields, sizes, mixed, sparse_and_dense(fields, sizes, where, experts), read_norm(fields))
