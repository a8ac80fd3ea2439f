"""Decoders with learned, sinusoidal or ALiBi positions, and the older rotary ones."""

from __future__ import annotations

from typing import Any

from families.case import HEADS, LAYERS, LENGTH, STD, TOKENS, WIDTH, WINDOW, Case, dense

GPT: dict[str, Any] = {
    **TOKENS, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 2 * LENGTH, "initializer_range": STD,
}  # fmt: skip
BLOOM: dict[str, Any] = {
    **TOKENS, "hidden_size": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "initializer_range": STD,
}  # fmt: skip
MPT: dict[str, Any] = {
    **TOKENS, "d_model": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "max_seq_len": 2 * LENGTH,
    "initializer_range": STD,
}  # fmt: skip
OPT: dict[str, Any] = {
    **TOKENS, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "ffn_dim": 256,
    "max_position_embeddings": 2 * LENGTH, "init_std": STD, "word_embed_proj_dim": WIDTH,
}  # fmt: skip
LOCAL = [[["local", "global"], 1], [["local"], LAYERS - 2]]

LEARNED_CASES: dict[str, Case] = {
    "gpt2": Case(GPT, "small outputs"),
    "gpt-sw3": Case(GPT, "small outputs"),
    "gpt_neo": Case(
        {**TOKENS, "hidden_size": WIDTH, "num_layers": LAYERS, "num_heads": HEADS, "initializer_range": 0.4 * STD,
         "max_position_embeddings": 2 * LENGTH, "attention_types": LOCAL, "window_size": WINDOW},
        "windows, unscaled logits",
    ),
    "gpt_neox": dense("parallel branches"),
    "gpt_neox_japanese": dense(intermediate_multiple_size=2),
    "gptj": Case({**GPT, "rotary_dim": 16}, "parallel branches"),
    "codegen": Case({**GPT, "rotary_dim": 16}, "parallel branches"),
    "gpt_bigcode": Case(GPT, "small outputs"),
    "opt": Case(OPT),
    "opt-post-norm": Case({**OPT, "model_type": "opt", "do_layer_norm_before": False, "word_embed_proj_dim": 64},
                          "post-norm, projected embeddings"),
    "bloom": Case(BLOOM, "ALiBi"),
    "bloom-normed": Case({**BLOOM, "model_type": "bloom", "apply_residual_connection_post_layernorm": True}, "ALiBi"),
    "mpt": Case(MPT, "ALiBi"),
    "mpt-6-heads": Case({**MPT, "model_type": "mpt", "d_model": 192, "n_heads": 6, "initializer_range": STD / 1.5**0.5},
                        "ALiBi"),
    "falcon": dense("parallel branches", ffn_hidden_size=256),
    "falcon-new": dense("parallel branches", model_type="falcon", ffn_hidden_size=256, num_kv_heads=2,
                        new_decoder_architecture=True),
    "falcon-alibi": dense("ALiBi", model_type="falcon", num_attention_heads=8, ffn_hidden_size=256, alibi=True,
                          parallel_attn=False, multi_query=False),
    "xglm": Case(
        {**TOKENS, "d_model": WIDTH, "num_layers": LAYERS, "attention_heads": HEADS, "ffn_dim": 256,
         "max_position_embeddings": 2 * LENGTH, "init_std": STD},
        "embedding scale",
    ),
    "biogpt": dense("embedding scale"),
    "ctrl": Case({**GPT, "dff": 256}, "embedding scale"),
    "openai-gpt": Case(GPT, "post-norm"),
    "persimmon": dense(),
}  # fmt: skip
