"""Configs of tiny networks, one per family, that run in milliseconds."""

from __future__ import annotations

from typing import Any

import numpy as np

from catenary.text.windows import Windows

_LLAMA: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 24, "vocab_size": 50, "initializer_range": 0.2, "max_position_embeddings": 128,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None, "tie_word_embeddings": False,
}

TINY: dict[str, dict[str, Any]] = {
    "llama": {**_LLAMA, "model_type": "llama"},
    "qwen2": {**_LLAMA, "model_type": "qwen2"},
    "qwen3": {**_LLAMA, "model_type": "qwen3", "head_dim": 8},
    "mistral": {**_LLAMA, "model_type": "mistral", "sliding_window": None, "head_dim": 8},
    "gpt2": {
        "model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 50,
        "initializer_range": 0.2, "bos_token_id": 0, "eos_token_id": 0,
    },
}

QWEN2_LIKE: dict[str, Any] = {
    "model_type": "qwen2", "hidden_size": 256, "num_hidden_layers": 12, "num_attention_heads": 4,
    "num_key_value_heads": 1, "intermediate_size": 1390, "vocab_size": 16, "initializer_range": 0.0374,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None,
}
"""The mean-field constants of Qwen2-0.5B at width 256."""


def token_windows(count: int = 3, length: int = 12, vocabulary: int = 50, seed: int = 0) -> Windows:
    return Windows(np.random.default_rng(seed).integers(0, vocabulary, (count, length)))


def vector_windows(count: int = 2, length: int = 12, seed: int = 0) -> Windows:
    return Windows(np.tile(np.arange(length), (count, 1)), "random", "gaussian", seed)
