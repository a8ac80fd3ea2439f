"""Tokens and what opens a window: offsets, BOS policies, and texts cut at a bounded length."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catenary.errors import InvalidInput
from catenary.text.tokenise import MARGIN, open_with, opening, tokenise_text
from small_tokenizers import byte_tokenizer, word_tokenizer

BOS, EOS = 1, 2


@pytest.mark.parametrize(
    ("template", "bos", "policy", "ids", "dropped"),
    [
        (None, True, "tokenizer", (), ()),
        (None, True, "none", (), ()),
        (None, True, "one", (BOS,), ()),
        ("<s> $A", True, "tokenizer", (BOS,), ()),
        ("<s> $A", True, "none", (), ()),
        ("<s> $A", True, "one", (BOS,), ()),
        ("<s> <s> $A", True, "tokenizer", (BOS,), ()),
        ("</s> <s> <s> $A", True, "tokenizer", (EOS, BOS), ()),
        ("<s> $A </s>", True, "tokenizer", (BOS,), (EOS,)),
        (None, False, "tokenizer", (), ()),
        (None, False, "none", (), ()),
    ],
)
@pytest.mark.parametrize("make", [word_tokenizer, byte_tokenizer])
def test_an_opening_follows_its_policy_and_has_at_most_one_bos(
    make: Any, template: str | None, bos: bool, policy: Any, ids: tuple[int, ...], dropped: tuple[int, ...]
) -> None:
    found = opening(make(template=template, bos=bos), policy)
    assert (found.ids, found.dropped, found.bos, found.policy) == (ids, dropped, ids.count(BOS), policy)


def test_no_bos_is_invented_and_an_unknown_policy_is_named() -> None:
    with pytest.raises(InvalidInput, match="'one' only if the tokenizer has a BOS token, got None"):
        opening(word_tokenizer(bos=False), "one")
    with pytest.raises(InvalidInput, match="unknown bos 'two'"):
        opening(word_tokenizer(), "two")  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["tokenizer", "one"])
@pytest.mark.parametrize("rendered", ["w1 w2", "<s> w1 w2", "<s> <s> w1 w2"])
def test_a_template_that_renders_bos_gives_exactly_one(policy: Any, rendered: str) -> None:
    tokenizer = word_tokenizer(template="<s> $A")
    tokens = tokenise_text(rendered, tokenizer, special_tokens=True)
    ids = open_with(tokens.ids, opening(tokenizer, policy), tokenizer.bos_token_id)
    assert ids.tolist() == [BOS, *tokenizer.convert_tokens_to_ids(["w1", "w2"])]


def test_a_template_keeps_its_own_bos_once_where_the_tokenizer_adds_none() -> None:
    tokenizer = word_tokenizer()
    w1 = tokenizer.convert_tokens_to_ids("w1")
    for rendered, expected in (("<s> <s> w1", [BOS, w1]), ("<s> w1 <s> w1", [BOS, w1, BOS, w1]), ("w1", [w1])):
        tokens = tokenise_text(rendered, tokenizer, special_tokens=True)
        assert open_with(tokens.ids, opening(tokenizer), tokenizer.bos_token_id).tolist() == expected
    without = word_tokenizer(bos=False)
    assert open_with(np.array([5, 5]), opening(without), without.bos_token_id).tolist() == [5, 5]


def test_special_tokens_spelled_in_a_document_are_plain_text() -> None:
    tokenizer = byte_tokenizer(template="<s> $A")
    text = "x<s>y</s><s>"
    plain = tokenise_text(text, tokenizer)
    assert not np.isin(plain.ids, [BOS, EOS]).any()
    assert tokenizer.decode(plain.ids) == text
    assert tokenise_text(text, tokenizer, special_tokens=True).ids.tolist().count(BOS) == 2
    assert tokenise_text(text, tokenizer).ids.tolist() == plain.ids.tolist()


def test_offsets_give_the_text_back() -> None:
    text = "aab é🙂\x00\u2028 \x07<script>\r\nccd"
    tokens = tokenise_text(text, byte_tokenizer())
    assert tokens.complete
    spans = list(zip(tokens.starts.tolist(), tokens.ends.tolist(), strict=True))
    assert "".join(text[a:b] for a, b in dict.fromkeys(spans)) == text  # tokens within one character share its span
    assert text[slice(*spans[0])] == "aa"


@pytest.mark.parametrize("characters", [100, 177, 500])
def test_tokens_of_a_cut_text_are_the_first_of_the_whole(characters: int) -> None:
    tokenizer = byte_tokenizer()
    rng = np.random.default_rng(0)
    text = "".join(rng.choice(list("abcdefgh  "), size=1000))
    whole, cut = tokenise_text(text, tokenizer), tokenise_text(text, tokenizer, characters=characters)
    assert whole.complete
    assert not cut.complete
    assert cut.ids.tolist() == whole.ids[: len(cut)].tolist()
    assert characters / 2 - MARGIN <= len(cut) <= characters - MARGIN
    assert cut.ends.tolist() == whole.ends[: len(cut)].tolist()


def test_a_tokenizer_without_offsets_and_half_a_character_are_refused() -> None:
    with pytest.raises(InvalidInput, match="tokenizer must be a fast one"):
        tokenise_text("a", object())
    with pytest.raises(InvalidInput, match="text must be valid Unicode"):
        tokenise_text("a\ud800", byte_tokenizer())


@pytest.mark.demo
def test_a_real_tokenizer_cut_agrees_with_the_whole_text(demo_folder: Path, demo_tokenizer: Any) -> None:
    for path in sorted((demo_folder / "documents").iterdir())[::64]:
        text = path.read_bytes().decode()
        whole = tokenise_text(text, demo_tokenizer)
        assert demo_tokenizer.decode(whole.ids) == text
        for characters in (300, 1000, 3333):
            cut = tokenise_text(text, demo_tokenizer, characters=characters)
            assert cut.ids.tolist() == whole.ids[: len(cut)].tolist()
    start = time.process_time()
    assert len(tokenise_text("a" * 10_000_000, demo_tokenizer, characters=100_000)) > 10_000
    assert time.process_time() - start < 5  # .1 s; the whole word takes 15 s
