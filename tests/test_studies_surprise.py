"""Surprise at joins, and order learned: surprisal by prefixes, planted curves, and text whose order is known."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.boundaries import Layout
from catenary.models.training import Recipe, Trainer
from catenary.reproduce import valley
from catenary.reproduce.demo import demo_path
from catenary.reproduce.experiment import experiments_folder, read_experiment
from catenary.reproduce.finding import STUDIES
from catenary.reproduce.letters import byte_tokenizer
from catenary.reproduce.resampling import drawn_together, norms
from catenary.reproduce.standing import fit, fitted, inside, per_nat, rarity
from catenary.reproduce.studies import order_learned, surprise, trained
from catenary.reproduce.studies.surprise import as_surprising, by_class
from catenary.reproduce.studies.trained import text_windows
from catenary.reproduce.surprisal import lost_by_shuffling, shuffled_inside, surprisal, surprise_at_joins
from catenary.study.observer import Silent
from catenary.text.chunked import chunked_windows
from catenary.text.documents import read_documents
from catenary.text.split import split_documents
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


def test_surprise_at_joins_and_loss_of_planted_nats() -> None:
    nats = np.full((3, 128), 2.0)
    nats[:, 0] = np.nan
    nats[:, 32::32] = 7.0
    nats[:, 33] = 9.0  # next to a join: no neighbour
    nats[:, 36] = 4.0  # one of its twenty
    assert surprise_at_joins(nats, Layout.of(128, 32)) == pytest.approx(5 - 0.1 / 3)
    assert lost_by_shuffling(nats, nats + 1.5) == pytest.approx(1.5)


def test_tokens_inside_excerpts_stand_over_neighbours_that_no_join_is_near() -> None:
    layout, rng = Layout.of(96, 32), np.random.default_rng(0)
    values = rng.standard_normal((2, 96))
    found = inside(values, layout)
    # Shifts 13 to 19 of the chunk that is whole, and those of the last one that leave twelve tokens before the end.
    places = [32 + shift + chunk for shift in range(13, 20) for chunk in (0, 32) if 32 + shift + chunk <= 96 - 2 - 12]
    assert found.shape == (2, len(places))
    for column, place in enumerate(places):
        near = [p for p in range(place - 12, place + 13) if abs(p - place) >= 3]
        assert not any(p % 32 == 0 for p in near)
        np.testing.assert_allclose(found[:, column], values[:, place] - values[:, near].mean(axis=1))


def test_the_slope_in_surprisal_is_that_at_equal_rarity() -> None:
    layout, rng = Layout.of(512, 64), np.random.default_rng(1)
    rare = rng.uniform(2, 9, (8, 512))
    nats = rare + rng.normal(0, 2, rare.shape)  # rare tokens are surprising ones
    curves = np.exp(0.10 * nats + 0.30 * rare + rng.normal(0, 0.1, rare.shape) + np.linspace(3, 0, 512))
    assert per_nat(curves, nats, rare, layout) == pytest.approx(0.10, abs=0.005)
    assert per_nat(curves, nats, 0 * rare, layout) > 0.2  # what it would be without
    found = fit(*(inside(values, layout) for values in (np.log(curves), nats, rare)))
    assert found[2] == pytest.approx(0.30, abs=0.01)
    joined, rarer = layout.contrasts(nats), layout.contrasts(rare)
    by_hand = np.exp((found[0] + found[1] * joined + found[2] * rarer).mean())
    assert fitted(found, joined, rarer) == pytest.approx(by_hand)
    assert valley.joins(curves, layout) == pytest.approx(by_hand, rel=0.05)  # no other thing at joins was planted


def test_tokens_as_surprising_as_joins_are_neither_less_nor_more_so() -> None:
    joined, nats = np.linspace(0, 4, 401)[None], np.linspace(-10, 10, 2001)[None]
    outs = np.where(nats < 0.995, 5.0, np.where(nats > 3.005, 7.0, 0.5 * nats))
    assert as_surprising(outs, nats, joined) == pytest.approx(math.exp(1.0))
    classes = by_class(nats * 0.2, nats, 4)
    assert [math.log(ratio) for _, ratio in classes] == pytest.approx([0.2 * mean for mean, _ in classes])
    assert classes[0][0] == pytest.approx(-7.5, abs=0.1)


def test_frequency_is_counted_over_all_windows() -> None:
    found = rarity(Windows(np.array([[4, 4, 5], [4, 9, 5]])))
    np.testing.assert_allclose(found, -np.log(np.array([[3, 3, 2], [3, 1, 2]]) / 6))


def test_surprise_of_a_tiny_network(demo: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its readings against influence and surprisal measured here, and those that ``trained`` shares against that."""
    few = functools.partial(drawn_together, draws=20)
    for study in (surprise, trained):
        monkeypatch.setattr(study, "drawn_together", few)
    given = settings("surprise", model="demo/tiny", windows=3, **{**demo, "length": 120, "chunk": 30})
    found = STUDIES["surprise"](given, Silent())
    same = STUDIES["trained"]({**given, "block": 8}, Silent())
    assert found["joins, text"].value == pytest.approx(same["joins, pretrained, chunked"].value)
    network = ct.load(demo_path("demo/tiny"), weights="pretrained", dtype="float32")
    text = text_windows(given, network.tokenizer())["chunked"]
    mixed = shuffled_inside(text, 30, 0)
    layout = Layout.of(120, 30)
    logs = [np.log(norms(ct.measure_jacobian(network, windows, probes=1, seed=0))) for windows in (text, mixed)]
    nats = [surprisal(network, windows) for windows in (text, mixed)]
    assert np.exp(by_hand(logs[1], layout).mean()) == pytest.approx(found["joins, shuffled"].value, rel=1e-5)
    ratio = np.exp(by_hand(logs[0], layout).mean() - by_hand(logs[1], layout).mean())
    assert found["joins, text over shuffled"].value == pytest.approx(ratio, rel=1e-5)
    for kind, own in zip(("text", "shuffled"), nats, strict=True):
        assert found[f"surprise at joins, {kind}"].value == pytest.approx(by_hand(own, layout).mean(), rel=1e-4)
    lost = np.nanmean(nats[1]) - np.nanmean(nats[0])
    assert found["nats lost by shuffling"].value == pytest.approx(lost, rel=1e-4)
    counts = Counter(text.ids.ravel().tolist())
    rare = -np.log(np.array([[counts[int(one)] for one in row] for row in text.ids]) / text.ids.size)
    places = [p for p in range(30, 120 - 13) if 13 <= p % 30 <= 17]
    outs, s, r = (by_hand(values, layout, places) for values in (logs[0], nats[0], rare))
    normal = np.stack([np.ones(s.size), s.ravel(), r.ravel()])
    solved = np.linalg.solve(normal @ normal.T, normal @ outs.ravel())
    assert found["log influence per nat"].value == pytest.approx(solved[1], rel=1e-3, abs=1e-6)
    at = by_hand(nats[0], layout), by_hand(rare, layout)
    expected = np.exp((solved[0] + solved[1] * at[0] + solved[2] * at[1]).mean())
    assert found["joins, as tokens inside have it"].value == pytest.approx(expected, rel=1e-4)
    low, high = np.quantile(at[0], [0.25, 0.75])
    alike = {"middle half of joins": (by_hand(logs[0], layout), at[0]), "as surprising inside": (outs, s)}
    for name, (one, own) in alike.items():
        kept = one[(own >= low) & (own <= high)]
        assert found[name].value == pytest.approx(np.exp(kept.mean()), rel=1e-4)
    assert [name for name, *_ in found.rows] == ["inside"] * 8 + ["joins"] * 4


