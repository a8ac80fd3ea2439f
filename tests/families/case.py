"""One model type's tiny config, and what of it a plain Llama-like law would miss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WIDTH, LAYERS, HEADS, LENGTH, WINDOW = 128, 4, 4, 64, 16

STD = 0.0743
"""Of every matrix, so that logits have the variance (128 * STD^2)^2 = .5."""

TOKENS: dict[str, Any] = {"vocab_size": 16, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}

DENSE: dict[str, Any] = {
    **TOKENS, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "num_key_value_heads": 2, "intermediate_size": 256, "initializer_range": STD, "max_position_embeddings": 128,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A config without its ``model_type``, and the feature under test (empty: the plain law is this type's own)."""

    config: dict[str, Any]
    feature: str = ""


def dense(feature: str = "", /, **fields: Any) -> Case:
    """The usual decoder with these fields changed; None as a value means null, not absent."""
    return Case({**DENSE, **fields}, feature)
