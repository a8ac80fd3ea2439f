"""A tokenizer of single bytes, for pictures of networks that are trained on the spot."""

from __future__ import annotations

from pathlib import Path


def write_tokenizer(folder: Path) -> None:
    """Put a tokenizer of 256 bytes into ``folder``."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {byte: n for n, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    bytewise = Tokenizer(models.BPE(vocabulary, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    held = PreTrainedTokenizerFast(tokenizer_object=bytewise)  # type: ignore[no-untyped-call]  # transformers has none
    held.save_pretrained(str(folder))
