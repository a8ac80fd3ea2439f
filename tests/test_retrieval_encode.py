"""Cases in tokens: what stands in front, where each slot lies, and answers that do not merge with the prompt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedTokenizer

from catenary.errors import InvalidInput
from catenary.retrieval.case import Case, Segment
from catenary.retrieval.scoring.encode import Encoder
from small_tokenizers import byte_tokenizer, word_tokenizer

TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] | trim }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}answer: {% endif %}"
)


def case(
    answer: str = "xy", lead: str = "", documents: tuple[str, ...] = ("one.", "ünï 東.", "two."), end: str = "?"
) -> Case:  # fmt: skip
    segments = [Segment("intro ")]
    for slot, text in enumerate(documents):
        segments += [Segment(text, slot), Segment("\n")]
    return Case("s", (*segments, Segment(end)), (answer,), 1, lead)


class Slow(PreTrainedTokenizer):
    """One token per character, and "aa" as one token: a tokenizer in plain Python, without offsets."""

    def __init__(self, **given: Any) -> None:
        self._letters = {"</s>": 0, "<s>": 1, "aa": 2}
        super().__init__(eos_token="</s>", bos_token="<s>", unk_token="<s>", **given)

    @property
    def vocab_size(self) -> int:
        return 200_000

    def get_vocab(self) -> dict[str, int]:
        return {**self._letters, **self.added_tokens_encoder}

    def _tokenize(self, text: str, **given: Any) -> list[str]:
        found, at = [], 0
        while at < len(text):
            size = 2 if text.startswith("aa", at) else 1
            found.append(text[at : at + size])
            at += size
        return found

    def _convert_token_to_id(self, token: str) -> int:
        return self._letters.get(token, 3 + ord(token[0]))

    def _convert_id_to_token(self, index: int) -> str:
        return {n: word for word, n in self._letters.items()}.get(index, chr(max(index - 3, 0)))

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return "".join(tokens)

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        return ()


@pytest.mark.parametrize("kind", ["bos", "no bos", "slow"])
def test_slots_are_found_and_their_tokens_spell_the_document(kind: str) -> None:
    tokenizer = {"bos": byte_tokenizer(template="<s> $A"), "no bos": byte_tokenizer(), "slow": Slow()}[kind]
    one = case()
    made = Encoder(tokenizer).encode(one)
    starts_with_bos = made.prompt[0] == tokenizer.bos_token_id
    assert starts_with_bos == (kind == "bos")
    assert (made.prompt == tokenizer.bos_token_id).sum() == int(starts_with_bos)
    for slot, (start, stop) in made.slots.items():
        (text,) = (segment.text for segment in one.segments if segment.slot == slot)
        spelt = tokenizer.decode(made.prompt[start:stop].tolist(), clean_up_tokenization_spaces=False)
        assert spelt == text
    if kind != "slow":
        whole = tokenizer(one.text + "xy")["input_ids"]
        assert [*made.prompt.tolist(), *made.continuation.tolist()] == whole
    assert not made.apart
    assert made.unscored == 0


@pytest.mark.parametrize("slow", [False, True])
def test_an_answer_that_would_merge_with_the_prompt_is_tokenised_apart(slow: bool) -> None:
    tokenizer = Slow() if slow else byte_tokenizer()
    merged = Encoder(tokenizer).encode(case("a", end="?a"))
    alone = Encoder(tokenizer).encode(case("a", end="?"))
    assert merged.apart
    assert not alone.apart
    # the prompt is the same as without any answer
    bare = tokenizer(case("a", end="?a").text, add_special_tokens=False)["input_ids"]
    assert merged.prompt.tolist() == bare
    assert merged.answer.tolist() == alone.answer.tolist()
    assert len(merged.answer) == 1
    longer = Encoder(tokenizer).encode(case("ab", end="?a"))
    assert longer.apart
    assert longer.prompt.tolist() == bare
    assert len(longer.answer) == 2


@pytest.mark.parametrize("slow", [False, True])
def test_the_lead_is_not_scored_unless_it_merges_with_the_answer(slow: bool) -> None:
    tokenizer = Slow() if slow else byte_tokenizer()
    made = Encoder(tokenizer).encode(case("xy", lead=": "))
    assert made.unscored == 2
    assert tokenizer.decode(made.answer.tolist()) == "xy"
    joined = Encoder(tokenizer).encode(case("ax", lead="za"))
    assert tokenizer.decode(joined.continuation.tolist()) == "zaax"
    assert joined.unscored == 1
    assert tokenizer.decode(joined.answer.tolist()) == "aax"


def test_one_token_answer_and_words() -> None:
    tokenizer = word_tokenizer(template="<s> $A </s>")
    words = Case("s", (Segment("w1 w2 "), Segment("w3 w4", 0), Segment(" w5")), ("w9",), 0, " ")
    made = Encoder(tokenizer).encode(words)
    assert made.answer.tolist() == [tokenizer.convert_tokens_to_ids("w9")]
    assert made.prompt.tolist() == [1, *tokenizer.convert_tokens_to_ids(["w1", "w2", "w3", "w4", "w5"])]
    assert dict(made.slots) == {0: (3, 5)}
    assert Encoder(tokenizer, bos="none").encode(words).prompt[0] != 1
    record = Encoder(tokenizer).record()
    assert record["bos"] == {"policy": "tokenizer", "ids": [1], "bos": 1, "dropped": [2]}


def test_chat_template_with_its_own_bos() -> None:
    tokenizer = byte_tokenizer(template="<s> $A")
    tokenizer.chat_template = TEMPLATE
    one = case(lead=" ")
    made = Encoder(tokenizer, chat=True).encode(one)
    bos, whole = tokenizer.bos_token_id, tokenizer.decode(made.prompt.tolist())
    assert whole.count("intro") == 1
    assert (made.prompt == bos).sum() == 1
    assert whole.endswith("answer: ")
    start, stop = made.slots[1]
    assert tokenizer.decode(made.prompt[start:stop].tolist()) == "ünï 東."
    assert made.unscored == 0
    assert Encoder(tokenizer, bos="none", chat=True).encode(one).prompt[0] != bos
    assert Encoder(tokenizer, bos="one", chat=True).encode(one).prompt.tolist() == made.prompt.tolist()
    assert Encoder(tokenizer).encode(one).prompt[1] == tokenizer.convert_tokens_to_ids("i")
    assert "user: {prompt}" in Encoder(tokenizer, chat=True).record()["chat_around"]
    with pytest.raises(InvalidInput, match="token of its own"):
        Encoder(tokenizer, chat=True).encode(case(documents=("</s>", "b")))
    # without a chat template the spelling is plain text
    plain = Encoder(tokenizer).encode(case(documents=("</s>", "b")))
    assert tokenizer.eos_token_id not in plain.prompt
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] | upper }}{% endfor %}"
    with pytest.raises(InvalidInput, match="changes the prompt"):
        Encoder(tokenizer, chat=True).encode(one)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="has a chat template"):
        Encoder(byte_tokenizer(), chat=True)
    with pytest.raises(InvalidInput, match="no token of the answer"):
        Encoder(_deaf()).encode(case(answer="zzz"))


def _deaf() -> Any:
    """A tokenizer that drops the letter z."""
    from tokenizers import normalizers

    tokenizer = byte_tokenizer()
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("z", "")
    return tokenizer


def test_unicode_answers_keep_all_their_bytes() -> None:
    tokenizer = byte_tokenizer()
    made = Encoder(tokenizer).encode(case("é東", lead=" "))
    assert made.unscored == 1
    assert len(made.answer) == len("é東".encode())
    assert np.array_equal(made.answer, tokenizer("é東", add_special_tokens=False)["input_ids"])
