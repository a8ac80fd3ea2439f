"""GPT-NeoX and Pythia: attention and feed-forward in parallel behind a LayerNorm each, rotation of a quarter head."""

from __future__ import annotations

from catenary.architecture import Architecture, parallel, pre_norm
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_feed_forward, read_norm
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import Turning, read_turning


@reads("gpt_neox")
def gpt_neox(fields: Fields) -> Architecture:
    """Parallel unless ``use_parallel_residual`` is false; the two norms of a parallel layer are alike at birth."""
    sizes = read_even_sizes(fields)
    return decoder(
        fields,
        sizes,
        attentions(sizes, turnings=_turning(fields, sizes.head_dim, 0.25)),
        read_feed_forward(fields, sizes, gated=False),
        read_norm(fields, "layer"),
        block=parallel if fields.boolean("use_parallel_residual") else pre_norm,
    )


@reads("gpt_neox_japanese")
def gpt_neox_japanese(fields: Fields) -> Architecture:
    """Sequential by class, whole heads turn; the feed-forward width is ``intermediate_multiple_size`` times d."""
    sizes = read_even_sizes(fields)
    times = fields.integer("intermediate_multiple_size", most=64)
    return decoder(
        fields,
        sizes,
        attentions(sizes, turnings=_turning(fields, sizes.head_dim, 1.0)),
        read_feed_forward(fields, sizes, gated=False, width=times * sizes.width),
        read_norm(fields, "layer"),
    )


def _turning(fields: Fields, head_dim: int, share: float) -> Turning:
    """The rotation under the class's own names ``rotary_pct`` and ``rotary_emb_base``."""
    pct = fields.optional_number("rotary_pct", most=1.0)
    base = fields.optional_number("rotary_emb_base", least=1.0, most=limits.THETA)
    return read_turning(fields, head_dim, partial=share if pct is None else pct, theta=base)
