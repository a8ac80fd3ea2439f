"""Dense decoders with softmax attention and rotary positions."""

from __future__ import annotations

from families.case import DENSE, LAYERS, STD, TOKENS, WIDTH, WINDOW, Case, dense

FULL, SLIDING = "full_attention", "sliding_attention"
MIXED = [SLIDING, FULL, SLIDING, SLIDING]
TEXT = {**DENSE, "head_dim": 32}

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
    "glm": dense(head_dim=32),
    "glm4": dense("sandwich norms", head_dim=32),
    "granite": dense("multipliers", embedding_multiplier=12.0, residual_multiplier=0.4, attention_multiplier=32**-0.5),
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
    "gemma3": Case(
        {"text_config": {**TEXT, "model_type": "gemma3_text", "query_pre_attn_scalar": 64, "sliding_window": WINDOW,
                         "sliding_window_pattern": 2},
         "vision_config": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
                           "num_attention_heads": 2, "image_size": 28, "patch_size": 14, "model_type":
                           "siglip_vision_model"}, "mm_tokens_per_image": 4},
        "sandwich norms, windows",
    ),
    "gpt2": Case({**TOKENS, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": 4, "n_positions": 128,
                  "initializer_range": STD}, "small outputs"),
}  # fmt: skip
