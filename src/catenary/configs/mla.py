"""Multi-head latent attention as configs name it: ranks, the two parts of a head, and DeepSeek's factor on logits."""

from __future__ import annotations

import math
from typing import Any

from catenary.architecture import Attention, Latent
from catenary.configs import limits
from catenary.configs.decoder import Sizes, attentions, read_depth, read_heads, read_width
from catenary.configs.fields import Fields
from catenary.configs.initial import initial_std
from catenary.configs.rotary import FACTOR, read_turning


def read_latent_sizes(fields: Fields, std: float | None = None) -> Sizes:
    """The sizes of a decoder whose heads have ``qk_nope_head_dim`` plain and ``qk_rope_head_dim`` turned channels."""
    heads = read_heads(fields)
    dim = sum(fields.integer(name, most=limits.HEADS) for name in ("qk_nope_head_dim", "qk_rope_head_dim"))
    return Sizes(read_depth(fields), read_width(fields), heads, heads, dim, initial_std(fields) if std is None else std)


def latent_attentions(
    fields: Fields, sizes: Sizes, *, value_dim: int | None = None, **more: Any
) -> tuple[Attention, ...]:
    r"""Latent attention in every layer, logits q.k / sqrt(head channels), times DeepSeek's factor with scaled rotation.

    With ``mscale_all_dim`` m and an extension s every logit carries \((0.1\,m\ln s + 1)^2\). ``value_dim`` takes the
    place of ``v_head_dim``; ``more`` goes to ``attentions``.
    """
    turned = fields.integer("qk_rope_head_dim", most=limits.HEADS)
    latent = Latent(
        rank=fields.integer("kv_lora_rank", most=limits.WIDTH),
        query_rank=fields.optional_integer("q_lora_rank", most=limits.WIDTH),
        plain_dim=sizes.head_dim - turned,
        rotary_dim=turned,
        value_dim=fields.integer("v_head_dim", most=limits.HEADS) if value_dim is None else value_dim,
    )
    return attentions(
        sizes,
        turnings=read_turning(fields, turned),
        query_scale=_logit_factor(fields) / sizes.head_dim**0.5,
        latent=latent,
        **more,
    )


def _logit_factor(fields: Fields) -> float:
    part = fields.optional_part("rope_scaling") or fields.optional_part("rope_parameters")
    if part is None or not (part.has("rope_type") or part.has("type")) or part.text("rope_type", "type") == "default":
        return 1.0
    scale = part.optional_number("mscale_all_dim", most=100.0)
    extension = part.optional_number("factor", most=FACTOR)
    if not scale or extension is None or extension <= 1:
        return 1.0
    return (0.1 * scale * math.log(extension) + 1.0) ** 2
