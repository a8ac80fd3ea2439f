"""Tokenizers made in memory: whole words, or single bytes; with or without special tokens around a text."""

from __future__ import annotations

from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors


def word_tokenizer(words: int = 1000, *, template: str | None = None, bos: bool = True) -> Any:
    """The words w0, w1, ... are tokens; ``template`` such as "<s> $A" is what the tokenizer adds around a text."""
    special = ["<unk>", "<s>", "</s>"]
    vocabulary = {word: number for number, word in enumerate([*special, *(f"w{n}" for n in range(words))])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return _wrap(tokenizer, template, bos)


def byte_tokenizer(*, template: str | None = None, bos: bool = True) -> Any:
    """Every byte is a token, pairs of equal letters merge; "<s>" in a text can be read as BOS."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [(letter, letter) for letter in "abcdefgh"]
    vocabulary = {t: n for n, t in enumerate(["<unk>", "<s>", "</s>", *alphabet, *(a + b for a, b in pairs)])}
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _wrap(tokenizer, template, bos)


def _wrap(tokenizer: Tokenizer, template: str | None, bos: bool) -> Any:
    from transformers import PreTrainedTokenizerFast

    tokenizer.add_special_tokens(["<s>", "</s>"])
    if template is not None:
        named = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")]
        tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=named)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>", **({"bos_token": "<s>"} if bos else {})
    )
