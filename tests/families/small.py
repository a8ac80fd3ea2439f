"""Configs to measure of causal types that have no law, or whose own config is slow to differentiate."""

from __future__ import annotations

from typing import Any

BASE: dict[str, Any] = {
    "vocab_size": 64, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None, "hidden_size": 32,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 48,
    "initializer_range": 0.15, "max_position_embeddings": 64,
}  # fmt: skip
LINEAR, FULL, SLIDING, INDEXED = "linear_attention", "full_attention", "sliding_attention", "indexed_attention"
LATENT: dict[str, Any] = {
    "num_key_value_heads": 4, "kv_lora_rank": 8, "q_lora_rank": 12, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
    "v_head_dim": 8,
}  # fmt: skip
INDEX: dict[str, Any] = {"index_topk": 32, "index_head_dim": 8, "index_n_heads": 2}
ROUTED: dict[str, Any] = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
EXPERTS: dict[str, Any] = {
    "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
}  # fmt: skip
DELTA: dict[str, Any] = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
    "layer_types": [LINEAR, FULL],
}  # fmt: skip
KIMI: dict[str, Any] = {
    **LATENT, "q_lora_rank": None, "num_experts": 4, "num_experts_per_token": 2, "moe_intermediate_size": 16,
    "linear_head_dim": 8, "linear_num_heads": 4, "layer_types": [LINEAR, FULL], "mlp_layer_types": ["dense", "sparse"],
    "num_expert_group": 1, "topk_group": 1,
}  # fmt: skip
MAMBA: dict[str, Any] = {"state_size": 8, "time_step_rank": 4}
MAMBA2: dict[str, Any] = {
    "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_chunk_size": 8, "mamba_n_groups": 1,
}  # fmt: skip
VISION: dict[str, Any] = {
    "depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "patch_size": 4, "out_hidden_size": 32,
    "num_position_embeddings": 16,
}  # fmt: skip
DOTS: dict[str, Any] = {
    **BASE, **LATENT, **INDEX, **ROUTED, "head_dim": 12, "mlp_layer_types": ["dense", "sparse"],
    "layer_types": [INDEXED, SLIDING], "sliding_window": 4, "shared_experts_intermediate_size": 16,
    "per_layer_config": {},
}  # fmt: skip
GEMMA3N: dict[str, Any] = {
    **BASE, "intermediate_size": [48, 48], "layer_types": [SLIDING, FULL], "sliding_window": 4,
    "vocab_size_per_layer_input": 64, "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 0, "laurel_rank": 4,
    "activation_sparsity_pattern": [0.0, 0.0],
}  # fmt: skip
INKLING: dict[str, Any] = {
    **BASE, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "swa_head_dim": 8, "sliding_window_size": 4,
    "d_rel": 4, "rel_extent": 16, "layer_types": ["hybrid_sliding", "hybrid"], "unpadded_vocab_size": 64,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
}  # fmt: skip
QWEN4: dict[str, Any] = {
    **BASE, **EXPERTS, **DELTA, "hc_count": 2, "hc_lowrank": 4, "ple_embed_dim": 8, "ngram_vocab_size_base": 64,
    "split_ngram_parts": 1, "heads_per_ngram": 2, "make_ngram_vocab_size_divisible_by": 1, "indexer_n_heads": 2,
    "indexer_kv_heads": 1, "indexer_head_dim": 8, "indexer_budget": 32, "indexer_compress_ratio": 2,
}  # fmt: skip
DRAFT: dict[str, Any] = {**BASE, "sliding_window": 4, "layer_types": [SLIDING, FULL], "hidden_size_per_layer_input": 0,
                         "num_kv_shared_layers": 2, "vocab_size_per_layer_input": 0}  # fmt: skip
BERT: dict[str, Any] = {**BASE, "is_decoder": True, "pad_token_id": 1}
MUSIC: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 48,
    "num_codebooks": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 0,
}  # fmt: skip
TEXT_ENCODER: dict[str, Any] = {
    "model_type": "t5", "vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2,
}  # fmt: skip
AUDIO_ENCODER: dict[str, Any] = {
    "model_type": "encodec", "hidden_size": 8, "num_filters": 2, "codebook_size": 64, "codebook_dim": 8,
    "upsampling_ratios": [2, 2], "num_lstm_layers": 1,
}  # fmt: skip
BYTES: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4,
    "intermediate_size": 48, "head_dim": 8, "max_position_embeddings": 64,
}  # fmt: skip

