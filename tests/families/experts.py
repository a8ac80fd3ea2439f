"""Mixtures of experts."""

from __future__ import annotations

from typing import Any

from families.case import HEADS, LAYERS, LENGTH, STD, TOKENS, WIDTH, WINDOW, Case, dense

FULL, SLIDING = "full_attention", "sliding_attention"
ALTERNATING = [SLIDING, FULL] * (LAYERS // 2)
WINDOWED: dict[str, Any] = {"sliding_window": WINDOW, "layer_types": ALTERNATING}

EIGHT: dict[str, Any] = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128}
ROUTED: dict[str, Any] = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128}
LOCAL: dict[str, Any] = {"num_local_experts": 8, "num_experts_per_tok": 2}
GRANITE: dict[str, Any] = {
    "num_local_experts": 8, "attention_multiplier": 32**-0.5, "residual_multiplier": 0.4, "embedding_multiplier": 12.0,
}  # fmt: skip
LLAMA4: dict[str, Any] = {
    "head_dim": 32, "num_local_experts": 8, "num_experts_per_tok": 2, "intermediate_size_mlp": 256,
    "attention_chunk_size": WINDOW, "interleave_moe_layer_step": 1,
}  # fmt: skip

EXPERT_CASES: dict[str, Case] = {
    "mixtral": dense("window", sliding_window=WINDOW, **LOCAL),
    "minimax_m2": dense("experts", head_dim=32, rotary_dim=16, **LOCAL),
    "phimoe": dense("experts", num_local_experts=8),
    "qwen2_moe": dense(**EIGHT, shared_expert_intermediate_size=128, decoder_sparse_step=1, norm_topk_prob=True),
    "qwen2_moe-unnormalised": dense(
        "windows", model_type="qwen2_moe", **EIGHT, shared_expert_intermediate_size=128, use_sliding_window=True,
        sliding_window=WINDOW, max_window_layers=1,
    ),
    "qwen3_moe": dense(head_dim=32, **EIGHT, norm_topk_prob=True, mlp_only_layers=[1]),
    "mellum": dense("windows", head_dim=32, **EIGHT, **WINDOWED),
    "flint": dense("windows, sinks", head_dim=32, **EIGHT, sliding_window=WINDOW, shared_expert_intermediate_size=128,
                   layer_types=[SLIDING, FULL, SLIDING, SLIDING]),
    "olmoe": dense(num_experts=8, num_experts_per_tok=2, norm_topk_prob=True),
    "flex_olmo": dense("norms behind the branches", num_experts=8, num_experts_per_tok=2, norm_topk_prob=True),
    "granitemoe": dense("multipliers", **GRANITE),
    "granitemoeshared": dense("multipliers", **GRANITE, shared_intermediate_size=128),
    "granitemoe_swa": dense("multipliers, windows, sinks", **GRANITE, shared_intermediate_size=128,
                            sliding_window=WINDOW),
    "granitemoehybrid": dense("multipliers", **GRANITE, shared_intermediate_size=128, mamba_n_heads=8,
                              layer_types=["attention"] * LAYERS),
    "gpt_oss": dense("windows, sinks", head_dim=32, sliding_window=WINDOW, **LOCAL, layer_types=[SLIDING] * 3 + [FULL],
                     rope_parameters={"rope_type": "default", "rope_theta": 1e4}),
    "ernie4_5_moe": dense("experts", moe_intermediate_size=128, moe_num_experts=8, moe_k=2),
    "hunyuan_v1_moe": dense(head_dim=32, num_experts=8, moe_topk=2),
    "aria_text": dense("experts", moe_num_experts=8, moe_topk=2),
    "glm4_moe": dense("experts", head_dim=32, **ROUTED, n_group=2, topk_group=1, routed_scaling_factor=2.5),
    "sarvam_moe": dense("experts", head_dim=32, **ROUTED, use_qk_norm=True),
    "solar_open": dense(head_dim=32, **ROUTED),
    "dots1": dense("windows", **ROUTED, n_shared_experts=1, first_k_dense_replace=1, sliding_window=WINDOW,
                   max_window_layers=1, norm_topk_prob=True),
    "exaone_moe": dense("windows", **EIGHT, sliding_window=WINDOW),
    "hy_v3": dense("experts", head_dim=32, **EIGHT),
    "afmoe": dense("sandwich norms, windows", head_dim=32, **EIGHT, sliding_window=WINDOW, mup_enabled=True,
                   layer_types=[SLIDING] * LAYERS),
    "laguna": dense("windows", head_dim=32, **EIGHT, **WINDOWED, shared_expert_intermediate_size=128,
                    num_attention_heads_per_layer=[4, 8, 4, 8]),
    "llama4_text": dense("chunks", **LLAMA4),
    "llama4": Case({
        "text_config": {**dense(**LLAMA4).config, "model_type": "llama4_text", "pad_token_id": 0},
        "vision_config": {"hidden_size": 16, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
                          "image_size": 28, "patch_size": 14, "vision_output_dim": 16, "projector_input_dim": 16,
                          "projector_output_dim": 16},
    }, "chunks"),
    "cohere2_moe": dense("parallel branches, windows", head_dim=32, num_experts=8, num_experts_per_tok=2,
                         num_shared_experts=1, sliding_window=WINDOW, first_k_dense_replace=1,
                         prefix_dense_intermediate_size=256),
    "mimo_v2_flash": dense("windows, sinks", head_dim=32, **ROUTED, v_head_dim=16, sliding_window=WINDOW),
    "dbrx": Case({
        **TOKENS, "d_model": WIDTH, "n_heads": HEADS, "n_layers": LAYERS, "max_seq_len": 2 * LENGTH,
        "initializer_range": STD, "attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 1e4},
        "ffn_config": {"ffn_hidden_size": 128, "moe_num_experts": 8, "moe_top_k": 2},
    }),
    "kolibri1": dense("windows", head_dim=32, moe_intermediate_size=128, **LOCAL, sliding_window=WINDOW,
                      shared_expert_intermediate_size=128),
    "beam": dense("windows", head_dim=32, **EIGHT, n_group=2, topk_group=1, **WINDOWED),
}  # fmt: skip
