"""Causes of learning by position: gradients against differences, teaching on a known schedule, a small run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
import catenary.reproduce.studies
from catenary.learning import SMOOTH, Lesson
from catenary.reproduce.finding import STUDIES
from catenary.reproduce.first_gradient import first_gradient, loss_gradient, signal
from catenary.reproduce.pupils import fresh, half_times, influence, learning_config, taught
from catenary.reproduce.studies import learning_causes
from catenary.reproduce.studies.learning_causes import _elasticity
from catenary.study.config import study_config
from catenary.study.observer import Silent
from catenary.study.pupil import CLIP, Pupil
from catenary.study.tasks import VALUES, Batch, Task, find_task

L = 16
LOOKUP = find_task("lookup")


@pytest.fixture
def pupil() -> Pupil:
    return fresh(study_config({"model": "preset:toy", "length": L, "seed": 0}), 3, 0.1, "sgd")


class Fixed:
    """A task that draws one batch only, so that both halves of a gradient are the same windows."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def draw(self, *_: Any) -> Batch:
        return self.batch

    def ask(self, keys: Any, gold: Any) -> Any:
        return LOOKUP.ask(keys, gold)


def moved(pupil: Pupil, direction: list[torch.Tensor], by: float) -> None:
    with torch.no_grad():
        for weight, part in zip(pupil.weights, direction, strict=True):
            weight += by * part


def slope_along(pupil: Pupil, value: Any) -> float:
    """Size of a gradient by central differences along it: no backward pass in what is compared."""
    found = torch.autograd.grad(value(), pupil.weights, allow_unused=True)
    unit = [torch.zeros_like(w) if g is None else g for g, w in zip(found, pupil.weights, strict=True)]
    size = math.sqrt(sum(float(g.double().pow(2).sum()) for g in unit))
    unit, step = [g / size for g in unit], 0.02
    moved(pupil, unit, step)
    above = float(value().detach())
    moved(pupil, unit, -2 * step)
    below = float(value().detach())
    moved(pupil, unit, step)
    return (above - below) / (2 * step)


def test_gradients_at_birth_against_differences(pupil: Pupil) -> None:
    rng = np.random.default_rng(0)
    batch = LOOKUP.draw(np.full(12, 4), L, rng)
    task: Any = Fixed(batch)
    assert loss_gradient(pupil, task, 4, L, 24, rng) == pytest.approx(
        slope_along(pupil, lambda: pupil.loss(batch)), rel=0.02
    )
    found = first_gradient(pupil, task, 4, L, 24, rng)
    assert found.norm == pytest.approx(slope_along(pupil, lambda: signal(pupil, batch, 4)), rel=0.02)
    # Other windows in the halves: the product is the square's mean without what windows add.
    free = first_gradient(pupil, LOOKUP, 4, L, 64, rng)
    assert free.norm == pytest.approx(found.norm, rel=0.25)
    # At birth the question hardly matters; a question that is not exchanged adds nothing at all.
    assert abs(free.question) < 0.05 * free.norm**2

    class Same(Fixed):
        def ask(self, keys: Any, gold: Any) -> Any:
            return self.batch.keys[:, -1]

    unasked: Any = Same(batch)
    assert first_gradient(pupil, unasked, 4, L, 24, rng).question == 0.0


def test_the_signal_by_its_definition(pupil: Pupil) -> None:
    rng = np.random.default_rng(1)
    batch = LOOKUP.draw(np.full(3, 9), L, rng)
    total = 0.0
    for window in range(3):
        for shown in range(VALUES):
            values = batch.values[window : window + 1].copy()
            values[0, 5] = shown
            one = Batch(batch.keys[window : window + 1], values, batch.gold[:1], batch.answers[:1])
            logits = pupil.logits(one)[0].detach().double().numpy()
            total += logits[shown] - logits.mean()
    assert float(signal(pupil, batch, 5).detach()) == pytest.approx(total / (3 * VALUES), abs=2e-6)

    class Known:
        def logits(self, every: Batch) -> torch.Tensor:
            of_window = torch.arange(len(every.gold))[:, None] // VALUES
            shown = torch.from_numpy(every.values[:, 5])[:, None]
            value = torch.arange(VALUES)[None]
            return 3.0 * of_window + shown**2 + torch.sin(5.0 * value) + 2.0 * (shown == value)

    known: Any = Known()
    assert float(signal(known, batch, 5)) == pytest.approx(2.0 * (1 - 1 / VALUES), rel=1e-5)


