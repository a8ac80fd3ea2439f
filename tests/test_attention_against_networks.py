"""Attention's words at logit variance 1 against real untrained networks; a word left out is noticed.

Width 128, 4 layers, L = 64, 12 networks x 6 sequences x 1 probe; the measurement's own error is .01 to .02 dex, common
to neighbouring positions.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import catenary as ct
from catenary.architecture import Architecture, Causal, HeadGroup

pytestmark = pytest.mark.slow

LENGTH, WIDTH = 64, 128
STD = WIDTH**-0.5
EDGES = (0, 1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 63, 64)
TOKENS: dict[str, Any] = {"vocab_size": 16, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
DENSE: dict[str, Any] = {
    **TOKENS, "hidden_size": WIDTH, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4,
    "head_dim": 32, "intermediate_size": 352, "initializer_range": STD, "max_position_embeddings": 2 * LENGTH,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "alibi": {**TOKENS, "model_type": "bloom", "hidden_size": WIDTH, "n_layer": 4, "n_head": 4,
              "initializer_range": STD},
    "sink": {**DENSE, "model_type": "granite_swa", "sliding_window": 4,
             "layer_types": ["sliding_attention", "full_attention"] * 2,
             "embedding_multiplier": 8.0, "residual_multiplier": 1.0, "attention_multiplier": 32**-0.5,
             "layer_rope_theta": [1e4] * 4},
    "cap": {**DENSE, "model_type": "gemma2", "query_pre_attn_scalar": 2, "attn_logit_softcapping": 2.0,
            "sliding_window": 16},
    "gate": {**DENSE, "model_type": "afmoe", "sliding_window": 16, "num_dense_layers": 4,
             "moe_intermediate_size": 64, "num_experts": 2, "num_experts_per_tok": 1},
}  # fmt: skip
LEFT_OUT: dict[str, dict[str, Any]] = {
    "alibi": {"groups": (HeadGroup(4, Causal()),)}, "cap": {"softcap": None}, "sink": {}, "gate": {},
}  # fmt: skip
"""What is changed back. A gate in front of a norm is almost a factor, which the norm takes out, and sinks move these
profiles by less than .03: ``test_attending`` notices them."""


def errors(architecture: Architecture, energies: np.ndarray) -> np.ndarray:
    """log10 of predicted over measured rms, by position group; groups that no path reaches are left out."""
    law = ct.predict(architecture, length=LENGTH).values ** 2
    cuts = [(a, b) for a, b in pairwise(EDGES) if energies[a:b].mean() > 0]
    return np.array([0.5 * np.log10(law[a:b].mean() / energies[a:b].mean()) for a, b in cuts])


@pytest.mark.parametrize("word", CONFIGS)
def test_words_at_unit_logit_variance(word: str) -> None:
    config, windows = CONFIGS[word], ct.random_windows(LENGTH, 6, 0)
    energies = np.mean([
        ct.measure_jacobian(ct.load(config, seed=seed), windows, probes=1, seed=seed, batch_size=6)
        .energy[0, 0, 0].mean((0, 1))
        for seed in range(12)
    ], axis=0)  # fmt: skip
    architecture = ct.read_config(config)
    found = errors(architecture, energies)
    without = replace(architecture, layers=tuple(
        layer.with_mixers(attention=replace(layer.attention, **LEFT_OUT[word])) for layer in architecture.layers
    ))  # fmt: skip
    other = errors(without, energies)
    print(f"{word}: median {np.median(np.abs(found)):.3f}, largest {np.abs(found).max():.3f}; "
          f"left out {np.median(np.abs(other)):.3f}")  # fmt: skip
    assert np.median(np.abs(found)) < 0.03
    assert np.abs(found).max() < 0.1
    if LEFT_OUT[word]:
        assert np.median(np.abs(other)) > 0.05
