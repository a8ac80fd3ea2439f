"""The decoders of BART and its kin, by themselves, as transformers builds them for causal language modelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from catenary.architecture import Architecture, Embedding, Norm, post_norm, pre_norm
from catenary.configs import limits
from catenary.configs.decoder import Sizes, attentions, decoder, read_feed_forward
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.initial import initial_std
from catenary.configs.sinusoid import fairseq_sinusoid, paper_sinusoid
from catenary.errors import invalid

NORM = Norm("layer", 1e-5)
"""All of these classes give their LayerNorms torch's own epsilon."""


@dataclass(frozen=True)
class Variant:
    """How one of these decoders differs: where it normalises, its positions, and where embeddings are scaled.

    ``embedding_norm``: behind the sum with the positions, behind the tokens' vectors alone, or nowhere. ``inside``:
    the scale sits in the embedding module, so that fed vectors are already scaled.
    """

    pre_norm: bool
    embedding_norm: Literal["sum", "tokens", "none"]
    positions: Literal["learned", "sinusoid"] = "learned"
    inside: bool = True


VARIANTS: Mapping[str, Variant] = {
    "bart": Variant(False, "sum"),
    "plbart": Variant(False, "sum"),
    "mvp": Variant(False, "sum"),
    "mbart": Variant(True, "sum"),
    "blenderbot": Variant(True, "none"),
    "blenderbot-small": Variant(False, "tokens", inside=False),
    "bigbird_pegasus": Variant(True, "none"),
    "pegasus": Variant(True, "none", positions="sinusoid", inside=False),
    "marian": Variant(False, "none", positions="sinusoid", inside=False),
}


@reads(*VARIANTS)
def bart(fields: Fields) -> Architecture:
    """Decoder layers without cross-attention; the encoder that published configs describe is left out, and said so."""
    variant = VARIANTS[fields.family]
    sizes = _sizes(fields)
    fields.note(f"the decoder of {fields.family} by itself, without the encoder and the attention to it")
    return _decoder(fields, sizes, variant)


@reads("trocr")
def trocr(fields: Fields) -> Architecture:
    """A text decoder for images; a field each for learned positions and for the norm behind them."""
    fields.note("the decoder of trocr by itself, without the image encoder and the attention to it")
    learned = fields.boolean("use_learned_position_embeddings")
    variant = Variant(
        False,
        "sum" if fields.boolean("layernorm_embedding") else "none",
        positions="learned" if learned else "sinusoid",
    )
    return _decoder(fields, _sizes(fields), variant)


def _sizes(fields: Fields) -> Sizes:
    depth = fields.integer("decoder_layers", most=limits.DEPTH)
    width = fields.integer("d_model", most=limits.WIDTH)
    heads = fields.integer("decoder_attention_heads", most=limits.HEADS)
    if width % heads:
        raise invalid("d_model", f"must be a multiple of decoder_attention_heads={heads}", width)
    return Sizes(depth, width, heads, heads, width // heads, initial_std(fields))


def _decoder(fields: Fields, sizes: Sizes, variant: Variant) -> Architecture:
    return decoder(
        fields,
        sizes,
        attentions(sizes),
        read_feed_forward(
            fields, sizes, gated=False, width="decoder_ffn_dim", activation="activation_function"
        ),
        NORM,
        block=pre_norm if variant.pre_norm else post_norm,
        final_norm=NORM if variant.pre_norm else None,
        embedding=_embedding(fields, sizes, variant),
        position=variant.positions,
    )


def _embedding(fields: Fields, sizes: Sizes, variant: Variant) -> Embedding:
    scale = sizes.width**0.5 if fields.boolean("scale_embedding") else 1.0
    fed, outside = (sizes.std * scale, 1.0) if variant.inside else (sizes.std, scale)
    if variant.embedding_norm == "tokens":
        outside = (sizes.std**2 + NORM.epsilon) ** -0.5
        fields.note("the norm of the tokens' vectors alone is read as a division by their std")
    sinusoid = paper_sinusoid(sizes.width) if fields.family in ("marian", "pegasus") else fairseq_sinusoid(sizes.width)
    return Embedding(
        fed,
        position_std=sizes.std if variant.positions == "learned" else 0.0,
        scale=outside,
        norm=NORM if variant.embedding_norm == "sum" else None,
        sinusoid=sinusoid if variant.positions == "sinusoid" else None,
    )
