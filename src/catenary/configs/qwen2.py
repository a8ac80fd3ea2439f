"""Qwen 1.5, 2 and 2.5: Llama's block with biases on q, k and v, which start at 0."""

from __future__ import annotations

from collections.abc import Mapping

from catenary.architecture import Architecture
from catenary.configs.decoder import gated_decoder, read_depth, read_head_dim
from catenary.configs.family import register
from catenary.configs.fields import Fields
from catenary.configs.windows import require_idle_pattern

DEFAULTS: Mapping[str, object] = {
    "vocab_size": 151936,
    "num_key_value_heads": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 32768,
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-6,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
}


class Qwen2:
    """``sliding_window`` counts only with ``use_sliding_window``; published configs hold a number and false."""

    model_types: tuple[str, ...] = ("qwen2",)
    defaults: Mapping[str, object] = DEFAULTS

    def read(self, fields: Fields) -> Architecture:
        """The architecture; a window that bites is refused by name."""
        require_idle_pattern(fields, read_depth(fields))
        return gated_decoder(fields, head_dim=read_head_dim(fields))


QWEN2 = register(Qwen2())
