"""Decoders that mix positions by short convolutions, linear attention or state spaces beside attention."""

from __future__ import annotations

from families.case import WINDOW, Case, dense

MIXED = ["conv", "conv", "full_attention", "conv", "conv", "full_attention"]

LIQUID = {"num_hidden_layers": 6, "block_auto_adjust_ff_dim": False, "initializer_range": 0.16, "layer_types": MIXED}
"""An std at which the convolutions add as much as the attention: their branch grows with its eighth power."""

RECURRENT_CASES: dict[str, Case] = {
    "lfm2": dense("short convolutions", **LIQUID),
    "lfm2_moe": dense("short convolutions", **LIQUID, num_dense_layers=2, num_experts=8, num_experts_per_tok=2,
                      moe_intermediate_size=128),
    "lfm3": dense("short convolutions, sandwich norms, windows", num_hidden_layers=6, head_dim=32,
                  sliding_window=WINDOW),
}  # fmt: skip
