"""Model types that are refused by name, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

RECURRENT = "what mixes its positions is a recurrence ({}), whose second moment this version does not hold"

HYBRID = "some of its layers mix positions by a recurrence ({}), whose second moment this version does not hold"

REFUSALS: Mapping[str, str] = {
    "mamba2": RECURRENT.format("a selective state space"),
    "rwkv": RECURRENT.format("decaying sums of keys and values"),
    "xlstm": RECURRENT.format("matrix memories with exponential gates"),
    "jamba": HYBRID.format("Mamba"),
    "zamba": HYBRID.format("Mamba"),
    "zamba2": HYBRID.format("Mamba 2"),
    "bailing_hybrid": HYBRID.format("the gated delta rule per channel"),
    "qwen3_next": HYBRID.format("the gated delta rule"),
    "qwen3_5": HYBRID.format("the gated delta rule"),
    "qwen3_5_text": HYBRID.format("the gated delta rule"),
    "qwen3_5_moe": HYBRID.format("the gated delta rule"),
    "qwen3_5_moe_text": HYBRID.format("the gated delta rule"),
    "qwen4_exp": HYBRID.format("the gated delta rule"),
    "qwen4_exp_text": HYBRID.format("the gated delta rule"),
    "olmo_hybrid": HYBRID.format("the gated delta rule"),
    "lara_mini": HYBRID.format("the gated delta rule"),
    "kimi_linear": HYBRID.format("the gated delta rule per channel"),
    "zaya": "convolutions over positions make its queries, keys and values before attention",
    "inkling_text": "short convolutions and learned relative positions act beside its attention",
    "inkling2_text": "short convolutions, relative positions and sums over earlier layers act beside its attention",
    "inkling2_loop_text": "it runs its layers in loops, with short convolutions and relative positions in them",
    "hrm_text": "it runs two stacks of layers in nested loops, so that the same weights meet a token again and again",
    "dory": "it runs its middle layers in loops, so that the same weights meet a token again and again",
    "deepseek_v4": "its attention sees compressed blocks chosen by the data, over several residual streams",
    "hy_v4": "it keeps several residual streams, mixed by gates of the data",
    "axk2": "gates of low rank stand in its norms, which this description cannot hold",
    "minimax_m3_vl_text": "its attention sees blocks of keys that the data chooses",
    "dots3_note": "its attention sees keys that the data chooses, with gates that this description cannot hold",
    "dots3_note_text": "its attention sees keys that the data chooses, with gates that this description cannot hold",
    "jetmoe": "a router chooses its attention heads for every token",
    "longcat_flash": "its experts' outputs are added two branches later, and some experts pass the token on unchanged",
    "reformer": "its attention sees keys that hash like the query, over two reversible streams",
    "xlnet": "its scores see relative positions, and it attends in both directions unless a permutation masks it",
    "prophetnet": "it predicts several tokens ahead with a stream each, and its scores see relative positions",
    "cpmant": "32 prompt vectors stand in front of every text, and learned biases of the distance act on its scores",
    "blt": "it groups bytes into patches of varying length by the data",
    "roc_bert": "its embeddings join a token's shape and pronunciation, which vectors fed in their place leave out",
    "xmod": "adapters per language stand behind each of its layers",
    "git": "it is a decoder for images: a vision encoder's states stand in front of the text",
    "whisper": "its decoder needs an encoder's states of sound",
    "musicgen": "its decoder needs a text encoder's states, and reads several codebooks per position",
    "musicgen_melody": "its decoder reads several codebooks per position behind a text and a melody",
    "gemma3n": "it keeps several residual streams that predict each other, and embeddings per layer",
    "gemma3n_text": "it keeps several residual streams that predict each other, and embeddings per layer",
    "gemma4_assistant": "it drafts tokens from another model's states, keys and values",
    "gemma4_unified_assistant": "it drafts tokens from another model's states, keys and values",
}
"""Model type to reason; a type is either here or has a family."""