def by_hand(values: Any, layout: Layout, places: Any = None) -> Any:
    """Values at places, by default the joins, less the mean of those 3 to 12 tokens away that are no join."""
    columns = []
    for place in range(layout.chunk, layout.length - 13, layout.chunk) if places is None else places:
        near = [p for p in range(place - 12, place + 13) if abs(p - place) >= 3 and p % layout.chunk]
        columns.append(values[:, place] - values[:, near].mean(axis=1))
    return np.stack(columns, axis=1)


def test_a_byte_is_a_token() -> None:
    tokenizer, text = byte_tokenizer(), "héllo,\n  wörld €"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(tokenizer) == 256
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids) == text


def taught(demo: dict[str, Any], *, layers: int, seeds: list[int], steps: int) -> dict[str, Any]:
    """Settings of ``order_learned`` at a tiny size, measured at birth and at the end."""
    network = {**settings("order_learned")["network"], "hidden_size": 32, "num_hidden_layers": layers,
               "intermediate_size": 32 * layers, "vocab_size": WORDS + 3, "initializer_range": 0.1}  # fmt: skip
    return settings("order_learned", tokenizer="demo/tiny", network=network, seeds=seeds, steps=steps,
                    marks=[0, steps], windows=3, training_documents=30, **demo)  # fmt: skip


