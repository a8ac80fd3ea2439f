"""Multi-head latent attention."""

from __future__ import annotations

from typing import Any

from families.case import HEADS, Case, dense

LATENT: dict[str, Any] = {
    "num_key_value_heads": HEADS, "kv_lora_rank": 32, "q_lora_rank": 96, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
    "v_head_dim": 32,
}  # fmt: skip
EXPERTS: dict[str, Any] = {"moe_intermediate_size": 128, "n_routed_experts": 8, "num_experts_per_tok": 2}
GROUPS: dict[str, Any] = {**EXPERTS, "n_group": 2, "topk_group": 1}
INDEX: dict[str, Any] = {"index_topk": 256, "index_head_dim": 16, "index_n_heads": 2}

LATENT_CASES: dict[str, Case] = {
    "deepseek_v2": dense(**LATENT, **EXPERTS, first_k_dense_replace=1, topk_method="greedy"),
    "deepseek_v2-groups": dense(model_type="deepseek_v2", **{**LATENT, "q_lora_rank": None}, **GROUPS,
                                topk_method="group_limited_greedy"),
    "deepseek_v3": dense("latents, experts", **LATENT, **GROUPS, first_k_dense_replace=1),
    "deepseek_v32": dense("latents, experts", **LATENT, **GROUPS, **INDEX, first_k_dense_replace=1),
    "glm_moe_dsa": dense("latents, experts", **LATENT, **GROUPS, **INDEX, first_k_dense_replace=1),
    "glm4_moe_lite": dense(**LATENT, **GROUPS),
    "axk1": dense("latents, experts", **LATENT, **GROUPS),
    "sarvam_mla": dense("latents, experts", **LATENT, **GROUPS),
    "minicpm3": dense("multipliers", **LATENT),
    "youtu": dense("latents", **LATENT),
}  # fmt: skip
