"""Llama's block and nothing else: Llama 2 to 3.3, TinyLlama, SmolLM2, Falcon 3 and the classes that copy it."""

from __future__ import annotations

from dataclasses import replace

from catenary.architecture import Architecture
from catenary.configs import limits
from catenary.configs.decoder import (
    attentions,
    decoder,
    even_split,
    llama_decoder,
    read_depth,
    read_feed_forward,
    read_norm,
    read_sizes,
)
from catenary.configs.family import reads
from catenary.configs.fields import Fields
from catenary.configs.rotary import read_turning
from catenary.configs.windows import kernels, read_kinds
from catenary.errors import NotApplicable, invalid


@reads("llama", "exaone", "iquestcoder")
def llama(fields: Fields) -> Architecture:
    """Heads must divide the width even where ``head_dim`` is given, as transformers asks.

    ``pretraining_tp`` splits matrices for old checkpoints and is not read; biases start at 0.
    """
    even_split(fields)
    sizes = read_sizes(fields)
    bands = kernels(fields, read_kinds(fields, sizes.depth))
    return llama_decoder(
        fields, sizes, attentions(sizes, kernels=bands, turnings=read_turning(fields, sizes.head_dim))
    )


@reads("seed_oss", "internlm3", "ernie4_5", "emu3_text_model")
def llama_like(fields: Fields) -> Architecture:
    """The same block in a class of its own; heads of any size. Dropout does not act in a network that is evaluated."""
    return llama_decoder(fields, read_sizes(fields))


@reads("mllama_text_model")
def mllama_text(fields: Fields) -> Architecture:
    """Llama's block; the layers of ``cross_attention_layers`` see images only and are passed over without one."""
    depth = read_depth(fields)
    crossed = set(fields.optional_indices("cross_attention_layers", most=depth - 1) or ())
    if crossed:
        fields.note(f"{len(crossed)} layers attend to images only and are left out: text without an image")
    sizes = read_sizes(fields)
    if len(crossed) == depth:
        raise NotApplicable("mllama whose layers all attend to images has nothing that text passes")
    return llama_decoder(fields, replace(sizes, depth=depth - len(crossed)))


@reads("helium")
def helium(fields: Fields) -> Architecture:
    """Llama's block with an output matrix that is square, so that heads must fill the width."""
    sizes = read_sizes(fields)
    if sizes.heads * sizes.head_dim != sizes.width:
        raise invalid("head_dim", f"must be hidden_size / num_attention_heads = {sizes.width}/{sizes.heads}",
                      sizes.head_dim)  # fmt: skip
    return llama_decoder(fields, sizes)


@reads("hunyuan_v1_dense")
def hunyuan_dense(fields: Fields) -> Architecture:
    """Llama's block with an RMSNorm on every query and key, behind the rotation, which it does not see."""
    sizes = read_sizes(fields)
    turning = read_turning(fields, sizes.head_dim)
    return llama_decoder(fields, sizes, attentions(sizes, turnings=turning, qk_norm=True))


@reads("doge")
def doge(fields: Fields) -> Architecture:
    """Llama's block with QK-norm and a gain of 1 on the residual, up to ``keep_window_size`` tokens.

    Its dynamic mask adds the same number to every logit at birth; above ``keep_window_size`` it keeps that many keys,
    chosen among equals, which is not described.
    """
    if fields.boolean("is_moe"):
        raise NotApplicable("doge with is_moe=true: its cross-domain experts are not described")
    window = fields.optional_integer("sliding_window", most=limits.POSITIONS)
    if window is not None:
        raise NotApplicable(f"doge with sliding_window={window}: its own mask is laid over the window's")
    kept = fields.integer("keep_window_size", most=limits.POSITIONS)
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim), qk_norm=True)
    return replace(llama_decoder(fields, sizes, heads), causal_up_to=kept)


@reads("arcee")
def arcee(fields: Fields) -> Architecture:
    """Llama's attention with a plain feed-forward network."""
    even_split(fields)
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim))
    return decoder(fields, sizes, heads, read_feed_forward(fields, sizes, gated=False), read_norm(fields))


@reads("apertus", "apertus1p5_text")
def apertus(fields: Fields) -> Architecture:
    """Llama's attention with QK-norm, and a plain feed-forward network."""
    sizes = read_sizes(fields)
    heads = attentions(sizes, turnings=read_turning(fields, sizes.head_dim), qk_norm=True)
    return decoder(fields, sizes, heads, read_feed_forward(fields, sizes, gated=False), read_norm(fields))
