"""Shared prefixes: every position's log-probability and generation are those of its prompt alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from catenary.errors import InvalidInput
from catenary.models.load import load
from catenary.models.model import Model
from catenary.retrieval.case import Case, Segment
from catenary.retrieval.scoring import cached as cached_module
from catenary.retrieval.scoring.alone import score_alone
from catenary.retrieval.scoring.cached import score_cached
from catenary.retrieval.scoring.ending import Ending, end_tokens
from catenary.retrieval.scoring.forward import Unforkable
from catenary.retrieval.scoring.network import NetworkScorer
from catenary.retrieval.scoring.query import Query, Reply
from catenary.retrieval.scoring.tree import tokens_run, turns
from small_tokenizers import byte_tokenizer
from tiny_models import TINY

LLAMA = TINY["llama"]
_SMALL: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "vocab_size": 50,
    "initializer_range": 0.2, "max_position_embeddings": 128, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
_BLOOM: dict[str, Any] = {
    "n_layer": 2, "n_head": 2, "hidden_size": 16, "vocab_size": 50, "initializer_range": 0.2, "bos_token_id": 0,
    "eos_token_id": 0,
}  # fmt: skip
SHARED: dict[str, dict[str, Any]] = {
    **TINY,
    "mistral with a window": {**TINY["mistral"], "sliding_window": 8},
    "gemma": {**LLAMA, "model_type": "gemma", "head_dim": 8},
    "gemma2": {**LLAMA, "model_type": "gemma2", "head_dim": 8, "sliding_window": 8},
    "gpt_neox": {**_SMALL, "model_type": "gpt_neox"},
    "gpt_neo": {
        "model_type": "gpt_neo", "hidden_size": 16, "num_layers": 2, "num_heads": 2, "window_size": 8,
        "attention_types": [[["global", "local"], 1]], "vocab_size": 50, "initializer_range": 0.2,
        "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 0,
    },
    "bloom": {**_BLOOM, "model_type": "bloom"},
    "falcon": {**_SMALL, "model_type": "falcon"},
}  # fmt: skip
RECURRENT: dict[str, dict[str, Any]] = {
    "lfm2": {**LLAMA, "model_type": "lfm2", "layer_types": ["conv", "full_attention"]},
    "openai-gpt": {
        "model_type": "openai-gpt", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 50,
        "initializer_range": 0.2,
    },
}  # fmt: skip


class Numbers:
    """Spells ids as numbers."""

    eos_token_id = 0

    def decode(self, ids: list[int], **_: Any) -> str:
        return " ".join(map(str, ids))


def queries() -> list[Query]:
    """Six positions, the fact alone, equal prompts, one that begins another, answers of several lengths."""
    rng = np.random.default_rng(0)
    documents = [rng.integers(1, 50, 4) for _ in range(5)]
    gold, question, intro, answer = (rng.integers(1, 50, n) for n in (4, 3, 3, 3))
    prompts = [np.concatenate([intro, *documents[:p], gold, *documents[p:], question]) for p in range(6)]
    prompts += [np.concatenate([intro, gold, question]), prompts[2].copy(), prompts[2][:9].copy()]
    kept = {3: answer[:1]}
    return [Query(p, kept.get(n, answer)) for n, p in enumerate(prompts)]


ENDING = Ending(Numbers(), frozenset([7]), 6, False)


def by_hand(model: Model, query: Query, limit: int = 6) -> Reply:
    """No cache, no generate, one pass per token."""
    ids, logs = query.prompt.tolist(), []
    for token in query.answer.tolist():
        row = model.module(torch.tensor([ids]), use_cache=False).logits[0, -1].double()
        logs.append(float(row[token] - row.logsumexp(0)))
        ids.append(token)
    ids = query.prompt.tolist()
    while len(ids) < len(query.prompt) + limit and ids[-1] != 7:
        ids.append(int(model.module(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    new = ids[len(query.prompt) :]
    return Reply(float(np.mean(logs)), ENDING.text(new), new[-1] == 7)


def same(got: list[Reply], wanted: list[Reply], tolerance: float = 1e-5) -> None:
    assert [reply.text for reply in got] == [reply.text for reply in wanted]
    assert [reply.ended for reply in got] == [reply.ended for reply in wanted]
    assert np.abs([a.logp - b.logp for a, b in zip(got, wanted, strict=True)]).max() < tolerance


@pytest.mark.parametrize("kind", SHARED)
def test_shared_prefixes_change_nothing(kind: str) -> None:
    model = load(SHARED[kind], seed=1)
    asked = queries()
    got = score_cached(model.module, asked, ENDING)
    same(got, score_alone(model.module, asked, ENDING))
    if kind in ("llama", "gpt2", "mistral with a window"):
        with torch.no_grad():
            same([got[0], got[4]], [by_hand(model, asked[n]) for n in (0, 4)])


def test_generations_that_end_and_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(LLAMA, seed=1)
    asked = queries()
    first = score_alone(model.module, asked, ENDING)
    ends = Ending(Numbers(), frozenset({int(first[0].text.split()[2])}), 6, False)
    wanted = score_alone(model.module, asked, ends)
    assert {reply.ended for reply in wanted} == {True, False}
    same(score_cached(model.module, asked, ends), wanted)
    monkeypatch.setattr(cached_module, "BATCH_BYTES", 1)
    same(score_cached(model.module, asked, ends), wanted)


def test_the_networks_own_generation_config_is_not_used_and_is_put_back() -> None:
    model = load(LLAMA, seed=1)
    wanted = score_alone(model.module, queries()[:2], ENDING)
    own = model.module.generation_config
    own.repetition_penalty, own.do_sample, own.max_new_tokens = 5.0, True, 2
    same(score_alone(model.module, queries()[:2], ENDING), wanted)
    assert model.module.generation_config is own
    assert (own.repetition_penalty, own.do_sample) == (5.0, True)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=8))
def test_the_walk_runs_every_node_of_the_prefix_tree_once(rows: list[list[int]]) -> None:
    sequences = [np.array(row, dtype=np.int64) for row in rows]
    made = turns(sequences)
    assert sorted(row for turn in made for row in turn.rows) == list(range(len(rows)))
    before: list[int] = []
    for turn in made:
        own = rows[turn.rows[0]]
        assert all(rows[row] == own for row in turn.rows)
        assert own[: turn.shared] == before[: turn.shared]
        assert turn.shared < len(own)
        before = own
    nodes = {tuple(row[: k + 1]) for row in rows for k in range(len(row))}
    assert tokens_run(sequences) == len(nodes)


# --- the scorer: encoding, limits, route ---


def cases(length: int = 4) -> list[Case]:
    texts = [f"fact {chr(97 + n) * length}. " for n in range(5)]
    made = []
    for slot in range(6):
        order = [*texts[:slot], "the word is ok. ", *texts[slot:]]
        segments = tuple(Segment(text, n) for n, text in enumerate(order))
        made.append(Case("s", (*segments, Segment("word?")), ("ok",), slot, " "))
    return made


@pytest.fixture(scope="module")
def bytes_model() -> Model:
    return load({**LLAMA, "vocab_size": 280, "max_position_embeddings": 256}, seed=2)


def test_both_routes_and_the_limits(bytes_model: Model) -> None:
    tokenizer = byte_tokenizer(template="<s> $A")
    shared = NetworkScorer(bytes_model, tokenizer, max_new_tokens=8)
    plain = NetworkScorer(bytes_model, tokenizer, max_new_tokens=8, route="alone")
    got, wanted = shared.score(cases()), plain.score(cases())
    assert shared.record()["route"] == "cached"
    assert "equal within" in shared.record()["route_reason"]
    for a, b in zip(got, wanted, strict=True):
        assert a.logp == pytest.approx(b.logp, abs=1e-5)
        assert (a.text, a.ended, a.tokens, a.answer_tokens) == (b.text, b.ended, b.tokens, 2)
    size = got[0].tokens
    assert size == 1 + len(tokenizer(cases()[0].text, add_special_tokens=False)["input_ids"])
    tight = NetworkScorer(bytes_model, tokenizer, max_new_tokens=8, max_length=size + 9)
    assert [one.skipped for one in tight.score(cases())] == [""] * 6
    less = NetworkScorer(bytes_model, tokenizer, max_new_tokens=8, max_length=size + 8)
    short = less.score([*cases(), *cases(2)[:1]])
    assert all(f"{size} tokens and 9" in one.skipped and one.logp is None for one in short[:6])
    assert short[6].skipped == ""


def test_a_context_of_64_tokens_and_a_document_longer_than_it() -> None:
    model = load({**TINY["gpt2"], "vocab_size": 280}, seed=0)
    scorer = NetworkScorer(model, byte_tokenizer(), max_new_tokens=4)
    assert scorer.max_length == 64
    short = Case("s", (Segment("a: b. ", 0), Segment("c: d. ", 1), Segment("a?")), ("b",), 0)
    fits, long = scorer.score([short, cases(100)[0]])
    assert fits.logp is not None
    assert "more than the 64 that fit" in long.skipped
    assert long.tokens > 64
    (only,) = NetworkScorer(model, byte_tokenizer(), max_new_tokens=4).score([cases(100)[0]])
    assert only.skipped


@pytest.mark.parametrize("kind", RECURRENT)
def test_state_that_cannot_be_shared_is_scored_alone_and_said(kind: str) -> None:
    scorer = NetworkScorer(load({**RECURRENT[kind], "vocab_size": 280}, seed=0), byte_tokenizer(), max_new_tokens=3)
    asked = [Case("s", (Segment("ab ", 0), Segment("cd ", 1), Segment(q)), ("d",), 0) for q in ("a?", "c?")]
    results = scorer.score(asked)
    assert scorer.route == "alone"
    assert "cache" in scorer.why
    assert all(result.logp is not None for result in results)


def test_frequencies_that_change_with_the_length_are_scored_alone(bytes_model: Model) -> None:
    scaled = {
        "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 2, "long_factor": [3.0] * 2,
        "original_max_position_embeddings": 32, "factor": 4.0,
    }  # fmt: skip
    model = load({**LLAMA, "max_position_embeddings": 128, "rope_parameters": scaled}, seed=0)
    prompts = [np.concatenate([np.arange(1, 20), [n]]) for n in (3, 4)]
    asked = [Query(prompt, np.array([5, 6])) for prompt in prompts]
    scorer = NetworkScorer(model, byte_tokenizer())
    assert scorer.check(asked) == (
        "alone", "its rotary frequencies (longrope) change with the length of the sequence"
    )  # fmt: skip
    assert NetworkScorer(bytes_model, byte_tokenizer()).check(asked)[0] == "cached"


def test_a_cache_that_is_wrong_is_found_out(bytes_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    real = cached_module.beginning
    monkeypatch.setattr(cached_module, "beginning", lambda cache, length: real(cache, max(length - 1, 0)))
    scorer = NetworkScorer(bytes_model, byte_tokenizer(), max_new_tokens=3)
    results = scorer.score(cases())
    assert scorer.route == "alone"
    monkeypatch.setattr(cached_module, "beginning", real)
    wanted = NetworkScorer(bytes_model, byte_tokenizer(), max_new_tokens=3).score(cases())
    assert [a.logp for a in results] == pytest.approx([b.logp for b in wanted], abs=1e-5)


def test_memory_that_runs_out_is_no_reason_to_change_the_route(
    bytes_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr("catenary.retrieval.scoring.network.score_cached", full)
    with pytest.raises(torch.OutOfMemoryError):
        NetworkScorer(bytes_model, byte_tokenizer()).score(cases())


def test_identical_documents_and_one_case(bytes_model: Model) -> None:
    same_text = [Case("s", (Segment("x. ", 0), Segment("x. ", 1), Segment("x?")), ("x",), slot) for slot in (0, 1)]
    a, b = NetworkScorer(bytes_model, byte_tokenizer(), max_new_tokens=3).score(same_text)
    assert a == b
    scorer = NetworkScorer(bytes_model, byte_tokenizer(), max_new_tokens=3)
    assert scorer.score(same_text[:1]) == [a]
    assert (scorer.route, scorer.why) == ("alone", "nothing to share")


def test_refusals(bytes_model: Model) -> None:
    with pytest.raises(InvalidInput, match="max_new_tokens must be at least 1"):
        NetworkScorer(bytes_model, byte_tokenizer(), max_new_tokens=0)
    with pytest.raises(InvalidInput, match="unknown route"):
        NetworkScorer(bytes_model, byte_tokenizer(), route="magic")  # type: ignore[arg-type]
    with pytest.raises(Unforkable):
        score_cached(load(RECURRENT["openai-gpt"]).module, queries(), ENDING)


def test_endings(bytes_model: Model) -> None:
    tokenizer = byte_tokenizer()
    ids = tokenizer("\n ok\n", add_special_tokens=False)["input_ids"]
    lines = Ending(tokenizer, frozenset([2]), 9, True)
    assert [lines.over(ids[: k + 1]) for k in range(len(ids))] == [False, False, False, False, True]
    assert not Ending(tokenizer, frozenset([2]), 9, False).over(ids)
    assert lines.over([5, 2])
    assert lines.text([*ids[2:4], 2]) == "ok"
    assert end_tokens(bytes_model.module, tokenizer) == {0, 2}
