"""Block forms in words, written by hand, against real untrained networks of width 128: absolute values, nothing fitted.

Each network's energies are averaged over networks and windows. The standard error of one position's level is about
.02 dex with 8 networks; ``BAND`` allows for it and for the 1/d error of the law at this width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import catenary as ct
from catenary.architecture import (
    Architecture,
    Attention,
    Branch,
    Embedding,
    Experts,
    FeedForward,
    Gate,
    HeadGroup,
    Layer,
    Norm,
    Rotary,
    Sinusoid,
    Step,
    parallel,
    post_branch,
    post_norm,
    pre_norm,
    sandwich,
)

WIDTH, LAYERS, HEADS, LENGTH, NETWORKS, WINDOWS = 128, 4, 4, 64, 8, 3
STD = (0.4**0.5 / WIDTH) ** 0.5
FED = Embedding(STD)
BAND = 0.05
RMS, LAYER = Norm("rms", 1e-6), Norm("layer", 1e-5)
FIELDS: dict[str, Any] = {
    "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": 2,
    "head_dim": 32, "intermediate_size": 352, "initializer_range": STD, "vocab_size": 16, "pad_token_id": None,
    "max_position_embeddings": 2 * LENGTH, "bos_token_id": 0, "eos_token_id": 0, "rms_norm_eps": 1e-6,
}  # fmt: skip
ATTENTION = Attention((HeadGroup(HEADS),), 2, 32, 32**-0.5, False, STD, STD, STD, rotary=Rotary(1e4, 32))
FULL = replace(ATTENTION, kv_heads=HEADS)
GATED = FeedForward(352, True, "silu", STD, STD)
PLAIN = FeedForward(512, False, "gelu", STD, STD)
MIXTRAL = replace(GATED, experts=Experts(8, 2, STD, "softmax-top"))
GATED_SHARED = replace(GATED, gate=Gate(STD, "token"))
QWEN2_MOE = replace(GATED, experts=Experts(8, 2, STD, "softmax", shared=GATED_SHARED))
NORMED = replace(ATTENTION, qk_norm=True, qk_norm_over="heads", kv_heads=HEADS)
ALPHAS = Layer((
    Step((Branch(ATTENTION, scale=0.8),), keep=1.3, before=RMS),
    Step((Branch(MIXTRAL, scale=0.9),), keep=1.2, before=RMS),
))  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A transformers config, and the same network in words."""

    config: dict[str, Any]
    layer: Layer
    embedding: Embedding = FED
    final_norm: Norm | None = RMS
    plain: Callable[[Architecture], Architecture] | None = None


def as_pre_norm(architecture: Architecture) -> Architecture:
    """The same branches in pre-norm order, without scales."""
    mixers = [branch.mix for branch in architecture.layers[0].branches]
    layer = Layer(tuple(Step((Branch(mix, before=RMS),)) for mix in mixers))
    return replace(architecture, layers=(layer,) * architecture.depth)


def dense(architecture: Architecture) -> Architecture:
    """Every token passes one network, as wide as its chosen experts together."""
    layers = tuple(layer.with_mixers(feed_forward=replace(GATED, width=704)) for layer in architecture.layers)
    return replace(architecture, layers=layers)


def without_positions(architecture: Architecture) -> Architecture:
    return replace(architecture, embedding=replace(architecture.embedding, sinusoid=None))



