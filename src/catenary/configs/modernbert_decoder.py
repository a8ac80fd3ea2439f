"""ModernBERT's decoder: windows on two layers of three, a norm behind the embedding, truncated normal matrices."""

from __future__ import annotations

import math
from dataclasses import replace

from catenary.architecture import Architecture, Embedding
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_feed_forward, read_norm
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import FULL, SLIDING, kernels, read_kinds

CUTOFF = 3.0
"""The cutoff in stds where ``initializer_cutoff_factor`` is null."""


@reads("modernbert-decoder")
def modernbert_decoder(fields: Fields) -> Architecture:
    """Full attention in layers 0, 3, 6, ...; the others see ``local_attention`` // 2 keys.

    Outputs of branches are smaller by sqrt(2 num_hidden_layers). Layer 0 has no norm in front of its attention, which
    sees the embedding's own norm. Matrices are cut off at ``initializer_cutoff_factor`` stds, which makes their std
    smaller.
    """
    given = read_even_sizes(fields)
    cutoff = fields.optional_number("initializer_cutoff_factor", most=100.0)
    std = given.std * truncated_std(CUTOFF if cutoff is None else cutoff)
    sizes = replace(given, std=std)
    small = std / (2 * sizes.depth) ** 0.5
    period = fields.optional_integer("global_attn_every_n_layers", most=limits.DEPTH) or 3
    kinds = read_kinds(fields, sizes.depth, [FULL if i % period == 0 else SLIDING for i in range(sizes.depth)])
    local = fields.optional_integer("local_attention", least=2, most=limits.POSITIONS)
    bands = kernels(fields, kinds, window=None if local is None else local // 2)
    bases = {FULL: "global_rope_theta", SLIDING: "local_rope_theta"}
    turnings = {
        kind: read_turning(
            fields, sizes.head_dim, kind, theta=fields.optional_number(name, least=1.0, most=limits.THETA)
        )
        for kind, name in bases.items()
    }
    norm = read_norm(fields, "layer", "norm_eps")
    return decoder(
        fields,
        sizes,
        attentions(sizes, kernels=bands, turnings=[turnings[kind] for kind in kinds], output_std=small),
        read_feed_forward(fields, sizes, activation="hidden_activation", output_std=small),
        norm,
        embedding=Embedding(std, norm=norm),
        initialisation=(
            f"transformers' ModernBERT: embeddings and matrices of std {std:.6g} (a normal of {given.std:.6g} cut "
            f"off), outputs of branches {small:.6g}, biases 0, norm weights 1"
        ),
    )


def truncated_std(cutoff: float) -> float:
    r"""Std of a standard normal cut off at \(\pm c\): \(\sqrt{1 - 2c\phi(c)/(2\Phi(c) - 1)}\)."""
    density = math.exp(-(cutoff**2) / 2) / math.sqrt(2 * math.pi)
    return math.sqrt(1 - 2 * cutoff * density / math.erf(cutoff / math.sqrt(2))) if cutoff > 0 else 0.0
