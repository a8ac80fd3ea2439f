"""The link's statistics by second routes, and its words: what is ranked, what is refused, and what is never claimed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from catenary.errors import InvalidInput
from catenary.profile import Profile
from catenary.quantity import JACOBIAN_NORM
from catenary.retrieval.link import (
    PREDICTORS,
    Coefficient,
    Link,
    LinkTable,
    Readings,
    agree,
    judge_link,
    link_table,
    pearson,
    permutation_p,
    readings_from,
    spearman,
    split_half,
)
from catenary.retrieval.link.table import means
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.statistics import SlotCurve, slot_curve
from catenary.sample import Sample
from catenary.statistics import Units, reliability

P = 10
U = np.array([1.0, 0.55, 0.35, 0.2, 0.15, 0.22, 0.3, 0.42, 0.5, 0.8])


def curve_of(true: np.ndarray = U, n: int = 60, noise: float = 0.3, seed: int = 0) -> SlotCurve:
    rows = true + noise * np.random.default_rng(seed).standard_normal((n, len(true)))
    blank = [[""] * len(true)] * n
    outcomes = Outcomes(
        "t", tuple(f"s{i}" for i in range(n)), tuple(range(len(true))), len(true), {"logp": rows}, blank, blank,
        [[0] * len(true)] * n,
    )  # fmt: skip
    return slot_curve(outcomes, "logp")


def table_of(rows: Mapping[str, np.ndarray], n: int = 30, noise: float = 0.3, seed: int = 1) -> LinkTable:
    generator = np.random.default_rng(seed)
    slots = len(next(iter(rows.values())))
    made = {
        name: np.exp(np.log(true) + noise * generator.standard_normal((n, slots))) for name, true in rows.items()
    }
    return LinkTable(tuple(range(slots)), slots, tuple(i % slots for i in range(n)), made)


def linked(rows: Mapping[str, np.ndarray], **more: float) -> Link:
    return agree(curve_of(), table_of(rows, **more), resamples=400)  # type: ignore[arg-type]  # sizes


# --- correlations ---


def test_coefficients_equal_scipys() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 5, (20, 9)).astype(float), generator.standard_normal((20, 9))
    for row in range(20):
        assert pearson(a, b)[row] == pytest.approx(stats.pearsonr(a[row], b[row])[0], abs=1e-12)
        assert spearman(a, b)[row] == pytest.approx(stats.spearmanr(a[row], b[row])[0], abs=1e-12)
    assert np.isnan(spearman(np.ones((1, 9)), b[:1]))
    assert np.isnan(spearman(np.where(np.arange(9) == 3, np.nan, b[:1]), b[:1]))


def test_equal_shares_are_ties_whatever_their_rounding() -> None:
    a = np.array([[0.1 + 0.2, 0.3, 0.5, 0.1]])
    assert spearman(a, np.array([[1.0, 1.0, 2.0, 0.0]]))[0] == pytest.approx(1)
    # of small numbers too
    assert spearman(1e-9 * a, np.array([[1.0, 1.0, 2.0, 0.0]]))[0] == pytest.approx(1)


def test_permutation_p_against_scipy_and_by_hand() -> None:
    generator = np.random.default_rng(3)
    a, b = generator.standard_normal(6), generator.standard_normal(6)
    rho = abs(stats.spearmanr(a, b)[0])
    counted = [abs(stats.spearmanr(a, np.array(order))[0]) >= rho - 1e-12 for order in permutations(b)]
    assert permutation_p(a.tolist(), b.tolist()) == pytest.approx(np.mean(counted))
    test = stats.permutation_test(
        (a,), lambda x: stats.spearmanr(x, b)[0], permutation_type="pairings", n_resamples=np.inf
    )
    assert permutation_p(a.tolist(), b.tolist()) == pytest.approx(test.pvalue, abs=0.02)
    # ten slots: 20,000 drawn against the t approximation
    a, b = generator.standard_normal(10), generator.standard_normal(10)
    assert permutation_p(a.tolist(), b.tolist()) == pytest.approx(stats.spearmanr(a, b)[1], abs=0.02)
    assert permutation_p(list(range(10)), list(range(10))) == pytest.approx(1 / 20_001)
    assert math.isnan(permutation_p([1.0] * 6, a[:6].tolist()))


def test_reliability_of_known_noise() -> None:
    """v/(v + s^2/n): 400 slots make the sampling of slots small."""
    generator = np.random.default_rng(0)
    true = generator.standard_normal(400)
    true = (true - true.mean()) / true.std()
    for s, n in ((2.0, 6), (4.0, 20), (6.0, 10)):
        rows = true + s * generator.standard_normal((n, 400))
        expected = 1 / (1 + s**2 / n)
        assert split_half(rows)[0] == pytest.approx(expected, abs=0.06)
    noise = generator.standard_normal((20, 400))
    assert abs(split_half(noise)[0]) < 0.2
    assert split_half(np.repeat(true[None], 4, axis=0)) == pytest.approx((1, 1))


def test_reliability_equals_that_of_profiles() -> None:
    """The same number from ``catenary.statistics``, which halves in another way."""
    rows = np.random.default_rng(2).standard_normal((8, 30)) + np.linspace(0, 3, 30)
    sample = Sample(np.exp(2 * rows)[None, None, None, :, None, :], ("t",), quantity=JACOBIAN_NORM, label="t")
    other = reliability(Units.of(sample, "log"), np.log, splits=400)
    assert split_half(rows, splits=400)[0] == pytest.approx(other, abs=0.02)
    assert isinstance(sample.profile("log"), Profile)


def test_the_first_slot_can_carry_a_reliability() -> None:
    rows = np.random.default_rng(0).standard_normal((12, P))
    rows[:, 0] += 20
    all_slots, rest = split_half(rows)
    assert all_slots > 0.95
    assert rest < 0.6


def test_reliability_within_strata() -> None:
    """A predictor read at the gold slot alone: each slot's prompts are halved by themselves."""
    generator = np.random.default_rng(1)
    gold = [i % 5 for i in range(20)]
    rows = np.full((20, 5), np.nan)
    for i, g in enumerate(gold):
        rows[i, g] = g + 0.01 * generator.standard_normal()
    assert split_half(rows, gold) == pytest.approx((1, 1), abs=0.01)
    assert np.isnan(split_half(rows[:5], gold[:5])).all()


