"""XLM as a causal model: learned or sinusoidal positions, a LayerNorm behind them and behind each addition."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Embedding, FeedForward, Layer, post_norm
from catenary.configs import limits
from catenary.configs.decoder import attentions, decoder, read_even_sizes, read_norm
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.sinusoid import paper_sinusoid
from catenary.errors import NotApplicable


@reads("xlm")
def xlm(fields: Fields) -> Architecture:
    """Causal only with ``causal``; embeddings and positions have a std of their own, ``embed_init_std``.

    The class keeps its norms beside its layers, so that the last one counts as the final norm.
    """
    if not fields.flag("causal"):
        raise NotApplicable("xlm without causal=true attends in both directions; only causal models are described")
    sizes = read_even_sizes(fields)
    std = fields.number("embed_init_std", most=limits.STD)
    norm = read_norm(fields, "layer")
    table = fields.flag("sinusoidal_embeddings")
    embedding = Embedding(
        std, position_std=0.0 if table else std, norm=norm, sinusoid=paper_sinusoid(sizes.width) if table else None
    )
    activation = "gelu" if fields.boolean("gelu_activation") else "relu"
    found = decoder(
        fields,
        sizes,
        attentions(sizes),
        FeedForward(4 * sizes.width, False, activation, sizes.std, sizes.std),
        norm,
        block=post_norm,
        final_norm=norm,
        embedding=embedding,
        position="sinusoid" if table else "learned",
        initialisation=(
            f"transformers' XLM: embeddings and positions N(0, {std:.6g}^2), matrices N(0, {sizes.std:.6g}^2), "
            "biases 0, norm weights 1"
        ),
    )
    *before, last = found.layers
    return replace(found, layers=(*before, Layer((last.steps[0], replace(last.steps[1], after=None)))))
