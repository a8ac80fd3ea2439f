"""GPT-Neo: learned positions, every other layer with a window, and logits without 1/sqrt(head_dim)."""

from __future__ import annotations

from catenary.architecture import Architecture, Embedding
from catenary.configs import limits
from catenary.configs.decoder import (
    attentions,
    decoder,
    read_even_sizes,
    read_feed_forward,
    read_inner_width,
    read_norm,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.received import received
from catenary.configs.windows import FULL, SLIDING, kernels
from catenary.errors import invalid, unknown

KINDS = {"global": FULL, "local": SLIDING}

CLASS_PATTERN = [[["global", "local"], 12]]
"""What the class takes where ``attention_types`` is left out."""


@reads("gpt_neo")
def gpt_neo(fields: Fields) -> Architecture:
    """A local layer sees ``window_size`` keys, the query's own included; logits are q.k unscaled, by class."""
    sizes = read_even_sizes(fields)
    inner = read_inner_width(fields, "intermediate_size", sizes.width)
    kinds = _kinds(fields, sizes.depth)
    bands = kernels(fields, kinds, window=fields.integer("window_size", most=limits.POSITIONS))
    return decoder(
        fields,
        sizes,
        attentions(sizes, kernels=bands, query_scale=1.0),
        read_feed_forward(fields, sizes, gated=False, width=inner, activation="activation_function"),
        read_norm(fields, "layer", "layer_norm_epsilon"),
        embedding=Embedding(sizes.std, position_std=sizes.std),
        position="learned",
    )


def _kinds(fields: Fields, depth: int) -> tuple[str, ...]:
    """``attention_types`` unrolled: [[["global", "local"], 6]] is six times global, local."""
    pattern = fields.optional_list("attention_types") or CLASS_PATTERN
    kinds: list[str] = []
    for item in pattern:
        if not (isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], list | tuple) and item[0]):
            raise invalid("attention_types", "must be a list of pairs [kinds, times]", received(item))
        pair = Fields({"kinds": item[0], "times": item[1]}, "attention_types")
        kinds += (pair.optional_texts("kinds", count=len(item[0])) or ()) * pair.integer("times", most=depth)
    if len(kinds) != depth:
        raise invalid("attention_types", f"must unroll to {fields.own_name('num_hidden_layers')}={depth}", len(kinds))
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("attention_types", kind, KINDS)
    return tuple(KINDS[kind] for kind in kinds)
