"""The verdict on curves by slot: published curves, simulated shapes at a stated rate, flat curves rarely called a U."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from catenary.retrieval.records import MeanCurve
from catenary.retrieval.statistics import SlotVerdict, gaps_of_rows, judge_means, judge_slots, summarise
from catenary.retrieval.statistics.verdict import binomial_variance
from test_retrieval_statistics import QA, logp_rows, outcomes_of

X = np.linspace(0, 1, 10)

TWENTY = (0, 4, 9, 14, 19)
PAIRS = (0, 34, 69, 104, 139)


@pytest.mark.parametrize(
    ("name", "slots", "of", "means", "n", "shape", "words"),
    [
        ("GPT-3.5-Turbo", TWENTY, 20, (0.758, 0.572, 0.538, 0.554, 0.632), 2655, "U", "U, primacy stronger"),
        ("LongChat-13B-16K", TWENTY, 20, (0.686, 0.574, 0.553, 0.525, 0.550), 2655, "primacy",
         "primacy (last slot +0.025 over the minimum, not resolved)"),
        ("MPT-30B-Instruct", TWENTY, 20, (0.537, 0.518, 0.522, 0.527, 0.562), 2655, "recency",
         "recency (first slot +0.019 over the minimum, not resolved)"),
        ("Claude-1.3", TWENTY, 20, (0.599, 0.559, 0.568, 0.572, 0.601), 2655, "U", "U, shallow (.04)"),
        ("Llama-2-70B-chat", TWENTY, 20, (0.568, 0.533, 0.541, 0.597, 0.695), 2655, "U", "U, recency stronger"),
        ("MPT-30B-Instruct, key-value", PAIRS, 140, (1.0, 0.936, 0.886, 0.804, 0.962), 500, "U", "minimum at 75%"),
        ("LongChat-13B-16K, key-value", PAIRS, 140, (0.37, 0.382, 0.354, 0.656, 0.886), 500, "recency", "recency"),
        ("all right", PAIRS, 140, (1.0, 1.0, 1.0, 1.0, 1.0), 500, "ceiling", "ceiling"),
    ],
)  # fmt: skip
def test_published_curves(
    name: str, slots: tuple[int, ...], of: int, means: tuple[float, ...], n: int, shape: str, words: str
) -> None:
    for seed in range(5):
        verdict = judge_means(MeanCurve(slots, means, n, of, name=name), seed=seed)
        assert verdict.shape == shape
        assert words in verdict.words
        assert any("is unknown" in line for line in verdict.evidence)


def test_the_same_curve_of_fewer_questions_has_no_verdict() -> None:
    few = judge_means(MeanCurve(TWENTY, (0.599, 0.559, 0.568, 0.572, 0.601), 100, 20))
    assert few.shape == "no verdict"
    assert "100 samples would show a difference of" in few.words


def test_published_means_with_their_own_spread() -> None:
    curve = MeanCurve((0, 1, 2), (-0.1, -0.5, -0.4), 100, 3, binary=False, sd=(0.2, 0.2, 0.2))
    assert judge_means(curve).words == "U, primacy stronger"
    assert judge_means(MeanCurve((0, 1, 2), (-0.1, -0.5, -0.4), 100, 3, False, (4.0,) * 3)).shape == "no verdict"


def binary_rows(generator: np.random.Generator, n: int, share: np.ndarray | float) -> np.ndarray:
    """0 or 1 of these shares; samples differ in difficulty, as a uniform shared by a sample's slots in part."""
    own, common = generator.random((n, 10)), generator.random((n, 1))
    level = np.where(generator.random((n, 10)) < 0.3, common, own)
    return (level < share).astype(np.float64)


def shapes(kind: str, n: int, runs: int, effect: np.ndarray | float = 0.0, seed: int = 0) -> Counter[str]:
    found: Counter[str] = Counter()
    for run in range(runs):
        generator = np.random.default_rng([seed, n, run])
        if kind == "logp":
            rows = logp_rows(n, int(generator.integers(1 << 30)), np.zeros(10) + effect - 0.8)
        else:
            rows = binary_rows(generator, n, float(kind) + effect)
        gaps = gaps_of_rows(rows, X, binary=kind != "logp", seed=run, draws=1000)
        found[judge_slots(gaps, tuple(range(10)), 10, n, binary=kind != "logp").shape] += 1
    return found


@pytest.mark.parametrize("kind", ["logp", "0.5", "0.9"])
@pytest.mark.parametrize("n", [10, 60])
def test_flat_curves_are_rarely_called_anything(kind: str, n: int) -> None:
    found = shapes(kind, n, 200)
    assert found["U"] <= 6  # measured 0 to 2; 16 is what was asked for
    assert found["U"] + found["primacy"] + found["recency"] <= 22  # 5 % together in theory; 9 % seen at p = .9
    assert found["irregular"] <= 16


