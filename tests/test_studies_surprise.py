"""Surprise at joins, and order learned: surprisal by prefixes, planted curves, and text whose order is known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.boundaries import Layout
from catenary.reproduce import valley
from catenary.reproduce.experiment import experiments_folder, read_experiment
from catenary.reproduce.finding import STUDIES
from catenary.reproduce.letters import byte_tokenizer
from catenary.reproduce.standing import at_joins, inside, per_nat, rarity, standing
from catenary.reproduce.studies.surprise import as_surprising, by_class
from catenary.reproduce.surprisal import excess, order_gain, shuffled_inside, surprisal
from catenary.study.observer import Silent
from catenary.text.windows import Windows
from small_tokenizers import word_tokenizer
from tiny_models import TINY, token_windows

WORDS = 60


def settings(name: str, **changes: Any) -> dict[str, Any]:
    return {**read_experiment(experiments_folder() / "2603.10123" / f"{name}.toml").settings, **changes}


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A demo folder: a tiny network with weights and a tokenizer of whole words, and documents that count on."""
    config = {**TINY["llama"], "vocab_size": WORDS + 3, "hidden_size": 32, "num_hidden_layers": 2}
    ct.load(config, seed=5).module.save_pretrained(tmp_path / "tiny")
    word_tokenizer(WORDS, bos=False).save_pretrained(tmp_path / "tiny")
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{(k + first) % WORDS}" for k in range(120)) for first in rng.integers(0, WORDS, 60)]
    texts = [f"{text} w{n % WORDS} w{n // 7}" for n, text in enumerate(texts)]  # no two alike
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    monkeypatch.setenv("CATENARY_DEMO", str(tmp_path))
    return {"documents": "demo/texts.jsonl", "length": 64, "chunk": 16}


def test_surprisal_is_that_of_each_prefix_alone() -> None:
    network = ct.load({**TINY["llama"], "vocab_size": 50, "initializer_range": 0.3}, dtype="float64", seed=3)
    windows = token_windows(2, 9)
    found = surprisal(network, windows)
    assert np.isnan(found[:, 0]).all()
    for row, ids in zip(found, windows.ids, strict=True):
        for place in range(1, 9):
            with torch.no_grad():
                logits = network.module(torch.from_numpy(np.array(ids[None, :place]))).logits[0, -1].numpy()
            by_hand = np.log(np.exp(logits.astype(float)).sum()) - logits[ids[place]]
            assert row[place] == pytest.approx(by_hand, rel=1e-5)


def test_shuffling_keeps_excerpts_their_places_and_what_opens_a_window() -> None:
    ids = np.arange(200).reshape(2, 100)
    found = shuffled_inside(Windows(ids, report={"bos": {"ids": [7, 7]}}), 30, 4)
    assert (found.ids[:, :2] == ids[:, :2]).all()
    for start in (0, 30, 60, 90):
        part = found.ids[:, start : start + 30]
        assert (np.sort(part, axis=1) == ids[:, start : start + 30]).all()
        assert (part != ids[:, start : start + 30]).mean() > 0.6
    assert (found.ids[0] != found.ids[1] - 100).any()  # each window an order of its own
    assert (found.ids != shuffled_inside(Windows(ids), 30, 5).ids).any()


def test_excess_and_gain_of_planted_nats() -> None:
    nats = np.full((3, 64), 2.0)
    nats[:, 0] = np.nan
    nats[:, 16::16] = 7.0
    assert excess(nats, Layout.of(64, 16)) == pytest.approx(5)
    assert order_gain(nats, nats + 1.5) == pytest.approx(1.5)


def test_what_stands_out_is_each_token_over_its_neighbours_and_joins_are_left_out() -> None:
    layout, rng = Layout.of(96, 32), np.random.default_rng(0)
    curves = np.exp(rng.standard_normal((2, 96)))
    outs = standing(curves, layout)
    places = inside(np.tile(np.arange(96.0), (2, 1)), layout)[0].astype(int)
    assert not (places % 32 == 0).any()
    assert sorted(places) == [p for p in range(33, 96) if p % 32 and p <= 96 - 2 - 12]
    for column, place in enumerate(places):
        near = [p for p in range(place - 12, place + 13) if abs(p - place) >= 3 and p % 32]
        by_hand = np.log(curves[:, place]) - np.log(curves[:, near]).mean(axis=1)
        np.testing.assert_allclose(outs[:, column], by_hand)
    assert at_joins(np.tile(np.arange(96.0), (1, 1)), layout).tolist() == [[32, 64]]


