"""Liquid's LFM 2 and 3: gated short convolutions in most layers, attention with QK-norm in the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from catenary.architecture import (
    Architecture,
    Attention,
    FeedForward,
    Gate,
    Layer,
    Norm,
    Recurrence,
    ShortConvolution,
    pre_norm,
    sandwich,
)
from catenary.configs import limits
from catenary.configs.decoder import Sizes, assemble, attentions, read_feed_forward, read_norm, read_sizes
from catenary.configs.experts import SCALE, after_dense, read_experts, sparse_and_dense
from catenary.configs.family import Described, register
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_window
from catenary.errors import invalid

AnyBlock = Callable[[Attention | Recurrence, FeedForward, Norm], Layer]
"""A block around attention or what takes its place."""

CONVOLUTION = "conv"

LONGEST = 1 << 10
"""Upper bound of a convolution's taps; published ones have 3 or 7."""


def lfm2(fields: Fields) -> Architecture:
    """Attention where ``layer_types`` or ``full_attn_idxs`` say so, and everywhere where neither is given.

    With ``block_auto_adjust_ff_dim`` the feed-forward width is two thirds of ``intermediate_size``, times a factor,
    rounded up to a multiple.
    """
    sizes = read_sizes(fields)
    kinds = fields.optional_texts("layer_types", count=sizes.depth)
    if kinds is None:
        full = fields.optional_indices("full_attn_idxs", most=sizes.depth - 1)
        kinds = tuple(FULL if full is None or index in full else CONVOLUTION for index in range(sizes.depth))
    inner = read_feed_forward(fields, sizes, width=_inner_width(fields))
    return _liquid(fields, sizes, kinds, [inner] * sizes.depth, turnings=read_turning(fields, sizes.head_dim))


def lfm2_moe(fields: Fields) -> Architecture:
    """LFM 2 with sigmoid routers behind the first ``num_dense_layers`` layers; ``layer_types`` must be given."""
    sizes = read_sizes(fields)
    kinds = _given_kinds(fields, sizes.depth)
    experts = read_experts(
        fields,
        sizes,
        score="sigmoid",
        normalised=fields.boolean("norm_topk_prob"),
        scale=fields.number("routed_scaling_factor", most=SCALE),
    )
    where = after_dense(fields, sizes.depth, "num_dense_layers")
    inner = sparse_and_dense(fields, sizes, where, experts)
    return _liquid(fields, sizes, kinds, inner, turnings=read_turning(fields, sizes.head_dim))


def lfm3(fields: Fields) -> Architecture:
    """Full attention in layers 2, 6, ..., windows in layers 4, 8, ..., unless ``layer_types`` say otherwise.

    Attention has a gate per head with ``use_attention_gate``; norms stand behind the branches too with
    ``use_sandwich_norm``.
    """
    sizes = read_sizes(fields)
    kinds = fields.optional_texts("layer_types", count=sizes.depth) or tuple(
        FULL if index % 4 == 2 else SLIDING if index % 4 == 0 and index > 0 else CONVOLUTION
        for index in range(sizes.depth)
    )
    theta, partial = {FULL: 1e6, SLIDING: 1e4}, {FULL: 0.5, SLIDING: 1.0}
    turned = {
        kind: read_turning(fields, sizes.head_dim, kind, theta=theta[kind], partial=partial[kind])
        for kind in (FULL, SLIDING)
    }
    return _liquid(
        fields,
        sizes,
        kinds,
        [read_feed_forward(fields, sizes)] * sizes.depth,
        block=sandwich if fields.boolean("use_sandwich_norm") else pre_norm,
        turnings=[turned.get(kind) for kind in kinds],
        gate=Gate(sizes.std, "head") if fields.boolean("use_attention_gate") else None,
    )


def _liquid(
    fields: Fields,
    sizes: Sizes,
    kinds: Sequence[str],
    inner: Sequence[Any],
    *,
    block: AnyBlock = pre_norm,
    **heads: Any,
) -> Architecture:
    """The decoder with a convolution in every layer of that kind, and attention in the others."""
    window = read_window(fields) if SLIDING in kinds else None
    bands = kernels(fields, [FULL if kind == CONVOLUTION else kind for kind in kinds], window=window)
    mixes = attentions(sizes, kernels=bands, qk_norm=True, **heads)
    taps = fields.integer("conv_L_cache", most=LONGEST)
    convolution = ShortConvolution(sizes.width, taps, sizes.std, sizes.std, sizes.std)
    norm = read_norm(fields, "rms", "norm_eps")
    layers = tuple(
        block(convolution if kind == CONVOLUTION else mix, feed_forward, norm)
        for kind, mix, feed_forward in zip(kinds, mixes, inner, strict=True)
    )
    return assemble(fields, sizes, layers, final_norm=norm)


def _given_kinds(fields: Fields, depth: int) -> tuple[str, ...]:
    kinds = fields.optional_texts("layer_types", count=depth)
    if kinds is None:
        raise invalid("layer_types", f"must name the kind of each of the {depth} layers", None)
    return kinds


def _inner_width(fields: Fields) -> int:
    width = fields.integer("intermediate_size", "block_ff_dim", most=4 * limits.WIDTH)
    if not fields.boolean("block_auto_adjust_ff_dim"):
        return width
    width = int(2 * width / 3)
    factor = fields.optional_number("block_ffn_dim_multiplier", most=SCALE)
    if factor is None:
        return width
    step = fields.integer("block_multiple_of", most=limits.WIDTH)
    return step * ((int(factor * width) + step - 1) // step)


SILU = {"hidden_act": "silu"}
"""The classes know no other function."""

for _name, _reader in (("lfm2", lfm2), ("lfm2_moe", lfm2_moe), ("lfm3", lfm3)):
    register(Described((_name,), _reader, defaults=SILU))