SMALL: dict[str, dict[str, Any]] = {
    "axk2": {**BASE, **LATENT, **INDEX, **ROUTED, "mlp_layer_types": ["dense", "sparse"],
             "layer_types": [INDEXED] * 2, "gated_norm_rank": 4, "head_dim": 4},
    "bailing_hybrid": {**BASE, **KIMI, "layer_group_size": 2, "first_k_dense_replace": 1, "head_dim": 4},
    "bamba": {**BASE, **MAMBA2, "attn_layer_indices": [1]},
    "blt": {
        "vocab_size": 64, "patch_size": 2, "patching_mode": "space", "max_position_embeddings": 64, "cross_attn_k": 1,
        "encoder_hash_byte_group_size": [3], "encoder_hash_byte_group_vocab": 50, "local_attention_window_len": 16,
        "patcher_config": {**BYTES, "sliding_window": 16}, "global_config": BYTES, "decoder_config": {
            **BYTES, "hidden_size_global": 32, "cross_attn_k": 1}, "encoder_config": {
            **BYTES, "hidden_size_global": 32, "cross_attn_k": 1, "sliding_window": 16},
    },
    "cpmant": {"vocab_size": 64, "hidden_size": 32, "num_attention_heads": 4, "dim_head": 8, "dim_ff": 48,
               "num_hidden_layers": 2, "prompt_types": 2, "prompt_length": 2, "segment_types": 2},
    "deepseek_v4": {**BASE, **ROUTED, "num_key_value_heads": 1, "q_lora_rank": 12, "sliding_window": 8,
                    "layer_types": ["compressed_sparse_attention", "sliding_attention"], "hc_mult": 2, "o_groups": 2,
                    "o_lora_rank": 8, **INDEX, "mlp_layer_types": ["hash_moe", "moe"], "qk_rope_head_dim": 4,
                    "partial_rotary_factor": 0.5},
    "dory": {**BASE, "num_hidden_layers": 6, "n_input_layers": 2, "n_recurrent_layers": 2, "n_output_layers": 2,
             "n_recurrent_loops": 2, "sliding_window": 4,
             "layer_types": [SLIDING, "mlp", FULL, "mlp", SLIDING, "mlp"]},
    "dots3_note": {"text_config": {**DOTS, "model_type": "dots3_note_text"},
                   "vision_config": {"adapter_out_dim": 32}, "audio_config": {"adapter_out_dim": 32}},
    "dots3_note_text": DOTS,
    "falcon_h1": {**BASE, **MAMBA2, "mamba_d_ssm": 64},
    "falcon_mamba": {**BASE, **MAMBA, "intermediate_size": 64},
    "gemma3n": {"text_config": {**GEMMA3N, "model_type": "gemma3n_text", "pad_token_id": 0}},
    "gemma3n_text": {**GEMMA3N, "pad_token_id": 0},
    "gemma4_assistant": {"text_config": {**DRAFT, "model_type": "gemma4_text", "pad_token_id": 0},
                         "backbone_hidden_size": 32, "num_centroids": 4, "centroid_intermediate_top_k": 2},
    "gemma4_unified_assistant": {"text_config": {**DRAFT, "model_type": "gemma4_unified_text", "pad_token_id": 0},
                                 "backbone_hidden_size": 32, "num_centroids": 4, "centroid_intermediate_top_k": 2},
    "git": {**BASE, "pad_token_id": 1, "vision_config": {
        "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 16,
        "patch_size": 8}},
    "hrm_text": {**BASE, "num_hidden_layers": 2, "num_layers_per_stack": 1, "H_cycles": 1, "L_cycles": 2,
                 "L_bp_cycles": [2], "embedding_scale": 1.0},
    "hy_v4": {**BASE, **LATENT, **INDEX, **ROUTED, "mlp_layer_types": ["dense", "sparse"], "hc_mult": 2,
              "layer_types": [INDEXED] * 2, "indexer_types": ["full"] * 2, "head_dim": 4},
    "inkling_text": {**INKLING, "mlp_layer_types": ["dense", "sparse"]},
    "inkling2_text": {**INKLING, "n_layers_per_attn_res_block": 1},
    "inkling2_loop_text": {**INKLING, "num_hidden_layers": 4, "layer_types": ["hybrid_sliding", "hybrid"] * 2,
                           "n_layers_per_attn_res_block": 1, "loop_layer_index_start": 1, "loop_layer_index_end": 3,
                           "loop_num_passes": 2, "loop_gate_rank": 4},
    "jamba": {**BASE, "num_experts": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8,
              "mamba_dt_rank": 4, "use_mamba_kernels": False},
    "jetmoe": {**BASE, "kv_channels": 8, "num_local_experts": 4, "num_attention_heads": 4},
    "kimi_linear": {**BASE, **KIMI, "head_dim": 4},
    "lara_mini": {**BASE, **EXPERTS, **DELTA, "layer_types": [LINEAR, SLIDING], "sliding_window": 4},
    "longcat_flash": {**BASE, **LATENT, "num_layers": 1, "num_hidden_layers": 2, "ffn_hidden_size": 48,
                      "n_routed_experts": 4, "moe_topk": 2, "zero_expert_num": 2, "expert_ffn_hidden_size": 16,
                      "head_dim": 4},
    "mamba": {**BASE, **MAMBA, "intermediate_size": 64},
    "mamba2": {**BASE, "num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 1, "chunk_size": 8},
    "minimax_m3_vl_text": {**BASE, "num_local_experts": 4, "num_experts_per_tok": 2, "dense_intermediate_size": 48,
                           "shared_intermediate_size": 16, "rotary_dim": 4, "index_n_heads": 2, "index_head_dim": 8,
                           "index_block_size": 4, "mlp_layer_types": ["dense", "sparse"], "layer_types": [FULL] * 2},
    "musicgen": {"text_encoder": TEXT_ENCODER, "audio_encoder": AUDIO_ENCODER,
                 "decoder": {**MUSIC, "model_type": "musicgen_decoder"}},
    "musicgen_melody": {"text_encoder": TEXT_ENCODER, "audio_encoder": AUDIO_ENCODER,
                        "decoder": {**MUSIC, "model_type": "musicgen_melody_decoder"}},
    "nemotron_h": {**BASE, "num_hidden_layers": 3, "layers_block_type": [LINEAR, FULL, "mlp"], "ssm_state_size": 8,
                   "mamba_num_heads": 8, "mamba_head_dim": 8, "n_groups": 1, "chunk_size": 8,
                   "use_mamba_kernels": False, **ROUTED, "moe_shared_expert_intermediate_size": 16},
    "olmo_hybrid": {**BASE, **DELTA, "linear_num_key_heads": 4, "num_key_value_heads": 4},
    "prophetnet": {"vocab_size": 64, "hidden_size": 32, "decoder_ffn_dim": 48, "encoder_ffn_dim": 48, "init_std": 0.15,
                   "num_encoder_layers": 1, "num_decoder_layers": 2, "num_encoder_attention_heads": 4,
                   "num_decoder_attention_heads": 4, "max_position_embeddings": 64, "num_buckets": 8,
                   "add_cross_attention": False, "is_decoder": True, "is_encoder_decoder": False},
    "qwen3_5_text": {**BASE, **DELTA},
    "qwen3_5_moe_text": {**BASE, **DELTA, **EXPERTS},
    "qwen3_5": {"text_config": {**BASE, **DELTA, "model_type": "qwen3_5_text"}, "vision_config": VISION},
    "qwen3_5_moe": {"text_config": {**BASE, **DELTA, **EXPERTS, "model_type": "qwen3_5_moe_text"},
                    "vision_config": VISION},
    "qwen3_next": {**BASE, **DELTA, **EXPERTS},
    "qwen4_exp_text": QWEN4,
    "qwen4_exp": {"text_config": {**QWEN4, "model_type": "qwen4_exp_text"}, "vision_config": VISION},
    "recurrent_gemma": {**BASE, "num_hidden_layers": 3, "lru_width": 32, "attention_window_size": 4,
                        "conv1d_width": 4},
    "reformer": {
        "vocab_size": 64, "hidden_size": 32, "num_attention_heads": 4, "attention_head_size": 8, "is_decoder": True,
        "feed_forward_size": 48, "attn_layers": ["local", "lsh"], "axial_pos_embds": False, "num_buckets": 4,
        "max_position_embeddings": 64, "local_attn_chunk_length": 4, "lsh_attn_chunk_length": 4, "hash_seed": 0,
        "initializer_range": 0.15,
    },
    "roc_bert": {**BERT, "pronunciation_embed_dim": 8, "pronunciation_vocab_size": 16, "shape_embed_dim": 8,
                 "shape_vocab_size": 16},
    "rwkv": {**BASE, "context_length": 64, "attention_hidden_size": 32},
    "whisper": {"vocab_size": 64, "d_model": 32, "decoder_layers": 2, "encoder_layers": 1, "decoder_ffn_dim": 48,
                "decoder_attention_heads": 4, "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "init_std": 0.15,
                "max_target_positions": 64, "num_mel_bins": 8, "max_source_positions": 16, "pad_token_id": 0,
                "bos_token_id": 0, "eos_token_id": 0, "decoder_start_token_id": 0},
    "xlnet": {"vocab_size": 64, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, "d_head": 8,
              "attn_type": "uni", "initializer_range": 0.15},
    "xlstm": {**BASE, "embedding_dim": 32, "num_blocks": 2, "num_heads": 4, "chunk_size": 8,
              "ffn_round_up_to_multiple_of": 8, "autocast_kernel_dtype": "float32"},
    "xmod": {**BERT, "languages": ["en_XX"], "default_language": "en_XX"},
    "zamba": {**BASE, "attention_hidden_size": 64, "attention_head_dim": 16, "num_hidden_layers": 4,
              "num_key_value_heads": 4, "layers_block_type": [LINEAR, "hybrid", LINEAR, "hybrid"], "n_mamba_heads": 2,
              "mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False},
    "zamba2": {**BASE, "num_hidden_layers": 3, "layers_block_type": [LINEAR, "hybrid", LINEAR], "mamba_d_state": 8,
               "n_mamba_heads": 8, "num_key_value_heads": 4, "chunk_size": 8, "use_mamba_kernels": False,
               "adapter_rank": 4, "mamba_ngroups": 1},
    "zaya": {**BASE, "moe_intermediate_size": 16, "num_experts": 4, "router_hidden_size": 8,
             "layer_types": ["hybrid"] * 2},
}  # fmt: skip
"""Model type to config; other types are measured from a quarter of their config in ``TINY``."""