CASES: dict[str, Case] = {
    "parallel": Case(
        {"model_type": "gpt_neox", **FIELDS, "intermediate_size": 512, "rotary_pct": 0.25},
        parallel(replace(FULL, rotary=Rotary(1e4, 8)), PLAIN, LAYER), final_norm=LAYER, plain=as_pre_norm,
    ),
    "sandwich": Case(
        {"model_type": "gemma2", **FIELDS, "query_pre_attn_scalar": 32, "sliding_window": 4 * LENGTH},
        sandwich(replace(ATTENTION, softcap=50.0), replace(GATED, activation="gelu_pytorch_tanh"), RMS),
        Embedding(STD * math.sqrt(WIDTH)), plain=as_pre_norm,
    ),
    "post-branch": Case(
        {"model_type": "olmo2", **FIELDS, "num_key_value_heads": HEADS}, post_branch(NORMED, GATED, RMS),
        plain=as_pre_norm,
    ),
    "post-norm": Case(
        {
            "model_type": "opt", **FIELDS, "init_std": STD, "ffn_dim": 512, "do_layer_norm_before": False,
            "word_embed_proj_dim": WIDTH,
        },
        post_norm(replace(FULL, rotary=None), replace(PLAIN, activation="relu"), LAYER),
        Embedding(STD, position_std=STD), None, as_pre_norm,
    ),
    "multipliers": Case(
        {
            "model_type": "granite", **FIELDS, "attention_multiplier": 32**-0.5, "residual_multiplier": 0.22,
            "embedding_multiplier": 12.0,
        },
        pre_norm(ATTENTION, GATED, RMS, scale=0.22), Embedding(STD, scale=12.0), plain=as_pre_norm,
    ),
    "norm inside the residual, experts": Case(
        {
            "model_type": "minimax", **FIELDS, "num_local_experts": 8, "num_experts_per_tok": 2,
            "layer_types": ["full_attention"] * LAYERS, "full_attn_alpha_factor": 1.3, "full_attn_beta_factor": 0.8,
            "mlp_alpha_factor": 1.2, "mlp_beta_factor": 0.9,
        },
        ALPHAS, plain=as_pre_norm,
    ),
    "experts": Case(
        {"model_type": "mixtral", **FIELDS, "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None},
        pre_norm(ATTENTION, MIXTRAL, RMS), plain=dense,
    ),
    "experts with a gated shared one": Case(
        {
            "model_type": "qwen2_moe", **FIELDS, "num_experts": 8, "num_experts_per_tok": 2,
            "moe_intermediate_size": 352, "shared_expert_intermediate_size": 352,
        },
        pre_norm(ATTENTION, QWEN2_MOE, RMS), plain=dense,
    ),
    "sinusoids": Case(
        {
            "model_type": "xglm", **FIELDS, "d_model": WIDTH, "num_layers": LAYERS, "attention_heads": HEADS,
            "ffn_dim": 512, "init_std": STD,
        },
        pre_norm(replace(FULL, rotary=None), PLAIN, LAYER),
        Embedding(STD * math.sqrt(WIDTH), sinusoid=Sinusoid(1e4, WIDTH / 2 - 1, offset=2)), LAYER, without_positions,
    ),
    "norm behind the embedding": Case(
        {"model_type": "bert", **FIELDS, "is_decoder": True, "intermediate_size": 512},
        post_norm(replace(FULL, rotary=None), PLAIN, Norm("layer", 1e-12)),
        Embedding(STD, position_std=STD, shared_std=STD, norm=Norm("layer", 1e-12)), None, as_pre_norm,
    ),
    "a learned activation": Case({"model_type": "apertus", **FIELDS}, pre_norm(
        replace(ATTENTION, qk_norm=True), FeedForward(352, False, "xielu", STD, STD), Norm("rms", 1e-5),
    )),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_words_describe_the_network(name: str) -> None:
    case = CASES[name]
    energies = []
    for seed in range(NETWORKS):
        windows = ct.random_windows(LENGTH, WINDOWS, seed)
        model = ct.load(case.config, seed=seed, vocabulary=16)
        energies.append(ct.measure_jacobian(model, windows, probes=2, seed=seed).energy.reshape(-1, LENGTH))
    seen = np.sqrt(np.concatenate(energies).mean(0))
    architecture = Architecture(
        name, "test", WIDTH, (case.layer,) * LAYERS, case.embedding, case.final_norm, "none", max_length=2 * LENGTH
    )
    errors = np.log10(ct.predict(architecture, length=LENGTH).values / seen)
    print(f"{name}: median |log10| {np.median(np.abs(errors)):.3f}, first {errors[0]:+.3f}, last {errors[-1]:+.3f}")
    assert np.median(np.abs(errors)) <= BAND
    assert abs(errors[-1]) <= 2 * BAND
    if case.plain is not None:
        other = np.log10(ct.predict(case.plain(architecture), length=LENGTH).values / seen)
        print(f"without the feature: median |log10| {np.median(np.abs(other)):.3f}")
        assert np.median(np.abs(other)) > 0.1