def test_influence_on_the_tasks_windows_against_all_cotangents(pupil: Pupil) -> None:
    """The vectors that are fed are made the network's embedding, and measured there with every basis cotangent."""
    batch = LOOKUP.draw(np.array([4]), L, np.random.default_rng(2))
    model = ct.load("preset:toy", seed=3, vocabulary=L)
    model.embedding_weight.data.copy_(pupil.vectors(batch)[0].detach())
    exact = ct.measure_jacobian(model, np.arange(L)[None], method="exact").profile("rms").values
    found = influence(pupil, batch, 600, 0)
    assert np.abs(np.log(found / exact)).max() < 0.1


class Scheduled:
    """Answers about position p are right from update ``of[p]`` on."""

    def __init__(self, of: dict[int, int]) -> None:
        self.of, self.updates = of, 0

    def update(self, batch: Batch) -> Any:
        hits = np.array([self.updates >= self.of[int(p)] for p in batch.gold])
        self.updates += 1
        return hits


def test_teaching_on_a_known_schedule() -> None:
    birth = np.array([8.0, 4.0, 2.0])
    at = [round(320 / b) for b in birth]
    pupil: Any = Scheduled(dict(enumerate(at)))
    left: list[int] = []
    lesson = taught(pupil, LOOKUP, [np.array([p]) for p in range(3)], L, 400, np.random.default_rng(0), birth=birth,
                    leaving=lambda: left.append(pupil.updates))  # fmt: skip
    # Accuracy goes from 0 to 1 at once, so the middle of the smoothing window is there at one half.
    assert np.abs(lesson.half - at).max() < 1.0
    assert pupil.updates == pytest.approx(at[-1] + SMOOTH / 2, abs=1.5)
    assert lesson.asked.sum(axis=1) == pytest.approx(np.full(pupil.updates, 32.0))
    # A third of the answers from update 40 on: a quarter of SMOOTH updates' are right when 3/4 of them lie behind it.
    assert left == [pytest.approx(40 + 0.75 * SMOOTH, abs=2)]
    assert _elasticity(birth, lesson.half) == pytest.approx(-1.0, abs=0.02)
    assert _elasticity(birth, lesson.half) == pytest.approx(np.polyfit(np.log(birth), np.log(lesson.half), 1)[0])
    never: Any = Scheduled({0: 10, 1: 10_000})
    both = taught(never, LOOKUP, [np.array([0]), np.array([1])], L, 60, np.random.default_rng(0), birth=birth[:2])
    assert math.isfinite(both.half[0])
    assert math.isnan(both.half[1])


@pytest.mark.parametrize("at", [2, 5, 9, 12, 40])
def test_a_time_within_the_first_updates(at: int) -> None:
    """A step from chance to 1 is found where it lies; windows of ``SMOOTH`` that the start cuts short miss it."""
    accuracy = np.where(np.arange(80) < at, 1 / VALUES, 1.0)[:, None]
    lesson = Lesson(0, np.ones(1), 32 * accuracy, np.full((80, 1), 32.0))
    assert float(half_times(lesson)[0]) == pytest.approx(at - 0.5, abs=0.5)
    if at <= 5:
        assert lesson.half[0] == 0.5, "half right on average over the first 13 updates"
    # At four answers an update the window is that of an eighth.
    eighth = Lesson(0, np.ones(1), 4 * accuracy, np.full((80, 1), 4.0))
    assert half_times(eighth) == pytest.approx(eighth.half, abs=1e-9)


def test_times_of_noisy_rises_against_a_logistic_fit() -> None:
    """The middle of a logistic rise, found by likelihood from all answers: nothing is averaged over updates there."""
    rng, step = np.random.default_rng(5), np.arange(120)
    middles = np.linspace(2, 110, 433)
    rises = np.minimum(1 / VALUES + (1 - 1 / VALUES) / (1 + np.exp(-(step - middles[:, None]) / 2)), 1 - 1e-12)
    for middle in (6.0, 15.0, 60.0):
        truth = 1 / VALUES + (1 - 1 / VALUES) / (1 + np.exp(-(step - middle) / 2))
        right = rng.binomial(32, truth, (40, 120)).astype(float)
        fitted = middles[(right @ np.log(rises).T + (32 - right) @ np.log1p(-rises).T).argmax(axis=1)]
        half = fitted + 2 * math.log((0.5 - 1 / VALUES) / 0.5)  # chance is not 0, so one half comes before the middle
        times = [float(half_times(Lesson(0, np.ones(1), r[:, None], np.full((120, 1), 32.0)))[0]) for r in right]
        assert np.mean(times) == pytest.approx(half.mean(), abs=0.3)
    never = Lesson(0, np.ones(1), np.zeros((60, 1)), np.full((60, 1), 32.0))
    assert math.isnan(half_times(never)[0])


