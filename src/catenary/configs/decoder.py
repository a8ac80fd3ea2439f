"""The parts from which families put a decoder together: sizes, attention, feed-forward, norm, the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from catenary.architecture import (
    Architecture,
    Attention,
    Causal,
    Embedding,
    FeedForward,
    HeadGroup,
    Kernel,
    Layer,
    Norm,
    Recurrence,
    pre_norm,
)
from catenary.configs import limits
from catenary.configs.activations import ACTIVATIONS
from catenary.configs.fields import Fields
from catenary.configs.initial import initial_std, uniform_initialisation
from catenary.configs.rotary import Turning, read_turning
from catenary.errors import invalid

Block = Callable[[Attention, FeedForward, Norm], Layer]
"""How attention, feed-forward network and norm make a layer: ``pre_norm``, ``parallel``, ``sandwich``, ..."""

Mix = TypeVar("Mix", bound=Attention | Recurrence)


@dataclass(frozen=True)
class Sizes:
    """The numbers every part of a decoder needs: its shape and the one std of its matrices."""

    depth: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    std: float


def read_sizes(fields: Fields, *, head_dim: int | None = None, kv_heads: int | None = None) -> Sizes:
    """Depth, width, heads, key/value heads, head size and initial std, by their common names.

    ``head_dim`` is read from the config, or width / heads, where it is not given here; so are ``kv_heads``.

    Raises:
        InvalidInput: a field is missing, of the wrong type or out of range, or heads do not divide.
    """
    heads = read_heads(fields)
    return Sizes(
        depth=read_depth(fields),
        width=read_width(fields),
        heads=heads,
        kv_heads=read_kv_heads(fields, heads) if kv_heads is None else kv_heads,
        head_dim=read_head_dim(fields) if head_dim is None else head_dim,
        std=initial_std(fields),
    )


def read_even_sizes(fields: Fields) -> Sizes:
    """``read_sizes`` of a class whose heads split the width evenly, each with its own key and value."""
    return read_sizes(fields, head_dim=even_split(fields), kv_heads=read_heads(fields))


def read_depth(fields: Fields) -> int:
    """``num_hidden_layers``."""
    return fields.integer("num_hidden_layers", most=limits.DEPTH)


def read_width(fields: Fields) -> int:
    """``hidden_size``."""
    return fields.integer("hidden_size", most=limits.WIDTH)


def read_heads(fields: Fields) -> int:
    """``num_attention_heads``."""
    return fields.integer("num_attention_heads", most=limits.HEADS)


def read_kv_heads(fields: Fields, heads: int, name: str = "num_key_value_heads") -> int:
    """Key/value heads, one per query head where the config gives none; they must divide ``heads``."""
    kv_heads = fields.optional_integer(name, most=limits.HEADS)
    if kv_heads is None:
        fields.assume(name, heads, "left out or null: one per query head")
        return heads
    if heads % kv_heads:
        raise invalid(fields.given_name("num_attention_heads"), f"must be a multiple of {name}={kv_heads}", heads)
    return kv_heads


def read_head_dim(fields: Fields) -> int:
    """``head_dim`` where the config gives it, else hidden_size / num_attention_heads."""
    given = fields.optional_integer("head_dim", most=limits.HEADS)
    return given if given is not None else even_split(fields)


def even_split(fields: Fields) -> int:
    """hidden_size / num_attention_heads, refused where it is no whole number."""
    width, heads = read_width(fields), read_heads(fields)
    if width % heads:
        name, other = fields.given_name("hidden_size"), fields.given_name("num_attention_heads")
        raise invalid(name, f"must be a multiple of {other}={heads}", width)
    return width // heads


def read_norm(fields: Fields, kind: Literal["rms", "layer"] = "rms", *names: str) -> Norm:
    """The norm with its epsilon, from ``rms_norm_eps`` or ``layer_norm_eps`` unless other ``names`` are given."""
    first, *aliases = names or ("rms_norm_eps" if kind == "rms" else "layer_norm_eps",)
    return Norm(kind, fields.number(first, *aliases, most=1.0))


def read_length(fields: Fields) -> int:
    """``max_position_embeddings``."""
    return fields.integer("max_position_embeddings", most=limits.POSITIONS)


def read_inner_width(fields: Fields, name: str, width: int) -> int:
    """The feed-forward width ``name``, 4 times that of the stream where it is null or left out."""
    inner = fields.optional_integer(name, most=4 * limits.WIDTH)
    if inner is None:
        inner = 4 * width
        fields.assume(name, inner, "left out or null: 4 times the width")
    return inner


def attentions(
    sizes: Sizes,
    *,
    kernels: Sequence[Kernel] | None = None,
    turnings: Sequence[Turning | None] | Turning | None = None,
    query_scale: float | None = None,
    qk_norm: bool | Sequence[bool] = False,
    output_std: float | None = None,
    **more: Any,
) -> tuple[Attention, ...]:
    """The attention of every layer: all heads with the layer's kernel and rotation, logits q.k times the scale.

    ``kernels`` default to ``Causal``; one ``Turning`` holds for all layers, and a layer with None is not turned.
    ``query_scale`` defaults to 1/sqrt(head_dim); a turning's factor multiplies it. ``more`` goes to ``Attention``.
    """
    scale = sizes.head_dim**-0.5 if query_scale is None else query_scale
    turns = (turnings,) * sizes.depth if turnings is None or isinstance(turnings, Turning) else turnings
    normed = (qk_norm,) * sizes.depth if isinstance(qk_norm, bool) else qk_norm
    return tuple(
        Attention(
            groups=(HeadGroup(sizes.heads, kernel),),
            kv_heads=sizes.kv_heads,
            head_dim=sizes.head_dim,
            query_scale=scale * (turning.logit_factor if turning else 1.0),
            qk_norm=norm,
            query_key_std=sizes.std,
            value_std=sizes.std,
            output_std=sizes.std if output_std is None else output_std,
            rotary=turning.rotary if turning else None,
            **more,
        )
        for kernel, turning, norm in zip(kernels or (Causal(),) * sizes.depth, turns, normed, strict=True)
    )


def read_feed_forward(
    fields: Fields,
    sizes: Sizes,
    *,
    gated: bool = True,
    width: str | int = "intermediate_size",
    activation: str = "hidden_act",
    output_std: float | None = None,
    **more: Any,
) -> FeedForward:
    """The feed-forward network: its width (a field's name, or a number) and activation; ``more`` goes to it."""
    return FeedForward(
        width=fields.integer(width, most=4 * limits.WIDTH) if isinstance(width, str) else width,
        gated=gated,
        activation=fields.choice(activation, known=ACTIVATIONS),
        input_std=sizes.std,
        output_std=sizes.std if output_std is None else output_std,
        **more,
    )


def decoder(
    fields: Fields,
    sizes: Sizes,
    attentions: Sequence[Mix],
    feed_forwards: FeedForward | Sequence[FeedForward],
    norm: Norm,
    *,
    block: Callable[[Mix, FeedForward, Norm], Layer] = pre_norm,
    **more: Any,
) -> Architecture:
    """The architecture whose layers are ``block(attention, feed_forward, norm)``; ``more`` goes to ``assemble``."""
    inner = (feed_forwards,) * sizes.depth if isinstance(feed_forwards, FeedForward) else feed_forwards
    layers = tuple(block(attention, ffn, norm) for attention, ffn in zip(attentions, inner, strict=True))
    return assemble(fields, sizes, layers, **{"final_norm": norm, **more})


def assemble(
    fields: Fields,
    sizes: Sizes,
    layers: Sequence[Layer],
    *,
    final_norm: Norm | None,
    embedding: Embedding | None = None,
    position: Literal["rope", "learned", "sinusoid", "alibi", "none"] = "rope",
    length: Callable[[Fields], int | None] = read_length,
    initialisation: str | None = None,
) -> Architecture:
    """The architecture of these layers, with the vocabulary and the context length that the config gives.

    Embeddings and matrices have the std of ``sizes`` unless said otherwise. ``rope_theta`` is the base of most layers,
    ``length`` reads the context length.
    """
    bases = Counter(mix.rotary.theta for layer in layers for mix in layer.attentions if mix.rotary)
    return Architecture(
        name=fields.family,
        family=fields.family,
        width=sizes.width,
        layers=tuple(layers),
        embedding=Embedding(sizes.std) if embedding is None else embedding,
        final_norm=final_norm,
        position=position,
        rope_theta=bases.most_common(1)[0][0] if bases else None,
        max_length=length(fields),
        vocabulary=fields.integer("vocab_size", most=limits.VOCABULARY),
        initialisation=uniform_initialisation(sizes.std) if initialisation is None else initialisation,
    )


def llama_decoder(fields: Fields, sizes: Sizes, attention: Sequence[Attention] | None = None) -> Architecture:
    """Llama's decoder: RMS pre-norm, rotary attention (or the ``attention`` given), gated feed-forward.

    Biases start at 0, so ``attention_bias``, ``mlp_bias`` and ``tie_word_embeddings`` change nothing at birth and are
    not read.
    """
    found = attentions(sizes, turnings=read_turning(fields, sizes.head_dim)) if attention is None else attention
    return decoder(fields, sizes, found, read_feed_forward(fields, sizes), read_norm(fields))
