"""MPT: ALiBi with its own order of slopes, LayerNorm without biases, no learned positions whatever the config says."""

from __future__ import annotations

from catenary.architecture import Architecture, FeedForward
from catenary.configs import limits
from catenary.configs.alibi import biased, mpt_heads
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_norm
from catenary.configs.family import reads
from catenary.configs.fields import Fields

BIAS_MAX = 8.0
"""What transformers takes for ``alibi_bias_max``, and every published config has."""

FACTOR = 1e3
"""Upper bound of a scale."""

UNREAD = {
    "alibi": (False, "whose MPT always has ALiBi"),
    "qk_ln": (True, "whose MPT does not normalise queries and keys"),
    "prefix_lm": (True, "whose MPT is causal"),
}
"""Fields of ``attn_config`` that only the remote code reads: the value that would matter, and what holds instead."""


@reads("mpt")
def mpt(fields: Fields) -> Architecture:
    """transformers' class always builds ALiBi, feed-forward networks of 4 times the width and one key per head.

    ``learned_pos_emb``, ``expansion_ratio``, ``norm_type`` and ``init_config`` are left over from the remote code.
    """
    sizes = read_even_sizes(fields)
    most, scale = BIAS_MAX, None
    part = fields.optional_part("attn_config")
    if part is not None:
        given = part.optional_number("alibi_bias_max", most=64.0)
        most = BIAS_MAX if given is None else given
        scale = part.optional_number("softmax_scale", most=FACTOR)
        _note_unread(fields, part)
    if fields.has("expansion_ratio") and fields.number("expansion_ratio", most=FACTOR) != 4:
        fields.note("expansion_ratio is not read by transformers, whose MPT is 4 times as wide inside")
    return decoder(
        fields,
        sizes,
        biased(attentions(sizes, query_scale=scale), mpt_heads(sizes.heads, most)),
        FeedForward(4 * sizes.width, False, "gelu", sizes.std, sizes.std),
        read_norm(fields, "layer", "layer_norm_epsilon"),
        position="alibi",
        length=lambda fields: fields.integer("max_seq_len", most=limits.POSITIONS),
    )


def _note_unread(fields: Fields, part: Fields) -> None:
    for name, (matters, instead) in UNREAD.items():
        if part.has(name) and part.boolean(name) is matters:
            fields.note(f"attn_config.{name} is not read by transformers, {instead}")
    if part.has("clip_qkv"):
        fields.note("attn_config.clip_qkv: clipped queries, keys and values are read as unclipped")
