"""Weights for the toy network: drawn from an Architecture as theory assumes, or copied from a real network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture, Layer
from catenary.errors import NotApplicable, invalid
from catenary.models.toy import Affine, Block, Normalise, Toy

Arrays = Mapping[str, Float64[np.ndarray, "..."]]


def draw_toy(architecture: Architecture, *, length: int, seed: int) -> Toy:
    """A toy with independent N(0, std^2) matrices, unit norms and zero biases: what the birth law averages over.

    ``length`` is the number of learned positions drawn, where the architecture has them.
    """
    rng = np.random.default_rng(seed)
    width = architecture.width

    def matrix(inputs: int, outputs: int, std: float) -> Affine:
        return Affine(std * rng.standard_normal((inputs, outputs)))

    blocks = []
    for layer in architecture.layers:
        heads, inner = layer.attention, layer.feed_forward
        norm = Normalise(layer.norm)
        queries, keys = heads.heads * heads.head_dim, heads.kv_heads * heads.head_dim
        blocks.append(
            Block(
                layer,
                (norm, norm),
                query=matrix(width, queries, heads.query_key_std),
                key=matrix(width, keys, heads.query_key_std),
                value=matrix(width, keys, heads.value_std),
                output=matrix(queries, width, heads.output_std),
                up=matrix(width, inner.width, inner.input_std),
                down=matrix(inner.width, width, inner.output_std),
                gate=matrix(width, inner.width, inner.input_std) if inner.gated else None,
                qk_norms=(norm, norm) if heads.qk_norm else None,
            )
        )
    positions = None
    if architecture.position == "learned":
        positions = architecture.embedding.position_std * rng.standard_normal((length, width))
    return Toy(tuple(blocks), _frequencies(architecture), positions)


def _frequencies(architecture: Architecture) -> Float64[np.ndarray, " half"] | None:
    """theta^(-2i/head_dim), plain rotary coding."""
    if architecture.position != "rope":
        return None
    if architecture.rope_theta is None:
        raise invalid("architecture", "must name rope_theta for rotary positions", None)
    head_dim = architecture.layers[0].attention.head_dim
    return np.asarray(architecture.rope_theta ** (-np.arange(0, head_dim, 2) / head_dim))


def copy_toy(architecture: Architecture, tensors: Mapping[str, Any], *, rope: bool = True) -> Toy:
    """A toy with the weights of a transformers network, from its ``state_dict``.

    Reads the names of llama, mistral, qwen2 and qwen3 networks, and of gpt2. ``rope=False`` leaves rotary
    position coding out.

    Raises:
        NotApplicable: when the tensors are named otherwise.
    """
    arrays = {name.partition(".")[2]: np.asarray(tensor, dtype=np.float64) for name, tensor in tensors.items()}
    if "layers.0.self_attn.q_proj.weight" in arrays:
        blocks = tuple(_llama_block(arrays, f"layers.{i}.", layer) for i, layer in enumerate(architecture.layers))
        return Toy(blocks, _frequencies(architecture) if rope else None)
    if "h.0.attn.c_attn.weight" in arrays:
        blocks = tuple(_gpt2_block(arrays, f"h.{i}.", layer) for i, layer in enumerate(architecture.layers))
        return Toy(blocks, positions=arrays["wpe.weight"])
    raise NotApplicable("copy_toy reads llama, mistral, qwen2, qwen3 and gpt2 weights; these are named otherwise")


def _llama_block(arrays: Arrays, path: str, layer: Layer) -> Block:
    def linear(name: str) -> Affine:
        bias = arrays.get(f"{path}{name}.bias")
        return Affine(arrays[f"{path}{name}.weight"].T, 0.0 if bias is None else bias)

    def norm(name: str) -> Normalise:
        return Normalise(layer.norm, arrays[f"{path}{name}.weight"])

    with_qk = f"{path}self_attn.q_norm.weight" in arrays
    return Block(
        layer,
        (norm("input_layernorm"), norm("post_attention_layernorm")),
        query=linear("self_attn.q_proj"),
        key=linear("self_attn.k_proj"),
        value=linear("self_attn.v_proj"),
        output=linear("self_attn.o_proj"),
        up=linear("mlp.up_proj"),
        down=linear("mlp.down_proj"),
        gate=linear("mlp.gate_proj"),
        qk_norms=(norm("self_attn.q_norm"), norm("self_attn.k_norm")) if with_qk else None,
    )


def _gpt2_block(arrays: Arrays, path: str, layer: Layer) -> Block:
    def linear(name: str) -> Affine:
        return Affine(arrays[f"{path}{name}.weight"], arrays[f"{path}{name}.bias"])

    def norm(name: str) -> Normalise:
        return Normalise(layer.norm, arrays[f"{path}{name}.weight"], arrays[f"{path}{name}.bias"])

    fused = linear("attn.c_attn")
    weights, biases = np.split(fused.weight, 3, axis=1), np.split(np.asarray(fused.bias), 3)
    query, key, value = (Affine(weight, bias) for weight, bias in zip(weights, biases, strict=True))
    return Block(
        layer,
        (norm("ln_1"), norm("ln_2")),
        query,
        key,
        value,
        output=linear("attn.c_proj"),
        up=linear("mlp.c_fc"),
        down=linear("mlp.c_proj"),
    )
