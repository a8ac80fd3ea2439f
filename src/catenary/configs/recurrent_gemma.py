"""RecurrentGemma (Griffin): two gated recurrences and one attention in a window, again and again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from catenary.architecture import Architecture, Embedding, GatedRecurrence, Window, pre_norm
from catenary.configs import limits
from catenary.configs.activations import ACTIVATIONS
from catenary.configs.decoder import (
    Sizes,
    assemble,
    attentions,
    read_depth,
    read_feed_forward,
    read_head_dim,
    read_heads,
    read_kv_heads,
    read_norm,
    read_width,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.state_space import STATE
from catenary.configs.windows import read_window
from catenary.errors import NotApplicable, invalid

KINDS = {"recurrent": "recurrent", "linear_attention": "recurrent", "attention": "attention",
         "sliding_attention": "attention"}  # fmt: skip
"""Names of the kinds of layers, older ones first."""

RADII = (0.9, 0.999)
"""Between which the class draws its channels' decays at an open gate, raised to the eighth."""

SCALE = 1e6
"""Upper bound of the variance scales; published ones are below 1."""

OPEN = 0.3
"""Scale of the weights up to which networks were found within .05 dex; at 1 the error is .08 dex."""


@reads("recurrent_gemma")
def recurrent_gemma(fields: Fields) -> Architecture:
    r"""Gemma's decoder with Griffin's mixing layers.

    Variances are scales over the number of inputs: 1 for what enters a mixing layer, ``final_w_init_variance_scale``
    (2/H) for what leaves it, and w = ``w_init_variance_scale`` for gates. All other matrices, and the convolution, have
    the variance w/K, K its taps. The network multiplies embeddings by sqrt(width), rounded to bfloat16.
    """
    depth, width, heads = read_depth(fields), read_width(fields), read_heads(fields)
    taps = fields.integer("conv1d_width", most=STATE)
    scale = fields.number("w_init_variance_scale", most=SCALE)
    final = fields.optional_number("final_w_init_variance_scale", most=SCALE)
    final = 2 / depth if final is None else final
    if not scale > 0 or not final > 0:
        raise invalid("w_init_variance_scale", "must be > 0, and the final one too", min(scale, final))
    std = (scale / taps) ** 0.5
    sizes = Sizes(depth, width, heads, read_kv_heads(fields, heads), read_head_dim(fields), width**-0.5)
    window = read_window(fields)
    mixes = attentions(
        sizes,
        kernels=(Window(window),) * depth if window else None,
        turnings=read_turning(fields, sizes.head_dim, partial=0.5),
        output_std=(final / (heads * sizes.head_dim)) ** 0.5,
    )
    recurrence = _recurrence(fields, sizes, taps, final)
    if recurrence.gate_variance > OPEN**2:
        fields.note(
            f"approximate: gates are taken at 1/2, and their inputs have the variance {recurrence.gate_variance:.2g}; "
            "with 1 the law errs by .08 dex (median)"
        )
    inner = fields.integer("intermediate_size", most=8 * limits.WIDTH) // 2
    network = read_feed_forward(fields, replace(sizes, std=std), width=inner, activation="hidden_activation")
    norm = read_norm(fields)
    layers = [
        pre_norm(recurrence if kind == "recurrent" else mix, network, norm)
        for kind, mix in zip(_kinds(fields, depth), mixes, strict=True)
    ]
    return assemble(
        fields,
        sizes,
        layers,
        final_norm=norm,
        embedding=Embedding(std, scale=_rounded(width**0.5)),
        length=lambda _: None,
        initialisation=f"the class's own: variances 1, {final:.3g}, {scale:.3g} over the inputs, the rest {std:.3g}^2",
    )


def _recurrence(fields: Fields, sizes: Sizes, taps: int, final: float) -> GatedRecurrence:
    channels = fields.optional_integer("lru_width", most=limits.WIDTH)
    channels = sizes.width if channels is None else channels
    if channels % sizes.heads:
        raise invalid("lru_width", f"must be a multiple of num_attention_heads={sizes.heads}", channels)
    scale = fields.number("w_init_variance_scale", most=SCALE)
    return GatedRecurrence(
        width=channels,
        taps=taps,
        activation=fields.choice("hidden_activation", known=ACTIVATIONS),
        input_std=sizes.std,
        tap_std=(scale / taps) ** 0.5,
        output_std=(final / channels) ** 0.5,
        radii=RADII,
        gate_variance=scale**2,
    )


def _kinds(fields: Fields, depth: int) -> list[str]:
    """The pattern of ``block_types``, repeated over the layers."""
    given = fields.optional_list("_block_types" if fields.has("_block_types") else "block_types")
    pattern = [KINDS.get(kind, "") if isinstance(kind, str) else "" for kind in given or ()]
    if not pattern or "" in pattern:
        raise invalid("block_types", f"must be a list whose entries are among {', '.join(KINDS)}", given)
    kinds = [pattern[index % len(pattern)] for index in range(depth)]
    if "attention" not in kinds:
        raise NotApplicable("recurrent_gemma without an attention layer is not described")
    return kinds


def _rounded(value: float) -> float:
    """To bfloat16: eight binary digits."""
    mantissa, exponent = np.frexp(value)
    return float(np.ldexp(np.round(mantissa * 256) / 256, exponent))
