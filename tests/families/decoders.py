"""Encoders of the BERT kind and decoders of encoder-decoders, built as causal decoders of their own."""

from __future__ import annotations

from typing import Any

from families.case import DENSE, HEADS, LAYERS, LENGTH, STD, TOKENS, WIDTH, WINDOW, Case

WIDE, STD_WIDE = 2 * WIDTH, STD / 2**0.5
"""Twice the usual width at the same logit variance: a post-norm stream passes eight norms, each of which takes two of
d directions from the gradient, which the law leaves out."""

BERT: dict[str, Any] = {
    **DENSE, "is_decoder": True, "pad_token_id": 1, "hidden_size": WIDE, "intermediate_size": 512,
    "initializer_range": STD_WIDE,
}  # fmt: skip
BART: dict[str, Any] = {
    **TOKENS, "d_model": WIDE, "decoder_layers": LAYERS, "decoder_attention_heads": HEADS, "decoder_ffn_dim": 512,
    "encoder_layers": 1, "encoder_attention_heads": HEADS, "max_position_embeddings": 2 * LENGTH, "init_std": STD_WIDE,
    "pad_token_id": 1, "eos_token_id": 2,
}  # fmt: skip

POST = "post-norm"

DECODER_CASES: dict[str, Case] = {
    **{kind: Case(BERT, POST) for kind in (
        "bert", "roberta", "camembert", "xlm-roberta", "data2vec-text", "ernie", "bert-generation",
    )},
    "roberta-prelayernorm": Case(BERT, "norm behind the embedding"),
    **{kind: Case(BERT, "a vector shared by all tokens") for kind in ("megatron-bert", "xlm-roberta-xl")},
    "big_bird": Case({**BERT, "attention_type": "original_full", "rescale_embeddings": True}, POST),
    "electra": Case({**BERT, "embedding_size": 64}, POST),
    "rembert": Case({**BERT, "input_embedding_size": 64, "output_embedding_size": 64}, POST),
    "roformer": Case({**BERT, "embedding_size": 64}, POST),
    **{kind: Case(BART, POST) for kind in ("bart", "plbart", "mvp", "blenderbot-small")},
    "blenderbot": Case(BART),
    "mbart": Case(BART, "norm behind the embedding"),
    "bigbird_pegasus": Case(BART, "embedding scale"),
    "pegasus": Case(BART, "sinusoidal positions"),
    "marian": Case({**BART, "decoder_vocab_size": 16, "scale_embedding": True}, POST),
    "trocr": Case(BART, POST),
    "xlm": Case(
        {"emb_dim": WIDE, "n_layers": LAYERS, "n_heads": HEADS, "n_words": 16, "max_position_embeddings": 2 * LENGTH,
         "init_std": STD_WIDE, "causal": True}, POST,
    ),
    "moshi": Case({**DENSE, "ffn_dim": 512, "sliding_window": WINDOW}),
    "modernbert-decoder": Case(
        {**DENSE, "num_hidden_layers": 6, "initializer_range": STD / 0.88, "local_attention": 2 * WINDOW,
         "pad_token_id": 0},
        "windows, small outputs",
    ),
}  # fmt: skip