def test_the_slope_in_surprisal_is_that_between_tokens_of_one_frequency() -> None:
    rng = np.random.default_rng(1)
    rare = rng.uniform(2, 9, (8, 400))
    nats = rare + rng.normal(0, 2, rare.shape)  # rare tokens are surprising ones
    outs = 0.10 * nats + 0.30 * rare + rng.normal(0, 0.1, rare.shape)
    assert per_nat(outs, nats, rare) == pytest.approx(0.10, abs=0.005)
    assert np.polyfit(nats.ravel(), outs.ravel(), 1)[0] > 0.2  # what it would be without
    assert as_surprising(outs * 0 + np.log(3), nats, 4, 5) == pytest.approx(3)
    classes = by_class(nats * 0.2, nats, 4)
    assert [math.log(ratio) for _, ratio in classes] == pytest.approx([0.2 * mean for mean, _ in classes])
    assert np.mean([mean for mean, _ in classes]) == pytest.approx(nats.mean())


def test_frequency_is_counted_over_all_windows() -> None:
    found = rarity(Windows(np.array([[4, 4, 5], [4, 9, 5]])))
    np.testing.assert_allclose(found, -np.log(np.array([[3, 3, 2], [3, 1, 2]]) / 6))


def test_surprise_of_a_tiny_network(demo: dict[str, Any]) -> None:
    given = settings("surprise", model="demo/tiny", windows=3, **demo)
    found = STUDIES["surprise"](given, Silent())
    same = STUDIES["trained"]({**given, "block": 8}, Silent())
    assert found["joins, text"].value == pytest.approx(same["joins, pretrained, chunked"].value)
    assert found["smear 15%, text"].value > 0
    ratio = found["joins, text"].value / found["joins, shuffled"].value
    assert found["joins, text over shuffled"].value == pytest.approx(ratio)
    assert abs(found["nats from order"].value) < 0.1  # never trained
    assert len(found.rows) == 8 + 4
    assert [name for name, *_ in found.rows] == ["inside, text"] * 8 + ["joins, text"] * 4


def test_a_byte_is_a_token() -> None:
    tokenizer, text = byte_tokenizer(), "héllo,\n  wörld €"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(tokenizer) == 256
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids) == text


def test_order_is_learned_where_it_can_be(demo: dict[str, Any]) -> None:
    """Bytes of a text that counts on: what follows is learned, and a join is then a surprise; at birth neither."""
    network = {**settings("order_learned")["network"], "hidden_size": 32, "num_hidden_layers": 2,
               "intermediate_size": 64, "vocab_size": WORDS + 3, "initializer_range": 0.1}  # fmt: skip
    given = settings("order_learned", tokenizer="demo/tiny", network=network, seeds=[0, 1], steps=150, marks=[0, 150],
                     windows=3, training_documents=30, **demo)  # fmt: skip
    found = STUDIES["order-learned"](given, Silent())
    born, taught = (found[f"nats from order at step {step}, bytes"].value for step in (0, 150))
    assert abs(born) < 0.3 < taught - born
    assert found["surprise at joins at step 150, bytes"].value > 0.3
    rows = [dict(zip(found.fields, row, strict=True)) for row in found.rows]
    assert [(row["alphabet"], row["seed"], row["step"]) for row in rows] == [
        (alphabet, seed, step) for alphabet in ("tokens", "bytes") for seed in (0, 1) for step in (0, 150)
    ]
    change = {
        alphabet: np.mean([
            row["smear 15%"] * (1 if row["step"] else -1) * 2 for row in rows if row["alphabet"] == alphabet
        ]) for alphabet in ("tokens", "bytes")
    }  # fmt: skip
    assert found["change of smear 15%, bytes less tokens"].value == pytest.approx(change["bytes"] - change["tokens"])
    assert valley.smear(np.exp(np.ones((2, 40))), 0.15) == 1.0