def test_descent_with_a_clipped_gradient(pupil: Pupil) -> None:
    before = [weight.detach().clone() for weight in pupil.weights]
    batch = LOOKUP.draw(np.full(8, 3), L, np.random.default_rng(4))
    answers = pupil.right(batch)
    assert (pupil.update(batch) == answers).all()
    step = math.sqrt(sum(float((w - b).detach().double().pow(2).sum())
                         for w, b in zip(pupil.weights, before, strict=True)))  # fmt: skip
    assert step == pytest.approx(0.1 * CLIP, rel=1e-3), "the gradient at birth is larger than the bound"
    pupil.restart()
    mean = [pupil.update(batch).mean() for _ in range(60)]
    assert mean[-1] == 1.0


def test_a_small_run_has_every_link() -> None:
    settings = {
        "task": "place", "model": "preset:toy", "length": L, "bin": 4, "stride": 2, "positions": [0, 4, 8], "seeds": 2,
        "most": 27, "few": True, "after": True, "windows": 64, "signal_windows": 16, "rates": {"adam": 3e-3},
    }  # fmt: skip
    found = STUDIES["learning-causes"](settings, Silent())
    assert found["answer gradient"].value == pytest.approx(1.0, abs=0.3)
    assert abs(found["question in the answer gradient"].value) < 0.3  # 16 windows a position
    assert found["spread at birth"].value > 1.2
    arms = {row[1] for row in found.rows}
    assert arms == {"apart, adam", "few together, adam", "together, adam", "after, adam"}
    for name in ("together, adam", "after, adam"):
        assert math.isnan(found[name].value), "27 updates are too few"
        assert found[name].reason
    assert isinstance(LOOKUP, Task)


def test_arms_are_compared_position_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps at known updates: ratios are those of the same positions, though all together takes far longer."""
    apart = {0: 13, 4: 41, 8: 55}
    times = dict(apart)  # from birth; a position that is asked about again is asked about after the others

    def known(_pupil: Any, _task: Any, columns: Any, *_: Any, **__: Any) -> Lesson:
        if len(columns) == 1:
            position = int(columns[0][0])
            at = [times.pop(position) if position in times else apart[position] // 2]
        elif len(columns) == 3:
            at = [3 * apart[int(c[0])] + 10 * (c[0] == 0) for c in columns]
        else:
            at = [400] * len(columns)
        right = np.where(np.arange(500)[:, None] < np.array(at), 0.0, 32.0 / len(at))
        return Lesson(0, np.ones(len(at)), right, np.full(right.shape, 32.0 / len(at)))

    birth = 20.0 / (1 + np.arange(L))
    monkeypatch.setattr(learning_causes._Seed, "_influence", lambda *_: birth)
    monkeypatch.setattr(learning_causes._Seed, "_gradients", lambda *_: None)
    monkeypatch.setattr(learning_causes, "taught", known)
    settings = {
        "task": "place", "model": "preset:toy", "length": L, "bin": 4, "stride": 2, "positions": [0, 4, 8],
        "most": 500, "few": True, "after": True, "windows": 64, "signal_windows": 16, "rates": {"adam": 3e-3},
    }  # fmt: skip
    with learning_config(settings) as (config, _):
        numbers, _rows = learning_causes._Seed(settings, config, 0).measured()
    # A step in front of update t is half way at t - 1/2 in every window's width.
    few, first = np.array([3 * 13 + 10, 3 * 41, 3 * 55]) - 0.5, np.array([13, 41, 55]) - 0.5
    assert numbers["few together over apart, adam"] == pytest.approx(np.prod(few / first) ** (1 / 3), rel=1e-6)
    assert numbers["few together over apart without the first position, adam"] == pytest.approx(
        math.sqrt(122.5 * 164.5 / (40.5 * 54.5)), rel=1e-6
    )
    after = np.array([6, 20, 27]) - 0.5
    assert numbers["after over apart, adam"] == pytest.approx(np.prod(after / first) ** (1 / 3), rel=1e-6)
    assert numbers["apart, adam"] == pytest.approx(np.polyfit(np.log([20, 4, 20 / 9]), np.log(first), 1)[0])
    assert numbers["apart without the first position, adam"] == pytest.approx(
        math.log(54.5 / 40.5) / math.log((20 / 9) / 4)
    )
