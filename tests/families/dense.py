"""Dense decoders with softmax attention and rotary positions."""

from __future__ import annotations

from families.case import DENSE, STD, WINDOW, Case, dense

FULL, SLIDING = "full_attention", "sliding_attention"
MIXED = [SLIDING, FULL, SLIDING, SLIDING]
TEXT = {**DENSE, "head_dim": 32}
GEMMA4 = {**DENSE, "head_dim": 16, "global_head_dim": 32, "sliding_window": WINDOW, "layer_types": [*MIXED[:3], FULL]}

DENSE_CASES: dict[str, Case] = {
    "llama": dense(),
    "exaone": dense(),
    "iquestcoder": dense(),
    "seed_oss": dense(head_dim=32),
    "internlm3": dense(head_dim=32),
    "ernie4_5": dense(head_dim=32),
    "helium": dense(head_dim=32),
    "hunyuan_v1_dense": dense(head_dim=32),
    "doge": dense(),
    "arcee": dense(),
    "apertus": dense(),
    "apertus1p5_text": dense(),
    "mistral": dense("window", sliding_window=WINDOW),
    "ministral3": dense("window", sliding_window=WINDOW, head_dim=32),
    "phi3": dense("window", sliding_window=WINDOW),
    "ministral": dense("windows in some layers", sliding_window=WINDOW, layer_types=MIXED, head_dim=32),
    "cwm": dense("windows in three of four layers", sliding_window=WINDOW, head_dim=32),
    "smollm3": dense("windows in layers without rotation", sliding_window=WINDOW, use_sliding_window=True,
                     no_rope_layers=[0, 1, 0, 0]),
    "qwen2": dense("windows in the upper layers", sliding_window=WINDOW, use_sliding_window=True, max_window_layers=1),
    "qwen3": dense("windows in the upper layers", sliding_window=WINDOW, use_sliding_window=True, max_window_layers=0,
                   head_dim=32),
    "gemma": dense("embedding scale", head_dim=32),
    "gemma2": dense("sandwich norms, windows", head_dim=32, query_pre_attn_scalar=32, sliding_window=WINDOW),
    "gemma3_text": dense("sandwich norms, windows", head_dim=32, query_pre_attn_scalar=64, sliding_window=WINDOW,
                         sliding_window_pattern=2),
    "vaultgemma": dense("windows, embedding scale", head_dim=32, query_pre_attn_scalar=32, sliding_window=WINDOW),
    "gemma4_text": Case({**GEMMA4, "hidden_size_per_layer_input": 0}, "sandwich norms, windows"),
    "gemma4_unified_text": Case(GEMMA4, "sandwich norms, windows"),
    "gemma4": Case(
        {"text_config": {**GEMMA4, "model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "pad_token_id": 0},
         "vision_config": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                           "num_key_value_heads": 2, "head_dim": 8, "patch_size": 4, "pooling_kernel_size": 1,
                           "position_embedding_size": 16}, "audio_config": None},
        "sandwich norms, windows",
    ),
    "gemma4_unified": Case(
        {"text_config": {**GEMMA4, "model_type": "gemma4_unified_text", "pad_token_id": 0}, "vision_config": None,
         "audio_config": None},
        "sandwich norms, windows",
    ),
    "glm": dense(head_dim=32),
    "glm4": dense("sandwich norms", head_dim=32),
    "granite": dense("multipliers", embedding_multiplier=12.0, residual_multiplier=0.4, attention_multiplier=32**-0.5),
    "granite_swa": dense("windows, sinks, multipliers", embedding_multiplier=12.0, residual_multiplier=0.4,
                         attention_multiplier=32**-0.5, sliding_window=WINDOW, layer_types=MIXED,
                         layer_rope_theta=[1e4, 0.0, 1e4, 1e4]),
    "diffllama": dense("differences of attention maps", num_key_value_heads=4),
    "hyperclovax": dense("sandwich norms, multipliers", embedding_multiplier=12.0, residual_multiplier=0.3),
    "cohere": dense("parallel branches"),
    "cohere2": dense("parallel branches, windows", sliding_window=WINDOW, sliding_window_pattern=2),
    "cohere_compass_text": dense("parallel branches, windows", sliding_window=WINDOW, layer_types=MIXED,
                                 rope_parameters={SLIDING: {"rope_type": "default", "rope_theta": 1e4}, FULL: None}),
    "olmo": dense(),
    "olmo2": dense("norms behind the branches"),
    "olmo3": dense("norms behind the branches, windows", sliding_window=WINDOW),
    "exaone4": dense("norms behind the branches, windows", sliding_window=WINDOW, sliding_window_pattern=2),
    "nemotron": dense(initializer_range=STD / 2),
    "jais2": dense(),
    "starcoder2": dense("window", sliding_window=WINDOW),
    "stablelm": dense("parallel branches", use_parallel_residual=True),
    "phi": dense("parallel branches"),
    "bitnet": dense("norms in front of the last matrices", intermediate_size=1024),
    "nanochat": dense("norm behind the embedding, small attention outputs"),
    "emu3": Case({"text_config": {**DENSE, "model_type": "emu3_text_model", "pad_token_id": 0}}),
    "mllama": Case({
        "text_config": {**DENSE, "model_type": "mllama_text_model", "num_hidden_layers": 5,
                        "cross_attention_layers": [2], "pad_token_id": 0, "rope_parameters": {"rope_type": "default",
                        "rope_theta": 1e4}},
        "vision_config": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_global_layers": 1,
                          "attention_heads": 2, "image_size": 28, "patch_size": 14, "vision_output_dim": 32,
                          "intermediate_layers_indices": [0]},
    }),
    "fuyu": Case({"text_config": {**DENSE, "model_type": "persimmon"}}),
    "got_ocr2": Case({
        "text_config": {**DENSE, "model_type": "qwen2"}, "image_token_index": 3,
        "vision_config": {"hidden_size": 16, "output_channels": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                          "image_size": 32, "patch_size": 16, "mlp_dim": 16, "window_size": 2},
    }),
    "moss_transcribe_diarize": Case({
        "text_config": {**DENSE, "model_type": "qwen3", "head_dim": 32},
        "audio_config": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16},
    }),
    "phi4_multimodal": dense("window", sliding_window=WINDOW, vision_config={
        "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
        "image_size": 28, "crop_size": 28, "patch_size": 14,
    }, audio_config={"hidden_size": 16, "intermediate_size": 16, "num_blocks": 1, "num_attention_heads": 2,
                     "ext_pw_out_channel": 16, "nemo_conv_channels": 16}),
    "gemma3": Case(
        {"text_config": {**TEXT, "model_type": "gemma3_text", "query_pre_attn_scalar": 64, "sliding_window": WINDOW,
                         "sliding_window_pattern": 2},
         "vision_config": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
                           "num_attention_heads": 2, "image_size": 28, "patch_size": 14, "model_type":
                           "siglip_vision_model"}, "mm_tokens_per_image": 4},
        "sandwich norms, windows",
    ),
}  # fmt: skip
