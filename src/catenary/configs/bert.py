"""BERT and its kin as decoders: learned positions, a segment vector that all tokens share, a LayerNorm behind them."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture, Embedding, Norm, Rotary, post_norm, pre_norm
from catenary.configs import limits
from catenary.configs.decoder import (
    Block,
    Sizes,
    attentions,
    decoder,
    read_even_sizes,
    read_feed_forward,
    read_norm,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import Turning
from catenary.errors import NotApplicable

ROFORMER_THETA = 10_000.0
"""RoFormer's sinusoidal table of angles has this base and no field for it."""


@reads("bert", "roberta", "camembert", "xlm-roberta", "data2vec-text")
def bert(fields: Fields) -> Architecture:
    """Post-norm; the type of the only segment is one vector for all tokens."""
    sizes = _causal_sizes(fields)
    return _bert(fields, sizes, post_norm, _embedding(fields, sizes))


@reads("ernie")
def ernie(fields: Fields) -> Architecture:
    """BERT; with ``use_task_id`` the vector of the only task joins that of the only segment."""
    sizes = _causal_sizes(fields)
    vectors = 2 if fields.flag("use_task_id") else 1
    return _bert(fields, sizes, post_norm, _embedding(fields, sizes, shared_std=vectors**0.5 * sizes.std))


@reads("bert-generation")
def bert_generation(fields: Fields) -> Architecture:
    """BERT without segments."""
    sizes = _causal_sizes(fields)
    return _bert(fields, sizes, post_norm, _embedding(fields, sizes, shared_std=0.0))


@reads("big_bird")
def big_bird(fields: Fields) -> Architecture:
    """BERT with full attention; ``block_sparse`` attends in both directions whatever ``is_decoder`` says."""
    if fields.text("attention_type") != "original_full":
        raise NotApplicable(
            "big_bird with attention_type='block_sparse' sees a random choice of blocks in both directions; only "
            "'original_full' is described"
        )
    sizes = _causal_sizes(fields)
    scale = sizes.width**0.5 if fields.flag("rescale_embeddings") else 1.0
    return _bert(fields, sizes, post_norm, _embedding(fields, sizes, scale=scale))


@reads("roberta-prelayernorm")
def roberta_prelayernorm(fields: Fields) -> Architecture:
    """RoBERTa with pre-norm layers and a final norm."""
    sizes = _causal_sizes(fields)
    return _bert(fields, sizes, pre_norm, _embedding(fields, sizes))


@reads("megatron-bert", "xlm-roberta-xl")
def megatron_bert(fields: Fields) -> Architecture:
    """Pre-norm layers and a final norm, none behind the embeddings."""
    sizes = _causal_sizes(fields)
    return _bert(fields, sizes, pre_norm, _embedding(fields, sizes, norm=None))


@reads("electra")
def electra(fields: Fields) -> Architecture:
    """Embeddings of ``embedding_size`` channels, projected behind their norm where that is not the width."""
    sizes = _causal_sizes(fields)
    fed = fields.integer("embedding_size", most=limits.WIDTH)
    embedding = _embedding(fields, sizes)
    return _bert(fields, sizes, post_norm, embedding if fed == sizes.width else _projected(embedding, fed, sizes))


@reads("rembert")
def rembert(fields: Fields) -> Architecture:
    """Embeddings of ``input_embedding_size`` channels, always projected behind their norm."""
    sizes = _causal_sizes(fields)
    fed = fields.integer("input_embedding_size", most=limits.WIDTH)
    return _bert(fields, sizes, post_norm, _projected(_embedding(fields, sizes), fed, sizes))


@reads("roformer")
def roformer(fields: Fields) -> Architecture:
    """Rotary queries and keys in place of learned positions."""
    if fields.flag("rotary_value"):
        raise NotApplicable("roformer with rotary_value=true turns values too, which this description cannot hold")
    sizes = _causal_sizes(fields)
    fed = fields.optional_integer("embedding_size", most=limits.WIDTH)
    embedding = _embedding(fields, sizes, position_std=0.0)
    if fed is not None and fed != sizes.width:
        embedding = _projected(embedding, fed, sizes)
    turning = Turning(Rotary(ROFORMER_THETA, sizes.head_dim))
    return _bert(fields, sizes, post_norm, embedding, turning)


def _causal_sizes(fields: Fields) -> Sizes:
    """The sizes; refused unless ``is_decoder`` makes attention causal."""
    if not fields.flag("is_decoder"):
        raise NotApplicable(
            f"{fields.family} without is_decoder=true attends in both directions; only causal models are described"
        )
    if fields.flag("add_cross_attention"):
        raise NotApplicable(f"{fields.family} with add_cross_attention=true needs an encoder's states")
    return read_even_sizes(fields)


def _embedding(fields: Fields, sizes: Sizes, **changes: float | Norm | None) -> Embedding:
    """Token, position and segment vectors of one std, and the norm behind their sum."""
    plain = Embedding(sizes.std, position_std=sizes.std, shared_std=sizes.std, norm=read_norm(fields, "layer"))
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields of Embedding, spelt out in each call


def _projected(embedding: Embedding, fed: int, sizes: Sizes) -> Embedding:
    return replace(embedding, fed_width=fed, projection_std=sizes.std, projected="last")


def _bert(
    fields: Fields, sizes: Sizes, block: Block, embedding: Embedding, turning: Turning | None = None
) -> Architecture:
    norm = read_norm(fields, "layer")
    return decoder(
        fields,
        sizes,
        attentions(sizes, turnings=turning),
        read_feed_forward(fields, sizes, gated=False),
        norm,
        block=block,
        final_norm=norm if block is pre_norm else None,
        embedding=embedding,
        position="learned" if turning is None else "rope",
    )
