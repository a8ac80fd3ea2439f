"""Mistral without a window, or with one that no context outgrows: v0.2, v0.3, Nemo, Danube 2."""

from __future__ import annotations

from collections.abc import Mapping

from catenary.architecture import Architecture
from catenary.configs.decoder import gated_decoder, read_depth, read_head_dim
from catenary.configs.family import register
from catenary.configs.fields import Fields
from catenary.configs.windows import read_window, require_full_layers, require_idle_window

DEFAULTS: Mapping[str, object] = {
    "vocab_size": 32000,
    "num_key_value_heads": 8,
    "head_dim": None,
    "hidden_act": "silu",
    "max_position_embeddings": 131072,
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-6,
    "sliding_window": 4096,
}


class Mistral:
    """``sliding_window`` holds for every layer; left out it means 4096, and only null means none."""

    model_types: tuple[str, ...] = ("mistral",)
    defaults: Mapping[str, object] = DEFAULTS

    def read(self, fields: Fields) -> Architecture:
        """The architecture; a window that bites is refused by name."""
        window = read_window(fields)
        if window is not None:
            require_idle_window(fields, window, "set sliding_window to null")
        require_full_layers(fields, read_depth(fields))
        return gated_decoder(fields, head_dim=read_head_dim(fields))


MISTRAL = register(Mistral())
