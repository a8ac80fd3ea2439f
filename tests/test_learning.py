"""Learning by position: tasks by hand, steps to half and elasticity of planted lessons, and a small run end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import catenary as ct
from catenary.errors import InvalidInput
from catenary.learning import SMOOTH, Learning, Lesson
from catenary.page.exhibit import write_exhibit
from catenary.page.learning import learning_exhibit, sentence
from catenary.study.config import study_config
from catenary.study.learning import Assignment, bin_edges, learn_by_position
from catenary.study.tasks import KEYS, TASKS, VALUES, balanced, find_task, places
from catenary.study.units import derived_seed

BINS = 8


def lesson(seed: int, birth: np.ndarray, half: np.ndarray, noise: bool = True) -> Lesson:
    """A lesson whose accuracy goes from chance to 1 along a logistic that crosses one half at ``half`` updates."""
    rng = np.random.default_rng(seed)
    at = np.arange(900)[:, None]
    # p = 1/8 + 7/8 s, with s = 3/7 at the crossing.
    accuracy = 1 / 8 + 7 / 8 / (1 + np.exp(-(at - half) / 20 + np.log(4 / 3)))
    asked = np.full(accuracy.shape, 4.0)
    right = rng.binomial(4, accuracy) if noise else 4 * accuracy
    return Lesson(seed, birth, right.astype(float), asked)


def learning(*lessons: Lesson) -> Learning:
    return Learning("lookup", "words", "tiny", 64, np.arange(0, 65, 8), lessons)


def test_steps_to_half_of_a_known_curve() -> None:
    half = np.linspace(300, 600, BINS)
    exact = lesson(0, np.ones(BINS), half, noise=False)
    assert np.allclose(exact.half, half, atol=2.0)  # smoothing bends a logistic by about that
    drawn = np.mean([lesson(s, np.ones(BINS), half).half for s in range(12)], axis=0)
    assert np.allclose(drawn, half, atol=12)


def test_accuracy_is_the_plain_moving_share() -> None:
    rng = np.random.default_rng(3)
    asked = rng.integers(0, 3, (80, 2)).astype(float)
    right = np.minimum(asked, rng.integers(0, 3, (80, 2))).astype(float)
    found = Lesson(0, np.array([1.0, 2.0]), right, asked).accuracy
    for t in (0, 5, 40, 79):
        part = slice(max(0, t - SMOOTH // 2), t + SMOOTH // 2 + 1)
        assert np.allclose(found[t], right[part].sum(axis=0) / np.maximum(asked[part].sum(axis=0), 1))


@pytest.mark.parametrize("planted", [-1.0, -0.3, 0.0, 0.4])
def test_a_planted_elasticity_is_found(planted: float) -> None:
    rng = np.random.default_rng(7)
    lessons = []
    for seed in range(4):
        birth = np.exp(rng.normal(0, 0.5, BINS))
        half = 400 * (birth / np.exp(np.log(birth).mean())) ** planted
        lessons.append(lesson(seed, birth, np.clip(half, 60, 840), noise=False))
    found = learning(*lessons)
    if planted in (-0.3, 0.0, 0.4):
        assert found.elasticity.value == pytest.approx(planted, abs=0.02)
    words = sentence(found)
    assert ("is not proportional" in words) == (planted != -1.0)
    by_polyfit = np.mean([np.polyfit(np.log(s.birth), np.log(s.half), 1)[0] for s in lessons])
    assert found.elasticity.value == pytest.approx(by_polyfit, rel=1e-9)


def test_what_is_not_learned_is_left_out_and_said() -> None:
    good = lesson(0, np.linspace(1, 2, BINS), np.full(BINS, 400.0))
    never = Lesson(1, good.birth, np.zeros((900, BINS)), good.asked)
    found = learning(good, never)
    assert len(found.learned) == 1
    assert found.elasticity.low is None
    assert "without an interval" in sentence(found)
    exhibit = learning_exhibit(found, {})
    assert any("1 of 2 seeds did not learn" in note for note in exhibit.notes)
    assert "not reached" in exhibit.rows[3]
    nothing = learning(never)
    assert nothing.elasticity.reason
    assert sentence(nothing).startswith("No elasticity: no seed learned")
    assert json.dumps(nothing.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", ["lookup", "place"])
def test_tasks_by_hand(name: str) -> None:
    rng = np.random.default_rng(0)
    gold = balanced(places(32, 1), 62, rng)
    assert sorted(gold) == sorted([*range(31), *range(31)])
    batch = TASKS[name].draw(gold, 32, rng)
    for b in range(62):
        keys, values = batch.keys[b], batch.values[b]
        assert len(set(keys[:-1])) == 31
        assert keys[:-1].max() < KEYS
        assert values[:-1].max() < VALUES
        assert values[-1] == VALUES
        asked = keys[-1]
        where = int(np.flatnonzero(keys[:-1] == asked)[0]) if name == "lookup" else int(asked) - KEYS
        assert where == batch.gold[b]
        assert batch.answers[b] == values[where]
    counts = np.bincount(np.concatenate([TASKS[name].draw(gold, 32, rng).answers for _ in range(40)]), minlength=VALUES)
    assert counts.min() > 0.7 * counts.mean(), "answers are uniform, chance is 1/8"


def test_bins_and_refusals() -> None:
    assert bin_edges(64, Assignment()).tolist() == [0, 8, 16, 24, 32, 40, 48, 56, 63]
    assert bin_edges(66, Assignment()).tolist() == [0, 8, 16, 24, 32, 40, 48, 56, 65]  # no bin of one position
    for length, wrong in ((64, {"stride": 9}), (64, {"bin": 32})):
        with pytest.raises(InvalidInput, match="bin must be >= the stride"):
            bin_edges(length, Assignment(**wrong))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="unknown task 'plaice'"):
        find_task("plaice")
    with pytest.raises(InvalidInput, match=r"length must be in 16\.\.128"):
        learn_by_position(study_config({"model": "preset:toy", "length": 256}), Assignment(), Path("nowhere"))


def test_a_small_run_keeps_its_seeds_and_measures_birth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = study_config({"model": "preset:toy", "length": 16})
    assignment = Assignment(task="place", seeds=2, most=12, bin=4, stride=2, batch=8)
    found = learn_by_position(config, assignment, tmp_path)
    assert [s.seed for s in found.lessons] == [0, 1]
    assert found.lessons[0].right.shape == (12, 4)
    assert found.lessons[0].asked.sum() == 12 * 8
    assert not np.allclose(found.lessons[0].birth, found.lessons[1].birth, rtol=1e-3)
    # By another route: all cotangents in place of probes, on the same vectors; bins written out.
    for one in found.lessons:
        model = ct.load("preset:toy", seed=one.seed, vocabulary=16)
        windows = ct.random_windows(16, 8, derived_seed(one.seed, "birth"))
        exact = ct.measure_jacobian(model, windows, method="exact", batch_size=8).profile("rms").values
        for k, (a, b) in enumerate(((0, 4), (4, 8), (8, 12), (12, 15))):
            assert abs(np.log10(one.birth[k] / np.exp(np.log(exact[a:b]).mean()))) < 0.05
    monkeypatch.setattr("catenary.study.learning._learn", lambda *_: pytest.fail("learned again"))
    again = learn_by_position(config, assignment, tmp_path)
    assert all(np.array_equal(a.right, b.right) for a, b in zip(found.lessons, again.lessons, strict=True))
    page = write_exhibit(learning_exhibit(found, {}), tmp_path).read_text(encoding="utf-8")
    assert "No elasticity" in page


def test_the_pupil_can_learn_what_needs_no_attention(tmp_path: Path) -> None:
    """An update does lower the loss: with one position to ask about and 8 windows, the batch is learned by heart."""
    from catenary.study.pupil import Pupil

    model = ct.load("preset:toy", seed=0, vocabulary=16)
    rng = np.random.default_rng(0)
    batch = TASKS["lookup"].draw(np.full(8, 14), 16, rng)
    pupil = Pupil(model, 16, 0, 3e-3)
    right = [pupil.update(batch).mean() for _ in range(40)]
    assert right[-1] == 1.0
