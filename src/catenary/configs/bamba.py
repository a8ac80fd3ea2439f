"""Bamba and Falcon H1: Mamba 2 in most layers, or beside attention in all of them."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Branch, Embedding, FeedForward, Layer, Step, pre_norm
from catenary.configs import limits
from catenary.configs.decoder import Sizes, assemble, attentions, read_feed_forward, read_norm, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.granite import MULTIPLIER
from catenary.configs.rotary import read_turning
from catenary.configs.state_space import check_attends, read_inner_width, read_state_space


@reads("bamba")
def bamba(fields: Fields) -> Architecture:
    """Attention in the layers of ``attn_layer_indices``, half of each head turned; Mamba 2 in the others."""
    sizes, norm = read_sizes(fields), read_norm(fields)
    attending = fields.optional_indices("attn_layer_indices", most=limits.DEPTH) or ()
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim, partial=0.5))
    state_space = read_state_space(fields, sizes, read_inner_width(fields, sizes), norm)
    inner = read_feed_forward(fields, sizes)
    layers = [
        pre_norm(mix if index in attending else state_space, inner, norm) for index, mix in enumerate(heads)
    ]
    check_attends(layers, "bamba")
    return assemble(fields, sizes, layers, final_norm=norm)


@reads("falcon_h1")
def falcon_h1(fields: Fields) -> Architecture:
    """Mamba 2 and attention side by side in every layer, with multipliers at every turn.

    ``key_multiplier`` and the square of ``attention_in_multiplier`` scale the logits. A multiplier m in front of the
    gate's function scales both inner matrices here, and the linear one's is divided out behind it.
    ``embedding_multiplier`` sits inside what vectors are fed to.
    """
    sizes, norm = read_sizes(fields), read_norm(fields)
    into = fields.number("attention_in_multiplier", most=MULTIPLIER)
    scale = into**2 * fields.number("key_multiplier", most=MULTIPLIER) / sizes.head_dim**0.5
    turning = read_turning(fields, sizes.head_dim)
    heads = [
        replace(mix, value_std=into * sizes.std) for mix in attentions(sizes, turnings=turning, query_scale=scale)
    ]
    width = fields.optional_integer("mamba_d_ssm", most=4 * limits.WIDTH)
    inner = read_inner_width(fields, sizes) if width is None else width
    gate, value, key, query, step = _multipliers(fields, "ssm_multipliers", 5)
    entry = fields.number("ssm_in_multiplier", most=MULTIPLIER)
    state_space = read_state_space(
        fields,
        sizes,
        inner,
        norm if fields.flag("mamba_rms_norm") else None,
        norm_at="before gate" if fields.boolean("mamba_norm_before_gate") else "behind gate",
        input_scales=(entry * value, entry * key, entry * query, entry * step, entry * gate),
    )
    feed_forward = _multiplied(fields, sizes)
    out, other = (fields.number(f"{name}_out_multiplier", most=MULTIPLIER) for name in ("attention", "ssm"))
    layers = [
        Layer((
            Step((Branch(state_space, before=norm, scale=other), Branch(mix, before=norm, scale=out))),
            Step((Branch(feed_forward, before=norm),)),
        ))
        for mix in heads
    ]
    embedding = Embedding(sizes.std * fields.number("embedding_multiplier", most=MULTIPLIER))
    return assemble(fields, sizes, layers, final_norm=norm, embedding=embedding)


def _multipliers(fields: Fields, name: str, count: int) -> tuple[float, ...]:
    return fields.optional_numbers(name, count=count, most=MULTIPLIER) or (1.0,) * count


def _multiplied(fields: Fields, sizes: Sizes) -> FeedForward:
    gate, down = _multipliers(fields, "mlp_multipliers", 2)
    inner = read_feed_forward(fields, sizes)
    return replace(inner, input_std=gate * inner.input_std, output_std=down * inner.output_std / gate)
