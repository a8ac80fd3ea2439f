"""Orders of documents: the rearrangement against every permutation, ranks against quadrature, held-out gains."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from catenary.errors import InvalidInput, MissingResource
from catenary.retrieval.order import (
    PLAIN,
    SlotWeights,
    arrange,
    best_first,
    best_last,
    by_weight,
    edges_best_first,
    edges_best_last,
    expected_gains,
    judge_order,
    order_documents,
    rank_shares,
)
from catenary.retrieval.order.advice import advise
from catenary.retrieval.order.gain import MEASURED, slot_rows
from catenary.retrieval.order.scores import read_scores, read_scores_file, weights_of
from catenary.retrieval.records import MeanCurve
from catenary.retrieval.statistics import slot_curve
from test_retrieval_statistics import QA, logp_rows, outcomes_of

JSON_PAIRS = np.array([-0.12, -0.43, -0.48, -0.47, -0.44, -0.46, -0.41, -0.37, -0.32, -0.32])


def test_no_permutation_beats_the_rearrangement() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        relevance, weights = generator.random(6), generator.normal(size=6)
        order = order_documents(relevance, by_weight(weights))
        sums = [float(relevance[list(p)] @ weights) for p in itertools.permutations(range(6))]
        assert float(relevance[list(order)] @ weights) == pytest.approx(max(sums))


def test_ties_keep_the_order_given() -> None:
    assert order_documents([1, 1, 1, 1], by_weight([0, 0, 0, 0])) == (0, 1, 2, 3)
    assert order_documents([1, 3, 3, 1], best_first(4)) == (1, 2, 0, 3)
    assert by_weight([1, 2, 2, 0]) == (1, 2, 0, 3)


def test_plain_orders_by_hand() -> None:
    assert best_first(4) == (0, 1, 2, 3)
    assert best_last(4) == (3, 2, 1, 0)
    assert edges_best_first(10) == (0, 9, 1, 8, 2, 7, 3, 6, 4, 5)
    assert edges_best_first(5) == (0, 4, 1, 3, 2)
    assert edges_best_last(4) == (3, 0, 2, 1)
    assert edges_best_last(5) == (0, 4, 1, 3, 2)
    for order in PLAIN.values():
        for count in range(1, 9):
            assert sorted(order(count)) == list(range(count))


def test_arrange_interpolates_to_as_many_documents() -> None:
    weights = SlotWeights((0.0, 0.5, 1.0), (1.0, 0.0, 0.8))
    np.testing.assert_allclose(weights.at(5), [1, 0.5, 0, 0.4, 0.8])
    assert arrange([5, 4, 3, 2, 1], weights) == (0, 2, 4, 3, 1)
    assert arrange([7], weights) == (0,)
    assert arrange([], weights) == ()


@pytest.mark.parametrize("scores", [[1.0], [1.0, math.nan], [math.inf, 0.0]])
def test_impossible_relevance_is_refused(scores: list[float]) -> None:
    with pytest.raises(InvalidInput, match="scores"):
        order_documents(scores, (0, 1))


@pytest.mark.parametrize(("x", "w"), [((0,), (1,)), ((0, 1), (1, math.nan)), ((0, 2), (1, 1)), ((1, 0), (1, 1))])
def test_impossible_weights_are_refused(x: tuple[float, ...], w: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput):
        SlotWeights(x, w)


@pytest.mark.parametrize("documents", [2, 10, 300])
@pytest.mark.parametrize("separation", [0.0, 0.5, 2.0, 5.0])
def test_ranks_against_quadrature(documents: int, separation: float) -> None:
    from scipy.integrate import quad
    from scipy.stats import binom, norm

    found = rank_shares(documents, separation)
    assert found.sum() == pytest.approx(1, abs=1e-11)
    for r in {0, 1, documents // 3, documents - 1}:

        def density(s: float, r: int = r) -> float:
            return float(norm.pdf(s - separation) * binom.pmf(r, documents - 1, norm.sf(s)))

        assert found[r] == pytest.approx(quad(density, -10, 16, limit=300, epsabs=1e-12)[0], abs=1e-9)


def test_ranks_against_draws_and_recorded_shares() -> None:
    generator = np.random.default_rng(0)
    others, own = generator.normal(size=(40_000, 9)), generator.normal(1, 1, size=(40_000, 1))
    drawn = np.bincount((others > own).sum(axis=1), minlength=10) / 40_000
    np.testing.assert_allclose(rank_shares(10, 1.0), drawn, atol=0.008)
    first = [rank_shares(10, d)[0] for d in (0.5, 1.0, 2.0, math.inf)]
    assert first == pytest.approx([0.20, 0.34, 0.67, 1.0], abs=0.005)
    np.testing.assert_allclose(rank_shares(7, 0.0), 1 / 7)
    with pytest.raises(InvalidInput, match="separation"):
        rank_shares(5, -1)
    with pytest.raises(InvalidInput, match="documents"):
        rank_shares(0, 1)


@pytest.mark.parametrize(
    ("means", "recorded"),
    [
        (QA, {
            "best first": (0.012, 0.045, 0.131, 0.206), "best last": (0.009, 0.036, 0.100, 0.153),
            "edges, as LongContextReorder": (0.041, 0.082, 0.136, 0.153),
            "edges, best first": (0.042, 0.088, 0.163, 0.206), MEASURED: (0.043, 0.090, 0.163, 0.206),
        }),
        (JSON_PAIRS, {
            "best first": (None, 0.054, 0.160, 0.267), "best last": (None, 0.017, 0.047, 0.061),
            "edges, as LongContextReorder": (None, 0.061, 0.084, 0.061),
            "edges, best first": (None, 0.088, 0.185, 0.267), MEASURED: (None, 0.096, 0.191, 0.267),
        }),
    ],
)  # fmt: skip
def test_gains_recorded_on_a_small_network(means: np.ndarray, recorded: dict[str, tuple[float | None, ...]]) -> None:
    """Gains printed beside these slot means, of which two digits are printed; samples without noise have the means."""
    gains = expected_gains(slot_curve(outcomes_of(np.tile(means, (8, 1)))), splits=2, resamples=20)
    for name, row in recorded.items():
        for found, value in zip(gains.gain[name], row, strict=True):
            assert value is None or found.value == pytest.approx(value, abs=0.0065), name


def test_gain_of_a_plain_order_is_that_of_drawn_retrievers() -> None:
    rows = logp_rows(40)
    gains = expected_gains(slot_curve(outcomes_of(rows)), separations=(1.0,), splits=5, resamples=50)
    generator = np.random.default_rng(1)
    total = 0.0
    for _ in range(400):
        rank = (generator.normal(size=(40, 9)) > generator.normal(1, 1, size=(40, 1))).sum(axis=1)
        total += float(np.mean(rows[np.arange(40), np.array(edges_best_first(10))[rank]] - rows.mean(axis=1)))
    assert gains.gain["edges, best first"][0].value == pytest.approx(total / 400, abs=0.006)
    assert gains.given == pytest.approx(rows.mean())


def test_the_measured_gain_is_held_out() -> None:
    """Every way to split four pairs of samples by hand; in-sample choice would gain from pure noise."""
    rows = logp_rows(8, 3, 0 * QA)
    gains = expected_gains(slot_curve(outcomes_of(rows)), separations=(math.inf,), splits=4000, resamples=20)
    every = []
    for half in itertools.combinations(range(8), 4):
        rest = [i for i in range(8) if i not in half]
        slot = int(rows[list(half)].mean(axis=0).argmax())
        every.append(float(rows[rest, slot].mean() - rows[rest].mean()))
    assert gains.gain[MEASURED][0].value == pytest.approx(np.mean(every), abs=0.004)
    in_sample = float(rows.mean(axis=0).max() - rows.mean())
    assert gains.gain[MEASURED][0].value < in_sample - 0.02


def test_noise_gains_nothing() -> None:
    values, said = [], 0
    for seed in range(60):
        curve = slot_curve(outcomes_of(logp_rows(20, seed, 0 * QA)), resamples=2)
        gains = expected_gains(curve, splits=40, resamples=200)
        values.append(gains.gain[MEASURED][1].value)
        said += judge_order(gains).word == "nothing"
    assert abs(np.mean(values)) < 3 * np.std(values) / math.sqrt(60)
    assert said >= 56  # measured: the lower limit was above 0 in under 1 % of 150 runs


def test_intervals_cover_the_gain_of_an_order_from_half_the_samples() -> None:
    shares, n, held, over = rank_shares(10, 2.0), 20, 0, 0
    generator = np.random.default_rng(7)
    noise = 0.16 / math.sqrt(n // 2)
    orders = [list(by_weight(QA + noise * generator.normal(size=10))) for _ in range(3000)]
    truth = float(np.mean([shares @ QA[order] for order in orders]) - QA.mean())
    against = truth - float(shares @ QA[list(edges_best_first(10))] - QA.mean())
    for seed in range(60):
        gains = expected_gains(slot_curve(outcomes_of(logp_rows(n, seed)), resamples=2), splits=40, resamples=200)
        own, gap = gains.gain[MEASURED][2], gains.over["edges, best first"][2]
        held += own.low <= truth <= own.high
        over += gap.low <= against <= gap.high
    assert held >= 53  # 57 expected at 95 %; a bootstrap that keeps the order fixed covers 53 of 60 and, of the
    assert over >= 53  # difference, 48


def test_fewer_or_more_documents_are_interpolated() -> None:
    rows = logp_rows(12)
    curve = slot_curve(outcomes_of(rows))
    np.testing.assert_array_equal(slot_rows(curve, 10), rows)
    np.testing.assert_allclose(slot_rows(curve, 19)[:, 1], rows[:, :2].mean(axis=1))
    assert expected_gains(curve, 3, splits=4, resamples=20).documents == 3


def test_predicted_orders_stand_beside() -> None:
    gains = expected_gains(
        slot_curve(outcomes_of(logp_rows(20))), splits=4, resamples=20,
        predicted={"by start": SlotWeights((0.0, 1.0), (1.0, 0.0))},
    )  # fmt: skip
    assert gains.gain["by start"] == gains.gain["best first"]


def test_verdicts() -> None:
    def word(means: np.ndarray, separation: float = 1.0, spread: float = 0.1) -> tuple[str, str]:
        curve = slot_curve(outcomes_of(logp_rows(60, 2, means, spread)))
        found = judge_order(expected_gains(curve, splits=40, resamples=300), separation)
        return found.word, found.words

    assert word(QA)[0] == "plain order"
    assert word(QA)[1].startswith("A plain edge order is as good: edges, best first gains +0.0")
    assert word(np.full(10, -0.4))[0] == "nothing"
    assert word(JSON_PAIRS, 2.0, 0.01)[0] == "plain order"  # resolved, and less than a tenth of the gain
    comb = np.array([-0.1, -0.5, -0.1, -0.5, -0.5, -0.5, -0.1, -0.5, -0.5, -0.5])
    assert word(comb)[0] == "measured"
    falling = np.linspace(-0.1, -0.9, 10)
    assert word(falling)[1].startswith("A plain order is as good: best first")
    with pytest.raises(InvalidInput, match="separation must be one of"):
        word(QA, 3.0)


def test_the_wrong_end_is_said() -> None:
    curve = slot_curve(outcomes_of(logp_rows(60, 2, JSON_PAIRS)))
    verdict = judge_order(expected_gains(curve, splits=40, resamples=300), 2.0)
    assert verdict.notes[0].startswith("Of the two edge orders best first is better than LongContextReorder's by +0.")


def test_gains_need_samples_to_hold_out() -> None:
    with pytest.raises(InvalidInput, match="at least 8"):
        expected_gains(slot_curve(outcomes_of(logp_rows(7))))
    few = advise(outcomes_of(logp_rows(7)))
    assert few.gains is None
    assert few.verdict.words == (
        "What the order gains is not reported: 7 complete samples, and 8 samples and 2 documents are needed."
    )
    published = advise(MeanCurve((0, 9, 19), (0.76, 0.54, 0.63), 2655, 20))
    assert published.gains is None
    assert published.ranks[0] == 0
    assert published.ranks[-1] == 9


def test_advice_places_each_document_once() -> None:
    scored = read_scores('{"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.4}')
    advice = advise(outcomes_of(logp_rows(20)), scored)
    assert sorted(advice.names) == ["a", "b", "c", "d"]
    weights = weights_of(outcomes_of(logp_rows(20))).at(4)
    by_place = [advice.names[slot] for slot in np.argsort(-weights)]
    assert by_place == ["b", "c", "d", "a"]
    assert any("10 slots of prompts of 10 documents; 4 documents" in note for note in advice.notes)
    with pytest.raises(InvalidInput, match="must be the 4 that have scores"):
        advise(outcomes_of(logp_rows(20)), scored, documents=5)
    assert advise(outcomes_of(logp_rows(20)), separation=0.0).verdict.word == "nothing"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"), ("3", "a JSON list"), ("[]", "a JSON list"), ('["a"]', "a JSON list"),
        ("[true]", "a JSON list"), ("[1, NaN]", "must be finite"), ('{"a": 1, "a": 2}', "each document once"),
    ],
)  # fmt: skip
def test_scores_that_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_scores(text)


def test_a_missing_scores_file() -> None:
    with pytest.raises(MissingResource, match="cannot read"):
        read_scores_file("/nowhere/scores.json")
