"""Cohere's Command models: attention and feed-forward network side by side behind one LayerNorm."""

from __future__ import annotations

from collections.abc import Sequence

from catenary.architecture import Architecture, Kernel, parallel
from catenary.configs import limits
from catenary.configs.decoder import (
    Sizes,
    attentions,
    decoder,
    even_split,
    read_feed_forward,
    read_norm,
    read_sizes,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import LAYER_KINDS, Turning, read_turning, read_turnings
from catenary.configs.windows import FULL, SLIDING, full_every, kernels, read_kinds, read_window


@reads("cohere")
def cohere(fields: Fields) -> Architecture:
    """``use_qk_norm`` is Command R+'s; ``logit_scale`` acts on the output only and is not read."""
    sizes = read_sizes(fields)
    turnings = (read_turning(fields, sizes.head_dim),) * sizes.depth
    return _cohere(fields, sizes, None, turnings, qk_norm=fields.boolean("use_qk_norm"))


@reads("cohere2")
def cohere2(fields: Fields) -> Architecture:
    """Windows in three of four layers (``sliding_window_pattern``), and only those turn queries and keys."""
    sizes = read_sizes(fields, head_dim=even_split(fields))
    period = fields.optional_integer("sliding_window_pattern", most=limits.DEPTH)
    kinds = read_kinds(fields, sizes.depth, full_every(sizes.depth, 4 if period is None else period))
    turning = read_turning(fields, sizes.head_dim)
    turnings = tuple(turning if kind == SLIDING else None for kind in kinds)
    return _cohere(fields, sizes, kernels(fields, kinds, window=read_window(fields)), turnings)


@reads("cohere_compass_text")
def cohere_compass(fields: Fields) -> Architecture:
    """Full attention unless ``layer_types`` say otherwise; a kind of layer whose rotation is null turns nothing."""
    sizes = read_sizes(fields, head_dim=even_split(fields))
    kinds = read_kinds(fields, sizes.depth, (FULL,) * sizes.depth)
    bands = kernels(fields, kinds, window=read_window(fields))
    part = fields.optional_part("rope_parameters")
    own = part is not None and any(part.has(kind) for kind in LAYER_KINDS)
    turned = [not own or (part is not None and part.has(kind)) for kind in kinds]
    found = read_turnings(fields, sizes.head_dim, kinds)
    turnings = tuple(turning if flag else None for turning, flag in zip(found, turned, strict=True))
    return _cohere(fields, sizes, bands, turnings)


def _cohere(
    fields: Fields,
    sizes: Sizes,
    bands: Sequence[Kernel] | None,
    turnings: Sequence[Turning | None],
    *,
    qk_norm: bool = False,
) -> Architecture:
    heads = attentions(sizes, kernels=bands, turnings=turnings, qk_norm=qk_norm)
    return decoder(
        fields, sizes, heads, read_feed_forward(fields, sizes), read_norm(fields, "layer"), block=parallel
    )
