"""MiniMax Text 01: linear attention with a decay per head in most layers, experts in all, norms inside the residual."""

from __future__ import annotations

from catenary.architecture import Architecture, Attention, Branch, FeedForward, Gate, Layer, LinearAttention, Norm, Step
from catenary.configs.decoder import Sizes, assemble, attentions, read_norm, read_sizes
from catenary.configs.experts import SCALE, read_experts
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_window
from catenary.errors import NotApplicable

LINEAR = "linear_attention"

INNER_NORM = Norm("rms", 1e-6)
"""Over the outputs of all heads of linear attention; the class does not read its epsilon."""


@reads("minimax")
def minimax(fields: Fields) -> Architecture:
    """Linear attention in every second layer from the second on, unless ``layer_types`` say otherwise.

    y = norm(x), x becomes alpha y + beta branch(y), with factors of their own for both kinds of attention and for the
    experts.
    """
    sizes = read_sizes(fields)
    kinds = fields.optional_texts("layer_types", count=sizes.depth) or tuple(
        LINEAR if index % 2 else FULL for index in range(sizes.depth)
    )
    for index, kind in enumerate(kinds):
        if kind not in (FULL, LINEAR):
            raise NotApplicable(f"minimax with layer_types[{index}]={kind[:60]!a}: only {FULL!r} and {LINEAR!r}")
    window = read_window(fields)
    bands = kernels(fields, (FULL if window is None else SLIDING,) * sizes.depth, window=window)
    heads = attentions(sizes, kernels=bands, turnings=read_turning(fields, sizes.head_dim))
    experts = read_experts(fields, sizes, width="intermediate_size", count="num_local_experts", normalised=True)
    norm, activation = read_norm(fields), experts.activation
    layers = [
        _layer(fields, _linear(sizes, index, activation) if kind == LINEAR else mix, experts, norm)
        for index, (kind, mix) in enumerate(zip(kinds, heads, strict=True))
    ]
    return assemble(fields, sizes, layers, final_norm=norm)


def _linear(sizes: Sizes, index: int, activation: str) -> LinearAttention:
    r"""Slopes \(2^{-8h/n_h}\), h = 1, ..., times a factor that falls from 1 in the first layer to 1e-5 in the last."""
    factor = 1 - index / (sizes.depth - 1 + 1e-5) + 1e-5
    slopes = tuple(factor * 2 ** (-8 * (head + 1) / sizes.heads) for head in range(sizes.heads))
    return LinearAttention(slopes, sizes.head_dim, activation, sizes.std, sizes.std, INNER_NORM, Gate(sizes.std))


def _layer(fields: Fields, mix: Attention | LinearAttention, experts: FeedForward, norm: Norm) -> Layer:
    name = "linear_attn" if isinstance(mix, LinearAttention) else "full_attn"
    keep, scale = (fields.number(f"{name}_{which}_factor", most=SCALE) for which in ("alpha", "beta"))
    inner, outer = (fields.number(f"mlp_{which}_factor", most=SCALE) for which in ("alpha", "beta"))
    return Layer((
        Step((Branch(mix, scale=scale),), keep=keep, before=norm),
        Step((Branch(experts, scale=outer),), keep=inner, before=norm),
    ))
