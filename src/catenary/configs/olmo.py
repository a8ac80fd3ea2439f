"""OLMo 1 to 3 and EXAONE 4: norms without parameters, and norms behind each branch in place of in front."""

from __future__ import annotations

from catenary.architecture import Architecture, Norm, post_branch
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_feed_forward, read_norm, read_sizes
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_local_turnings, read_turning
from catenary.configs.windows import FULL, SLIDING, full_every, kernels, read_kinds, read_window

OLMO_EPSILON = 1e-5
"""The epsilon of OLMo's LayerNorm, which has no field."""


@reads("olmo")
def olmo(fields: Fields) -> Architecture:
    """Llama's block with LayerNorms that have no parameters; ``clip_qkv`` clamps queries, keys and values."""
    sizes = read_sizes(fields)
    clip = fields.optional_number("clip_qkv", most=1e6)
    if clip is not None:
        typical = sizes.width**0.5 * sizes.std
        fields.note(f"clip_qkv={clip:g} is not described; entries of q, k and v have std {typical:.2g} at birth")
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim))
    return decoder(fields, sizes, heads, read_feed_forward(fields, sizes), Norm("layer", OLMO_EPSILON))


@reads("olmo2")
def olmo2(fields: Fields) -> Architecture:
    """x + norm(branch(x)), with an RMSNorm over all heads' queries and keys."""
    sizes = read_sizes(fields)
    heads = attentions(
        sizes, turnings=read_turning(fields, sizes.head_dim), qk_norm=True, qk_norm_over="heads"
    )
    return decoder(
        fields, sizes, heads, read_feed_forward(fields, sizes), read_norm(fields), block=post_branch
    )


@reads("olmo3")
def olmo3(fields: Fields) -> Architecture:
    """OLMo 2 with windows in three of four layers."""
    sizes = read_sizes(fields)
    kinds = read_kinds(fields, sizes.depth, full_every(sizes.depth, 4))
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=read_local_turnings(fields, sizes.head_dim, kinds),
        qk_norm=True,
        qk_norm_over="heads",
    )
    return decoder(
        fields, sizes, heads, read_feed_forward(fields, sizes), read_norm(fields), block=post_branch
    )


@reads("exaone4")
def exaone4(fields: Fields) -> Architecture:
    """OLMo 2's block; with a window, layers without one do not turn their queries and keys.

    ``sliding_window_pattern`` n makes every n-th layer full. Its older form in letters needs ``layer_types`` beside it:
    transformers cannot read it alone.
    """
    sizes = read_sizes(fields)
    window = read_window(fields)
    kinds = read_kinds(fields, sizes.depth) if fields.has("layer_types") else _exaone_kinds(fields, sizes.depth, window)
    turning = read_turning(fields, sizes.head_dim)
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=window),
        turnings=tuple(turning if window is None or kind == SLIDING else None for kind in kinds),
        qk_norm=True,
    )
    return decoder(
        fields, sizes, heads, read_feed_forward(fields, sizes), read_norm(fields), block=post_branch
    )


def _exaone_kinds(fields: Fields, depth: int, window: int | None) -> tuple[str, ...]:
    if window is None:
        return (FULL,) * depth
    return full_every(depth, fields.integer("sliding_window_pattern", most=limits.DEPTH))
