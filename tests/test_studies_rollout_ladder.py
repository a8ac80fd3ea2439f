"""The ladders between the rollout and the influence: each rung by another route, and what each must leave alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

import catenary as ct
from catenary.measure.pathways import measure_paths
from catenary.reproduce.experiment import experiments_folder, read_experiment
from catenary.reproduce.finding import STUDIES
from catenary.reproduce.resampling import drawn_together, norms
from catenary.reproduce.rungs import by_distance, sizes_row, squares_row, steps_of, sunk, values_row
from catenary.reproduce.studies import monotone_content, rollout_ladder, rollout_measured
from catenary.reproduce.turned import ALONE, EACH, FIXED, GAINS, ONE, TURNS, WHOLE, path_norms
from catenary.study.observer import Silent
from catenary.text.windows import Windows
from small_tokenizers import word_tokenizer
from tiny_models import TINY, token_windows

LENGTH = 12


@pytest.fixture(scope="module")
def network() -> Any:
    return ct.load({**TINY["llama"], "vocab_size": 50, "initializer_range": 0.2}, dtype="float64", seed=3)


@pytest.fixture(scope="module")
def windows() -> Windows:
    return token_windows(2, LENGTH)


def causal(count: int, seed: int = 0) -> list[Any]:
    drawn = np.tril(np.random.default_rng(seed).random((count, LENGTH, LENGTH)) ** 3)
    return list(drawn / drawn.sum(axis=2, keepdims=True))


def test_rows_in_sizes_are_the_rollout_and_rows_in_squares_a_dense_product(network: Any, windows: Windows) -> None:
    strengths = np.array([0.7, 0.2])
    known = np.sqrt(ct.measure_rollout(network, windows, schedule=strengths.tolist()).energy[0, 0, 0, :, 0])
    for index, steps in enumerate(steps_of(network, windows)):
        maps = [step.attention for step in steps]
        np.testing.assert_allclose(sizes_row(maps, strengths), known[index], rtol=1e-6)
    maps, strengths = causal(3), np.array([0.5, 0.3, 0.1])
    layers = [(1 - s) * np.eye(LENGTH) + s * one for one, s in zip(maps, strengths, strict=True)]
    dense = np.linalg.multi_dot([layer**2 for layer in layers[::-1]])
    np.testing.assert_allclose(squares_row(maps, strengths) ** 2, dense[-1], rtol=1e-12)


def test_squares_are_what_random_signs_add_up_to() -> None:
    """Each path with a sign of its own: the mean square over signs is the row in squares, the plain sum is in sizes."""
    maps, strengths, rng = causal(2, seed=1), np.array([0.5, 0.3]), np.random.default_rng(2)
    layers = [(1 - s) * np.eye(LENGTH) + s * one for one, s in zip(maps, strengths, strict=True)]
    drawn = np.stack([
        np.linalg.multi_dot([layer * rng.choice([-1.0, 1.0], layer.shape) for layer in layers[::-1]])[-1]
        for _ in range(20000)
    ])
    np.testing.assert_allclose(np.sqrt((drawn**2).mean(axis=0)), squares_row(maps, strengths), rtol=0.05)


def test_the_value_maps_are_the_branch_differentiated_at_frozen_weights(network: Any, windows: Windows) -> None:
    import torch

    from catenary.measure.feed import prepare
    from catenary.models.attention_calls import frozen_weights
    from catenary.models.replay import record_layers

    feed, width = prepare(network, windows), network.width
    replay = record_layers(network.anatomy, feed.vectors([1]), feed.mask([1]), feed.positions([1]))
    steps = list(steps_of(network, windows))[1]
    for number, step in enumerate(steps):
        call, layer = replay.calls[number], network.anatomy.layers[number]

        def branch(x: Any, call: Any = call, layer: Any = layer) -> Any:
            options = dict(call.options)
            with frozen_weights(network.anatomy, (1, LENGTH)):
                seen: list[Any] = []
                hook = layer.self_attn.register_forward_hook(lambda *given: seen.append(given[-1][0]))
                layer(x, *call.arguments, **options)
                hook.remove()
            return seen[0][0]

        jacobian = torch.autograd.functional.jacobian(branch, call.stream.clone())[:, :, 0]  # i, d, j, d
        found = jacobian.pow(2).sum(dim=(1, 3)).detach().numpy() / width
        np.testing.assert_allclose(step.moved(), found, rtol=1e-4)
        lowered = step.moved(first_as_others=True)
        np.testing.assert_allclose(lowered[:, 1:], step.moved()[:, 1:])
        np.testing.assert_allclose(lowered[:, 0] * step.norms[1:].mean() ** 2, step.values[:, 0])
    dense = np.linalg.multi_dot([np.eye(LENGTH) + step.moved() for step in steps[::-1]])
    np.testing.assert_allclose(values_row(steps) ** 2, dense[-1], rtol=1e-9)


def test_what_is_left_of_the_mean_attention() -> None:
    (mean,) = causal(1, seed=3)
    share = mean[1:, 0].mean()
    for made in (sunk(mean), by_distance(mean)):
        np.testing.assert_allclose(made.sum(axis=1), 1)
        np.testing.assert_allclose(made[1:, 0], share)
        assert np.allclose(np.triu(made, 1), 0)
    assert np.ptp(sunk(mean)[-1, 1:]) == pytest.approx(0, abs=1e-15)
    # Attention that depends on the distance alone, at one share of the first, comes back as it was in its last row.
    kernel = 1 / (1 + np.arange(LENGTH))
    rows = np.zeros((LENGTH, LENGTH))
    rows[0, 0], rows[1:, 0] = 1, 0.4
    for i in range(1, LENGTH):
        rows[i, 1 : i + 1] = kernel[i - np.arange(1, i + 1)]
    ratios = by_distance(rows)[-1, 1:] / kernel[LENGTH - 1 - np.arange(1, LENGTH)]
    np.testing.assert_allclose(ratios, ratios[0])


def test_paths_through_the_network(network: Any, windows: Windows) -> None:
    answers, sure = rollout_measured.likeliest(network, windows)
    slopes, frobenius = path_norms(network, windows, answers, sure, Silent())
    known = rollout_measured.influences(network, windows, Silent())
    np.testing.assert_allclose(slopes[WHOLE], known["influence"], rtol=1e-6)
    np.testing.assert_allclose(frobenius[WHOLE], known["Jacobian"], rtol=1e-6)
    for path, part in ((ALONE, "value-no-ffn"), (FIXED, "value")):
        other = norms(measure_paths(network, windows, parts=[part], probes=1))
        np.testing.assert_allclose(frobenius[path], other, rtol=1e-6)
    # At the last position only residuals and gains meet: all paths but random ones start there alike.
    for path in (GAINS, TURNS, ONE, EACH):
        assert np.isfinite(frobenius[path]).all()
        assert np.abs(frobenius[path] / frobenius[ALONE] - 1).max() > 1e-3


def test_without_a_feed_forward_its_gains_and_turns_do_nothing(windows: Windows) -> None:
    network = ct.load({**TINY["llama"], "vocab_size": 50, "initializer_range": 0.2}, dtype="float64", seed=3)
    for layer in network.anatomy.layers:
        layer.mlp.down_proj.weight.data *= 0
        layer.self_attn.o_proj.weight.data *= 0
    answers, sure = rollout_measured.likeliest(network, windows)
    _, without = path_norms(network, windows, answers, sure, Silent())
    # Without branches every path, turned or not, is the identity in length.
    for path in (WHOLE, FIXED, ALONE, GAINS, TURNS, ONE, EACH):
        np.testing.assert_allclose(without[path], without[WHOLE], rtol=1e-9, atol=1e-15)


def test_a_doubling_feed_forward_has_gains_and_no_turns(
    network: Any, windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the feed-forward only stretches by 2, its gains are all it does and its turns are nothing."""
    from catenary.measure.pathways_terms import ONLY_FEED_FORWARD, LayerVjps

    pull = LayerVjps.pull

    def doubled(self: Any, layer: int, mode: Any, given: Any) -> Any:
        return [2 * c for c in given] if mode == ONLY_FEED_FORWARD else pull(self, layer, mode, given)

    monkeypatch.setattr(LayerVjps, "pull", doubled)
    answers, sure = rollout_measured.likeliest(network, windows)
    _, found = path_norms(network, windows, answers, sure, Silent())
    depth = len(network.anatomy.layers)
    np.testing.assert_allclose(found[GAINS], 2**depth * found[ALONE], rtol=1e-9)
    np.testing.assert_allclose(found[FIXED], found[GAINS], rtol=1e-9)
    np.testing.assert_allclose(found[TURNS], found[ALONE], rtol=1e-9)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    words = 60
    ct.load({**TINY["llama"], "vocab_size": words + 3}, seed=5).module.save_pretrained(tmp_path / "tiny")
    word_tokenizer(words).save_pretrained(tmp_path / "tiny")
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{n}" for n in rng.integers(0, words, 90)) for _ in range(60)]
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts), encoding="utf-8")
    monkeypatch.setenv("CATENARY_DEMO", str(tmp_path))
    return {"model": "demo/tiny", "documents": "demo/texts.jsonl", "length": 64, "windows": 4}