def test_order_is_learned_where_it_can_be(demo: dict[str, Any]) -> None:
    """Bytes of a text that counts on: what follows is learned, unless it is shuffled; at birth nothing is."""
    given = taught(demo, layers=1, seeds=[0, 1], steps=120)
    found = STUDIES["order-learned"](given, Silent())
    born, ordered, mixed = (
        found[f"nats lost by shuffling at step {step}, {arm}"].value
        for step, arm in ((0, "bytes"), (120, "bytes"), (120, "shuffled bytes"))
    )  # fmt: skip
    assert abs(born) < 0.3
    assert abs(mixed) < 0.3 < ordered
    assert found["nats lost by shuffling at step 0, shuffled bytes"].value == pytest.approx(born)  # nothing taught yet
    rows = [dict(zip(found.fields, row, strict=True)) for row in found.rows]
    assert [(row["arm"], row["seed"], row["step"]) for row in rows] == [
        (arm, seed, step) for arm in ("tokens", "bytes", "shuffled bytes") for seed in (0, 1) for step in (0, 120)
    ]
    change = {
        arm: np.mean([row["smear 15%"] * (1 if row["step"] else -1) * 2 for row in rows if row["arm"] == arm])
        for arm in ("tokens", "bytes", "shuffled bytes")
    }  # fmt: skip
    assert found["change of smear 15%, tokens"].value == pytest.approx(change["tokens"])
    difference = change["bytes"] - change["shuffled bytes"]
    assert found["change of smear 15%, bytes less shuffled bytes"].value == pytest.approx(difference)


def test_a_run_on_tokens_by_another_way(demo: dict[str, Any]) -> None:
    """One run of the study against the same network trained here, on the windows that the split gives."""
    given = taught(demo, layers=2, seeds=[3, 4], steps=4)
    found = STUDIES["order-learned"](given, Silent())
    documents, tokenizer = read_documents(demo_path("demo/texts.jsonl")), word_tokenizer(WORDS, bos=False)
    split = split_documents(documents, tokenizer, length=64, count=30, seed=3)
    model = ct.load(given["network"], seed=3)
    trainer, draws = Trainer(model, Recipe(4)), np.random.default_rng([3, 0])
    for _ in range(4):
        trainer.step(split.training.window(draws)[None])
    joined = chunked_windows(split.held_out, tokenizer, chunk=16, length=64, count=3, seed=3)
    long = [ids for one in split.held_out if len(ids := tokenizer(one.text)["input_ids"]) >= 64][:3]
    places = np.random.default_rng(3)
    starts = [int(places.integers(0, len(ids) - 63)) for ids in long]
    single = Windows(np.array([ids[first : first + 64] for ids, first in zip(long, starts, strict=True)]))
    curves = norms(ct.measure_jacobian(model, joined, probes=1, seed=3))
    smear = np.log10(norms(ct.measure_jacobian(model, single, probes=1, seed=3))).mean(axis=0)
    row = next(dict(zip(found.fields, r, strict=True)) for r in found.rows if r[:3] == ("tokens", 3, 4))
    assert row["joins"] == pytest.approx(valley.joins(curves, Layout.of(64, 16)), rel=1e-5)
    assert row["smear 15%"] == pytest.approx(smear[54:63].mean() - smear[45:54].mean(), abs=1e-6)
    nats = surprisal(model, joined)
    assert row["surprise at joins"] == pytest.approx(surprise_at_joins(nats, Layout.of(64, 16)), rel=1e-5)
    slope = per_nat(curves, nats, rarity(joined), Layout.of(64, 16))
    assert row["log influence per nat"] == pytest.approx(slope, rel=1e-4)


def test_bytes_are_those_of_the_same_documents(demo: dict[str, Any]) -> None:
    given = settings("order_learned", tokenizer="demo/tiny", training_documents=30, **demo)
    _, held_out, _ = order_learned._text(given, "tokens", 2)
    tokenizer, also_held, in_order = order_learned._text(given, "bytes", 2)
    _, _, mixed = order_learned._text(given, "shuffled bytes", 2)
    assert [one.name for one in also_held] == [one.name for one in held_out]
    texts = {one.text for one in read_documents(demo_path("demo/texts.jsonl")).read(Counter())}
    trained_on = texts - {one.text for one in held_out}
    assert len(trained_on) == 30
    for _ in range(5):
        window, other = in_order(), mixed()
        assert (np.sort(window) == np.sort(other)).all()
        assert (window != other).any()
        piece = tokenizer.decode(window.tolist())
        assert any(piece in text for text in trained_on)