def test_means_skip_what_was_not_read() -> None:
    rows = np.array([[1.0, np.nan], [3.0, 5.0]])
    assert means(rows, np.array([[1.0, 1.0], [1.0, 0.0]])).tolist()[0] == [2.0, 5.0]
    assert np.isnan(means(rows, np.array([[1.0, 0.0]]))[0, 1])


# --- agreement and verdict ---


def test_the_curve_itself_is_ranked_first_and_noise_is_not() -> None:
    noise = np.exp(np.random.default_rng(8).permutation(np.log(U)))
    link = linked({"jacobian": U, "attention": noise})
    verdict = judge_link(link)
    assert verdict.ranking[0] == "jacobian"
    own = link.agreements["jacobian"]
    assert own.spearman.value > 0.93
    assert 0.6 < own.spearman.low < own.spearman.high <= 1
    assert own.p < 0.001
    assert verdict.by["jacobian"] == "agrees"
    assert verdict.by["attention"] == "not shown"
    assert "Jacobian goes with the curve" in verdict.words
    assert own.over_edges.value == pytest.approx(own.spearman.value - link.agreements["edges"].spearman.value)
    place = np.abs(np.arange(P) / 9 - 0.5)
    assert link.agreements["edges"].curve == pytest.approx(place / place.mean())
    assert link.agreements["end"].curve == pytest.approx(np.arange(P) / 4.5)