def test_the_ladder_runs_and_says_what_it_gained(demo: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def few(*given: Any, **options: Any) -> Any:
        return drawn_together(*given, **{**options, "draws": 20})

    monkeypatch.setattr(rollout_ladder, "drawn_together", few)
    settings = read_experiment(experiments_folder() / "2602.16837" / "rollout_ladder.toml").settings
    found = STUDIES["rollout-ladder"]({**settings, **demo}, Silent())
    column = {name: np.array([float(row[k] or 0) for row in found.rows]) for k, name in enumerate(found.fields)}
    gained = rollout_measured.binned(column[rollout_ladder.SQUARES], column["Jacobian"]) - rollout_measured.binned(
        column[rollout_ladder.SIZES], column["Jacobian"]
    )
    assert found["spearman gained by counting in squares, Jacobian, binned"].value == pytest.approx(gained)
    assert found["share of the first, Jacobian"].value == pytest.approx(
        column["Jacobian"][0] / column["Jacobian"].sum()
    )
    assert column[rollout_ladder.PRIOR].sum() == pytest.approx(1)

    def ranked(one: str, other: str) -> float:
        blocks = [np.log(column[name]).reshape(4, 16).mean(axis=1) for name in (one, other)]
        return float(spearmanr(*blocks).statistic)

    # Not divided by a ceiling of noise: the curves share windows.
    assert not [reading.name for reading in found.readings if "ceiling" in reading.name]
    own = f"spearman, {rollout_ladder.SIZES}, {ALONE}, binned"
    assert found[own].value == pytest.approx(ranked(rollout_ladder.SIZES, ALONE))
    for path in (FIXED, ALONE, GAINS, TURNS, ONE, EACH):
        assert found[f"spearman, {path}, Jacobian, binned"].value == pytest.approx(ranked(path, "Jacobian"))
    for step, without, having in (("turns at each position instead of one for all", ONE, EACH),
                                  ("the feed-forward's turns instead of its gains", GAINS, TURNS)):  # fmt: skip
        assert found[f"spearman gained by {step}, Jacobian, binned"].value == pytest.approx(
            ranked(having, "Jacobian") - ranked(without, "Jacobian")
        )
    # A row that no draw changes is the one whose share has no width, and its readings say so.
    for reading in found.readings:
        if re.fullmatch("share of the first, .*, Jacobian", reading.name):
            still = reading.low == pytest.approx(reading.high, abs=1e-12)
            assert still == ("the same in all draws" in reading.meaning), reading.name


def test_one_repeated_token_leaves_attention_to_the_distance(demo: dict[str, Any]) -> None:
    settings = read_experiment(experiments_folder() / "2602.16837" / "monotone_content.toml").settings
    found = STUDIES["monotone-content"]({**settings, **demo, "group": 2, "single": 2}, Silent())
    assert 0 <= found["violations, one token"].value <= 1
    one_head = {"num_attention_heads": 1, "num_key_value_heads": 1, "vocab_size": 50, "initializer_range": 0.2}
    network = ct.load({**TINY["llama"], **one_head}, dtype="float64", seed=3)
    same, other = (monotone_content.mean_maps(network, Windows(ids), 0) for ids in
                   (np.full((1, LENGTH), 7), token_windows(1, LENGTH).ids))  # fmt: skip
    for one, text in zip(same, other, strict=True):
        # A function of the distance over its sum: ratios within a row are the same in every row.
        ratios = [one[i, i - 1] / one[i, i - 2] for i in range(2, LENGTH)]
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)
        assert np.ptp([text[i, i - 1] / text[i, i - 2] for i in range(2, LENGTH)]) > 0.1


def test_violations_are_counted_over_triples_that_can_violate() -> None:
    (attention,) = causal(1, seed=4)
    sums = np.cumsum(attention, axis=1)
    triples = [(k, i, j) for k in range(LENGTH) for i in range(k + 1, LENGTH) for j in range(i + 1, LENGTH)]
    bad = sum(sums[j, k] > sums[i, k] + 1e-9 for k, i, j in triples)
    assert monotone_content.violations(attention) == pytest.approx(bad / len(triples))
    assert monotone_content.violations(np.tril(np.ones((9, 9))) / np.arange(1, 10)[:, None]) == 0
