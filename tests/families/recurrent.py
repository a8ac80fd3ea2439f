"""Decoders that mix positions by short convolutions, linear attention or state spaces beside attention."""

from __future__ import annotations

from families.case import WINDOW, Case, dense

MIXED = ["conv", "conv", "full_attention", "conv", "conv", "full_attention"]

LIQUID = {"num_hidden_layers": 6, "block_auto_adjust_ff_dim": False, "initializer_range": 0.16, "layer_types": MIXED}
"""An std at which the convolutions add as much as the attention: their branch grows with its eighth power."""

MAMBA = {"num_hidden_layers": 6, "mamba_n_heads": 16, "mamba_d_state": 32, "mamba_chunk_size": 64}

SELECTIVE = {"num_hidden_layers": 4, "state_size": 16, "time_step_rank": 8, "initializer_range": 0.1,
             "intermediate_size": 256}  # fmt: skip

RECURRENT_CASES: dict[str, Case] = {
    "lfm2": dense("short convolutions", **LIQUID),
    "lfm2_moe": dense("short convolutions", **LIQUID, num_dense_layers=2, num_experts=8, num_experts_per_tok=2,
                      moe_intermediate_size=128),
    "lfm3": dense("short convolutions, sandwich norms, windows", num_hidden_layers=6, head_dim=32,
                  sliding_window=WINDOW),
    "minimax": dense("linear attention, norms inside the residual", num_attention_heads=16, head_dim=16,
                     num_local_experts=4, num_experts_per_tok=2, intermediate_size=128,
                     layer_types=["linear_attention"] * 3 + ["full_attention"]),
    "bamba": dense("state spaces", **MAMBA, attn_layer_indices=[2, 5]),
    "falcon_h1": dense("state spaces beside attention", **MAMBA, mamba_d_ssm=256),
    "nemotron_h": dense("state spaces, one branch per layer", head_dim=32, mamba_num_heads=16, mamba_head_dim=16,
                        n_groups=2, ssm_state_size=32, chunk_size=64, n_routed_experts=8, moe_intermediate_size=128,
                        moe_shared_expert_intermediate_size=128,
                        layers_block_type=["linear_attention", "moe", "full_attention", "mlp"] * 2),
    "nemotron_h-latent": dense("experts between two maps", model_type="nemotron_h", head_dim=32, mamba_num_heads=16,
                               mamba_head_dim=16, n_groups=2, ssm_state_size=32, chunk_size=64, n_routed_experts=8,
                               moe_intermediate_size=256, moe_shared_expert_intermediate_size=64, moe_latent_size=192,
                               routed_scaling_factor=2.5,
                               layers_block_type=["linear_attention", "moe", "full_attention", "moe"] * 2),
    "recurrent_gemma": dense("gated recurrences, windows", num_hidden_layers=6, lru_width=256, initializer_range=None,
                             intermediate_size=512, attention_window_size=WINDOW, w_init_variance_scale=0.1),
    "mamba": dense("selective state spaces", **SELECTIVE),
    "mamba-strong": dense("selective state spaces", model_type="mamba", **{**SELECTIVE, "initializer_range": 0.245}),
    "falcon_mamba": dense("selective state spaces", **SELECTIVE),
    "falcon_mamba-strong": dense("selective state spaces", model_type="falcon_mamba",
                                 **{**SELECTIVE, "initializer_range": 0.245}),
    "granitemoehybrid-mamba": dense("multipliers, state spaces", model_type="granitemoehybrid", **MAMBA,
                                    num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=256,
                                    attention_multiplier=32**-0.5, residual_multiplier=0.6, embedding_multiplier=3,
                                    layer_types=["mamba", "mamba", "attention"] * 2),
}  # fmt: skip
