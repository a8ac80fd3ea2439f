"""Kolibri: sandwich norms, windows in four of five layers, experts with scores that are not divided by their sum."""

from __future__ import annotations

from catenary.architecture import Architecture, sandwich
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import read_experts
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import SLIDING, full_every, kernels, read_kinds, read_window


@reads("kolibri1")
def kolibri(fields: Fields) -> Architecture:
    """QK-norm; with a window, layers without one do not turn their queries and keys."""
    sizes = read_sizes(fields)
    window = read_window(fields)
    kinds = read_kinds(fields, sizes.depth, full_every(sizes.depth, 5))
    turning = read_turning(fields, sizes.head_dim)
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=window),
        turnings=[turning if window is None or kind == SLIDING else None for kind in kinds],
        qk_norm=True,
    )
    experts = read_experts(
        fields,
        sizes,
        score="sigmoid",
        normalised=fields.flag("norm_topk_prob"),
        shared=fields.integer("shared_expert_intermediate_size", most=limits.WIDTH),
    )
    return decoder(fields, sizes, heads, experts, read_norm(fields), block=sandwich)
