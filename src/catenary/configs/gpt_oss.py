"""gpt-oss: a learned sink per head, windows in every other layer, experts with clamped gated units."""

from __future__ import annotations

import math
from dataclasses import replace

from catenary.architecture import Architecture, Sink
from catenary.configs.decoder import Sizes, attentions, decoder, read_norm, read_sizes
from catenary.configs.experts import read_experts
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import Turning, read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_kinds, read_window
from catenary.errors import NotApplicable

YARN = 32.0
"""The context extension that the class takes where a config gives none."""

QUICK_GELU = 1.702
"""The slope of the sigmoid in transformers' quick_gelu, and of every published gpt-oss."""


@reads("gpt_oss")
def gpt_oss(fields: Fields) -> Architecture:
    """Experts are x sigmoid(1.702 x) times y + 1, both clamped; sinks and router biases have the std of matrices."""
    sizes = read_sizes(fields)
    if fields.number("swiglu_alpha", most=1e3) != QUICK_GELU:
        raise NotApplicable(f"gpt_oss with swiglu_alpha other than {QUICK_GELU}: that activation is not described")
    pattern = [FULL if i % 2 else SLIDING for i in range(sizes.depth)]
    kinds = read_kinds(fields, sizes.depth, pattern)
    heads = attentions(
        sizes,
        kernels=kernels(fields, kinds, window=read_window(fields)),
        turnings=_turning(fields, sizes),
        sink=Sink(std=sizes.std),
    )
    experts = read_experts(
        fields,
        sizes,
        width="intermediate_size",
        count="num_local_experts",
        score="softmax-top",
        offset=1.0,
        limit=fields.number("swiglu_limit", most=1e6),
    )
    return decoder(fields, sizes, heads, replace(experts, activation="quick_gelu"), read_norm(fields))


def _turning(fields: Fields, sizes: Sizes) -> Turning:
    """The rotation; a config that says nothing of it has the class's yarn, extended ``YARN`` times."""
    turning = read_turning(fields, sizes.head_dim)
    if fields.has("rope_parameters") or fields.has("rope_scaling"):
        return turning
    fields.assume("rope_parameters", f"yarn, factor {YARN:g}", "left out; the default of transformers' gpt_oss")
    return replace(turning, logit_factor=(0.1 * math.log(YARN) + 1.0) ** 2)