def test_intervals_lie_below_the_estimate_and_count_both_noises() -> None:
    quiet = linked({"jacobian": U}, noise=0.02).agreements["jacobian"].spearman
    loud = linked({"jacobian": U}, noise=1.0).agreements["jacobian"].spearman
    assert loud.high - loud.low > 2 * (quiet.high - quiet.low)
    assert (loud.low + loud.high) / 2 < loud.value
    exact = agree(curve_of(noise=0.001), table_of({"jacobian": U}, noise=0.001), resamples=400)
    coefficient = exact.agreements["jacobian"].spearman
    assert (coefficient.value, coefficient.low, coefficient.high) == pytest.approx((1, 1, 1))
    scored = agree(curve_of(noise=3.0), table_of({"jacobian": U}, noise=0.001), resamples=400)
    assert scored.agreements["jacobian"].spearman.low < 0.6
    assert scored.agreements["jacobian"].spearman.high - scored.agreements["jacobian"].spearman.low > 0.2


def test_no_ranking_where_the_curve_does_not_come_back() -> None:
    link = agree(curve_of(noise=4.0), table_of({"jacobian": U}), resamples=200)
    verdict = judge_link(link)
    assert link.reliability_rest < 0.6
    assert verdict.ranking == ()
    assert "No predictor is ranked" in verdict.words
    assert not any("Go with it" in note for note in verdict.notes)


def test_a_curve_that_is_its_first_slot_is_not_ranked() -> None:
    spike = np.where(np.arange(P) == 0, 5.0, 0.0)
    verdict = judge_link(agree(curve_of(spike), table_of({"jacobian": U}), resamples=200))
    assert verdict.ranking == ()
    assert "without its first slot" in verdict.words


def test_an_unreliable_predictor_is_not_ranked() -> None:
    """The trap of one lucky set of prompts: whatever its coefficient, it is left out."""
    link = linked({"jacobian": U, "attention": U}, noise=0.3)
    lucky = replace(link.agreements["jacobian"], reliability_rest=0.14)
    shaken = replace(link, agreements={**link.agreements, "jacobian": lucky})
    verdict = judge_link(shaken)
    assert verdict.by["jacobian"] == "unreliable"
    assert "jacobian" not in verdict.ranking
    assert any("Not ranked for a reliability below 0.6" in note and "(0.14)" in note for note in verdict.notes)
    noisy = linked({"jacobian": U}, n=6, noise=4.0)
    assert judge_link(noisy).by["jacobian"] == "unreliable"


def test_first_slot_alone_and_against() -> None:
    only = np.concatenate([[3.0], np.linspace(0.55, 0.56, 9)[np.random.default_rng(1).permutation(9)]])
    link = linked({"jacobian": only, "attention": 1 / U}, noise=0.02)
    verdict = judge_link(link)
    assert verdict.by["attention"] == "runs against"
    assert any("Run against it: attention" in note for note in verdict.notes)
    assert verdict.by["jacobian"] in ("first slot alone", "not shown", "unreliable")
    whole = linked({"jacobian": U})
    weak = replace(whole.agreements["jacobian"], spearman_rest=Coefficient(0.4, -0.1, 0.6))
    shaken = judge_link(replace(whole, agreements={**whole.agreements, "jacobian": weak}))
    assert shaken.by["jacobian"] == "first slot alone"
    assert "no reliable predictor is shown" in shaken.words or "Jacobian goes" not in shaken.words
    assert any("by the first slot alone: Jacobian" in note for note in shaken.notes)


def test_the_birth_profile_is_never_said_to_predict() -> None:
    rising = {"birth": np.linspace(2, 0.5, P), "jacobian": U}
    link = linked(rising, noise=0.02)
    assert judge_link(link).by["birth"] == "not shown"
    assert not any("do not carry it over" in note for note in judge_link(link).notes)
    agreeing = judge_link(linked({"birth": U}, noise=0.02))
    assert agreeing.by["birth"] == "agrees"
    assert any("do not carry it over" in note for note in agreeing.notes)
    absent = judge_link(linked({"jacobian": U}))
    assert absent.by["birth"] == "missing"
    assert not any("birth profile goes" in note for note in absent.notes)


