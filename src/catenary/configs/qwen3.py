"""Qwen 3: RMSNorm on every query and key, so the logit variance is 1 at birth whatever the initial std."""

from __future__ import annotations

from collections.abc import Mapping

from catenary.architecture import Architecture
from catenary.configs import limits
from catenary.configs.decoder import gated_decoder, read_depth
from catenary.configs.family import register
from catenary.configs.fields import Fields
from catenary.configs.windows import require_idle_pattern

DEFAULTS: Mapping[str, object] = {
    "vocab_size": 151936,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "hidden_act": "silu",
    "max_position_embeddings": 32768,
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-6,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
}


class Qwen3:
    """QK-norm comes with the class and has no field; ``head_dim`` is 128 where left out, whatever the width."""

    model_types: tuple[str, ...] = ("qwen3",)
    defaults: Mapping[str, object] = DEFAULTS

    def read(self, fields: Fields) -> Architecture:
        """The architecture; a window that bites is refused by name."""
        require_idle_pattern(fields, read_depth(fields))
        head_dim = fields.integer("head_dim", most=limits.HEADS)
        return gated_decoder(fields, head_dim=head_dim, qk_norm=True)


QWEN3 = register(Qwen3())
