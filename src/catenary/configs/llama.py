"""Llama and everything published under its class: TinyLlama, SmolLM2, Falcon 3, Llama 2 to 3.3."""

from __future__ import annotations

from collections.abc import Mapping

from catenary.architecture import Architecture
from catenary.configs.decoder import even_split, gated_decoder, read_depth, read_head_dim
from catenary.configs.family import register
from catenary.configs.fields import Fields
from catenary.configs.windows import require_full_layers

DEFAULTS: Mapping[str, object] = {
    "vocab_size": 32000,
    "num_key_value_heads": None,
    "head_dim": None,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-6,
}


class Llama:
    """``pretraining_tp`` splits matrices for old checkpoints and is not read; biases start at 0."""

    model_types: tuple[str, ...] = ("llama",)
    defaults: Mapping[str, object] = DEFAULTS

    def read(self, fields: Fields) -> Architecture:
        """The architecture; heads must divide the width even where ``head_dim`` is given, as transformers asks."""
        even_split(fields)
        require_full_layers(fields, read_depth(fields))
        return gated_decoder(fields, head_dim=read_head_dim(fields))


LLAMA = register(Llama())