def test_few_slots_and_wrong_slots_are_refused() -> None:
    small = agree(curve_of(U[:4]), table_of({"jacobian": U[:4]}), resamples=100)
    assert "4 slots were measured" in judge_link(small).words
    with pytest.raises(InvalidInput, match="curve's slots"):
        agree(curve_of(), table_of({"jacobian": U[:4]}))
    with pytest.raises(InvalidInput, match="two or more"):
        agree(curve_of(n=1), table_of({"jacobian": U}))


def test_a_constant_curve_has_no_coefficient_and_no_ranking() -> None:
    link = agree(curve_of(np.zeros(P), noise=0.0), table_of({"jacobian": U}), resamples=50)
    assert math.isnan(link.agreements["jacobian"].spearman.value)
    assert "not known" in judge_link(link).words
    assert link.to_dict()["reliability"] is None


def test_gold_alone_needs_two_prompts_at_a_slot() -> None:
    once = linked({"logit": U}, n=10).agreements["logit-gold"]
    assert math.isnan(once.spearman.low)
    assert not math.isnan(once.spearman.value)
    twice = linked({"logit": U}, n=30).agreements["logit-gold"]
    assert twice.spearman.low > 0.2
    # two at each slot: halved within slots, as halves of all prompts would leave slots empty
    pairs = linked({"logit": U}, n=20, noise=0.02).agreements["logit-gold"]
    assert (pairs.reliability, pairs.reliability_rest) == pytest.approx((1, 1), abs=0.01)
    few = linked({"logit": U}, n=5).agreements
    assert "no prompt shows it at slot 5, 6, 7, 8, 9" in few["logit-gold"].reason
    assert not few["logit"].reason


def test_where_a_predictor_is_read() -> None:
    table = table_of({"logit": U, "attention": U}, n=20)
    others, gold, everywhere = (table.logs(name) for name in ("logit", "logit-gold", "attention"))
    assert not isinstance(others, str)
    assert not isinstance(gold, str)
    assert not isinstance(everywhere, str)
    assert (np.isfinite(others).sum(), np.isfinite(gold).sum(), np.isfinite(everywhere).sum()) == (180, 20, 200)
    assert np.isfinite(gold[13]).nonzero()[0].tolist() == [3]
    assert np.isnan(others[13]).nonzero()[0].tolist() == [3]
    assert table.logs("birth") == "no prompt was read"


def test_a_slot_out_of_reach_ranks_last() -> None:
    rows = np.repeat(U[None], 4, axis=0)
    rows[:, 5] = 0
    logs = LinkTable(tuple(range(P)), P, (0, 1, 2, 3), {"attention": rows}).logs("attention")
    assert not isinstance(logs, str)
    assert np.isfinite(logs).all()
    assert np.exp(logs.mean(axis=0)).argmin() == 5


def test_tables_say_what_is_missing() -> None:
    one = Readings({"jacobian": np.arange(3.0), "birth": np.ones(3)})
    two = Readings({"jacobian": np.arange(3.0)}, {"birth": "theory stops"})
    table = link_table((0, 1, 2), 3, [(0, 9, one), (1, 9, two)], {})
    assert set(table.rows) == {"jacobian"}
    assert table.logs("birth") == "theory stops"
    with pytest.raises(InvalidInput, match="at least one held-out prompt"):
        link_table((0, 1), 2, [], {"a": "too long"})
    back = readings_from(Readings({"jacobian": np.array([1.0, np.nan])}).to_dict())
    np.testing.assert_array_equal(back.rows["jacobian"], [1.0, np.nan])


def test_every_predictor_has_its_words() -> None:
    link = linked(dict.fromkeys(("jacobian", "relative", "logit", "logp", "attention", "birth"), U))
    record = link.to_dict()
    assert [one["predictor"] for one in record["predictors"]] == list(PREDICTORS)
    assert set(judge_link(link).by) == set(PREDICTORS)
    assert any("log-probability is small where the model is sure" in note for note in judge_link(link).notes)
