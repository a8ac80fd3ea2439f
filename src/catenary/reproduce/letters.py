"""A tokenizer without a vocabulary to learn: every byte is a token."""

from __future__ import annotations

from typing import Any


def byte_tokenizer() -> Any:
    """256 tokens, one a byte of UTF-8, in an order of its own; nothing opens a window."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = {letter: index for index, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    plain = Tokenizer(models.BPE(vocab=letters, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    plain.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=plain)  # type: ignore[no-untyped-call]