def test_flat_is_said_where_a_difference_would_have_been_seen() -> None:
    assert shapes("logp", 200, 60)["flat"] >= 52
    assert shapes("0.5", 60, 60)["flat"] == 0
    assert shapes("0.9", 500, 30)["flat"] >= 25


U = np.maximum(0, np.abs(2 * X - 1) - 1 / 3) * 1.5


@pytest.mark.parametrize(
    ("kind", "n", "effect", "shape", "least"),
    [
        ("logp", 20, 0.2 * U, "U", 90),
        ("logp", 60, QA - QA.min(), "U", 100),
        ("0.5", 200, 0.2 * U, "U", 97),
        ("logp", 40, 0.2 * (1 - X), "primacy", 95),
        ("logp", 40, 0.2 * X, "recency", 95),
        ("0.5", 100, 0.35 * (X == 0), "primacy", 92),
        ("logp", 40, 0.2 * (1 - np.abs(2 * X - 1)), "irregular", 92),
    ],
)
def test_known_shapes_are_found_at_the_stated_rate(
    kind: str, n: int, effect: np.ndarray, shape: str, least: int
) -> None:
    assert shapes(kind, n, 50, effect)[shape] >= least / 2


def judged(means: list[float], n: int = 60, spread: float = 0.05, closed: float | None = None) -> SlotVerdict:
    rows = logp_rows(n, 1, np.array(means), spread)
    return summarise(outcomes_of(rows, closed=None if closed is None else np.full(n, closed))).verdict


def test_words_for_every_shape() -> None:
    assert judged([-0.2, -0.8, -0.8, -0.8, -0.5]).words == "U, primacy stronger"
    assert judged([-0.5, -0.95, -0.8, -0.8, -0.8, -0.2]).words == "U, recency stronger, minimum at 20%"
    assert judged([-0.2, -0.8, -0.8, -0.8, -0.8]).shape == "primacy"
    assert judged([-0.8, -0.8, -0.8, -0.8, -0.2]).shape == "recency"
    assert judged([-0.8, -0.8, -0.2, -0.8, -0.8]).words == "irregular: highest at 50%"
    assert judged([-0.2, -0.8, -0.2, -0.8, -0.2]).shape == "irregular"
    assert judged([-0.8, -0.2, -0.8, -0.8, -0.2, -0.8]).shape == "irregular"
    comb = [-0.1, -0.95, -0.15, -0.8, -0.15, -0.8, -0.1]
    assert judged(comb).shape == judged(comb[::-1]).shape == "irregular"
    assert judged([-0.8] * 5).words == "flat: no end differs by 0.1 or more"
    assert judged([-0.5, -0.5, -0.9, -0.5, -0.5]).shape == "U"


def test_a_large_u_stays_one_with_a_small_resolved_dent() -> None:
    verdict = judged([-0.1, -0.8, -0.76, -0.8, -0.3], n=500, spread=0.02)
    assert verdict.shape == "U"


def test_ceiling_and_floor() -> None:
    generator = np.random.default_rng(0)
    near = (generator.random((60, 6)) < 0.985).astype(float)
    assert summarise(outcomes_of(near, "exact"), "exact").verdict.shape == "ceiling"
    assert summarise(outcomes_of(1 - near, "exact"), "exact").verdict.shape == "floor"
    assert summarise(outcomes_of(near[:15], "exact"), "exact").verdict.shape == "no verdict"
    rows = np.full((30, 5), math.log(0.98)) + 1e-3 * generator.normal(size=(30, 5))
    assert summarise(outcomes_of(rows)).verdict.shape == "ceiling"


def test_samples_that_agree_with_themselves_everywhere_are_not_flat_while_few() -> None:
    rows = np.repeat(np.array([[0.0], [1.0]] * 30), 5, axis=1)
    assert summarise(outcomes_of(rows[:10], "exact"), "exact").verdict.shape == "no verdict"
    assert summarise(outcomes_of(rows, "exact"), "exact").verdict.shape == "flat"


def test_shares_of_one_keep_a_variance() -> None:
    share = np.array([1.0, 0.0, 0.5])
    np.testing.assert_allclose(binomial_variance(share, 10), [11 / 144 / 10, 11 / 144 / 10, 0.025])


def test_floor_by_closed_book() -> None:
    assert judged([-0.8] * 5, closed=-0.8).words.startswith("floor: the documents do not help")
    assert judged([-0.8] * 5, closed=-3.0).shape == "flat"


def test_a_shape_near_the_ceiling_is_said() -> None:
    rows = np.ones((500, 5))
    rows[:20, 2] = 0
    verdict = summarise(outcomes_of(rows, "exact"), "exact").verdict
    assert verdict.shape == "U"
    assert any("near the ceiling" in line for line in verdict.evidence)


def test_smallest_is_what_flat_excludes() -> None:
    rows = logp_rows(60, 1, np.full(5, -0.8), 0.05)
    assert summarise(outcomes_of(rows), smallest=0.1).verdict.shape == "flat"
    assert summarise(outcomes_of(rows), smallest=0.001).verdict.shape == "no verdict"
