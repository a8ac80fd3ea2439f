"""Greedy generation side by side: guesses save passes and never change a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from catenary.models.load import load
from catenary.retrieval.scoring.cached import score_cached
from catenary.retrieval.scoring.caches import beginning, cache_length, cut, new_cache, side_by_side, some_rows
from catenary.retrieval.scoring.draft import LONGEST, draft
from catenary.retrieval.scoring.ending import Ending
from catenary.retrieval.scoring.forward import Forward
from catenary.retrieval.scoring.greedy import Generation, agreed, complete
from catenary.retrieval.scoring.query import Query
from test_retrieval_scoring import LLAMA, SHARED, Numbers

LIMIT = 17
ENDING = Ending(Numbers(), frozenset([7]), LIMIT, False)
Guess = Callable[[Generation, int], np.ndarray]


def plain(module: Any, prompt: np.ndarray, ending: Ending) -> list[int]:
    """One pass over everything for each token."""
    made: list[int] = []
    while len(made) < ending.limit and not ending.over(made):
        ids = torch.tensor([[*prompt.tolist(), *made]])
        made.append(int(module(ids, use_cache=False).logits[0, -1].argmax()))
    return made


def side_by_side_passes(monkeypatch: pytest.MonkeyPatch, guess: Guess | None) -> tuple[list[list[int]], int]:
    """What five prompts generate side by side with some way to guess, and in how many passes."""
    module = load(LLAMA, seed=4).module
    rng = np.random.default_rng(3)
    prompts = [rng.integers(8, 50, 9) for _ in range(5)]
    forward, calls = Forward(module), []
    if guess is not None:
        monkeypatch.setattr(Generation, "guess", guess)
    with torch.no_grad():
        caches, rows = [], []
        for prompt in prompts:
            caches.append(new_cache())
            logits = forward(torch.from_numpy(prompt[None]), cache=caches[-1], keep=1)
            rows.append(Generation(prompt, ENDING))
            rows[-1].take([int(logits[0, -1].argmax())])

        def counted(*arguments: Any, **options: Any) -> torch.Tensor:
            calls.append(1)
            return forward(*arguments, **options)

        counted.module = module  # type: ignore[attr-defined]
        complete(counted, side_by_side(caches, LIMIT), rows)  # type: ignore[arg-type]
        wanted = [plain(module, prompt, ENDING) for prompt in prompts]
    assert [row.made for row in rows] == wanted
    assert any(len(made) < LIMIT for made in wanted)
    assert any(len(made) == LIMIT for made in wanted)
    return wanted, len(calls)


def test_no_guess_changes_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, _ = side_by_side_passes(monkeypatch, None)
    whole = {tuple(made[: k + 1]): made for made in wanted for k in range(len(made))}

    def right(row: Generation, length: int) -> np.ndarray:
        return np.array([*whole[tuple(row.made)], *[0] * length])[len(row.made) :][:length]

    def wrong(row: Generation, length: int) -> np.ndarray:
        return right(row, length) + 1

    def half(row: Generation, length: int) -> np.ndarray:
        return right(row, length) + (np.arange(length) >= 2)

    passes = {made: side_by_side_passes(monkeypatch, guess)[1] for made, guess in (
        ("right", right), ("wrong", wrong), ("half", half)
    )}  # fmt: skip
    assert passes["wrong"] == LIMIT - 1
    assert passes["half"] == 6  # of 16 tokens: 3 + 3 + 3 + 3 + 3 + 1
    assert passes["right"] == 3  # 5 + 9 + 2


def test_a_generation_that_copies_the_prompt_takes_few_passes() -> None:
    """A network that repeats itself: what it generates stands in the context, and the guess finds it."""
    module = load(LLAMA, seed=4).module
    prompt = np.random.default_rng(5).integers(8, 50, 6)
    ending = Ending(Numbers(), frozenset(), 40, False)
    with torch.no_grad():
        made = plain(module, prompt, ending)
    calls: list[int] = []
    handle = module.register_forward_hook(lambda *_: calls.append(1))
    reply = score_cached(module, [Query(np.concatenate([prompt, made[:20]]), np.array([1]))], ending)[0]
    handle.remove()
    assert reply.text.split()[:20] == [str(token) for token in made[20:]]
    assert len(calls) < 15


class LineEnds:
    """Spells ids as numbers, and every ninth as a line end."""

    eos_token_id = 0

    def decode(self, ids: list[int], **_: Any) -> str:
        return "".join("\n" if token % 9 == 5 else f" {token}" for token in ids)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral with a window", "gemma2"])
def test_right_and_wrong_answers_side_by_side(kind: str) -> None:
    """Half of the answers are what the network says, so that their rows go on behind them; ends fall anywhere."""
    rng = np.random.default_rng(len(kind))
    for seed in range(3):
        module = load(SHARED[kind], seed=seed).module.double()
        for limit in (1, 2, 3, 7, 16):
            base, ends = rng.integers(1, 50, 8), frozenset(rng.integers(0, 50, 3).tolist())
            ending = Ending(LineEnds(), ends, limit, bool(rng.integers(2)))
            prompts = [np.concatenate([base[: rng.integers(0, 9)], rng.integers(1, 50, 2)]) for _ in range(6)]
            prompts = [prompt[-8:] for prompt in prompts] if limit > 3 else prompts
            with torch.no_grad():
                own = Ending(Numbers(), frozenset(), 4, False)
                said = [np.array(plain(module, prompt, own))[: int(rng.integers(1, 5))] for prompt in prompts]
                asked = [
                    Query(prompt, right if n % 2 else rng.integers(1, 50, len(right)))
                    for n, (prompt, right) in enumerate(zip(prompts, said, strict=True))
                ]
                replies = score_cached(module, asked, ending)
                wanted = [plain(module, prompt, ending) for prompt in prompts]
            assert [reply.text for reply in replies] == [ending.text(made) for made in wanted]
            assert [reply.ended for reply in replies] == [ending.over(made) for made in wanted]


def test_the_guess_is_what_followed_last() -> None:
    context = np.array([1, 2, 3, 4, 9, 2, 3, 5, 6, 7, 2, 3])
    assert draft(context, 3).tolist() == [5, 6, 7]
    assert draft(context, 6).tolist() == [5, 6, 7, 2, 3, 3]
    assert draft(np.array([9, 2, 3, 1, 2, 3, 5, 9, 2, 3]), 2).tolist() == [1, 2]
    assert draft(np.array([4, 5]), 2).tolist() == [5, 5]
    assert draft(np.array([4]), 1).tolist() == [4]
    assert draft(context, 0).tolist() == []


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.integers(0, 5))
def test_the_guess_against_a_plain_search(context: list[int], length: int) -> None:
    start = len(context)
    for size in range(1, min(LONGEST, len(context) - 1) + 1):
        for at in range(len(context) - size):
            if context[at : at + size] == context[-size:]:
                start = at + size
    follows = context[start : start + length]
    wanted = follows + [context[-1]] * (length - len(follows))
    assert draft(np.array(context), length).tolist() == wanted


def test_a_row_that_ends_does_not_hold_back_the_others() -> None:
    rows = [Generation(np.array([1]), ENDING, [1]) for _ in range(3)]
    guesses = np.array([[2, 3, 4], [2, 3, 4], [9, 9, 9]])
    chosen = np.array([[2, 3, 4, 5], [2, 3, 8, 8], [7, 1, 1, 1]])
    assert agreed(rows, guesses, chosen) == 2
    assert agreed(rows[2:], guesses[2:], chosen[2:]) == 0
    assert agreed(rows[:1], guesses[:1], chosen[:1]) == 3


def test_caches_grow_in_place_and_are_cut() -> None:
    module = load(LLAMA, seed=1).module
    forward = Forward(module)
    ids = torch.randint(8, 50, (3, 12), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = forward(ids, cache=new_cache())
        caches = []
        for row in ids:
            caches.append(new_cache())
            forward(row[None, :8], cache=caches[-1])
        both = side_by_side(caches, 4)
        address = both.layers[0].keys.data_ptr()
        forward(ids[:, [8, 8]], cache=both)
        cut(both, 9)
        torch.testing.assert_close(forward(ids[:, 9:], cache=both), wanted[:, 9:])
        assert both.layers[0].keys.data_ptr() == address
        assert (cache_length(both), cache_length(caches[0])) == (12, 8)
        picked = some_rows(both, [2, 0], 10, 2)
        torch.testing.assert_close(forward(ids[[2, 0], 10:], cache=picked), wanted[[2, 0], 10:])
        again = beginning(both, 5, 7)
        torch.testing.assert_close(forward(ids[:, 5:], cache=again), wanted[:, 5:])
        with pytest.raises(RuntimeError, match="room for 12 tokens, 13"):
            forward(ids[:, :1], cache=again)
