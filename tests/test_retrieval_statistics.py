"""Curves by slot: bands, contrasts, tests and sample counts against other routes to the same number."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence

import numpy as np
import pytest

from catenary.errors import InvalidInput
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.statistics import (
    contrasts,
    detectable,
    gaps_of_rows,
    holm,
    metrics_of,
    paired_sd,
    samples_for,
    samples_range,
    sign_flip_p,
    slot_curve,
    slot_tests,
    summarise,
    worst_slots,
)
from catenary.retrieval.statistics.contrasts import contrast_weights
from catenary.retrieval.statistics.simultaneous import _gaps, gaps_of_means, middle

QA = np.array([-0.17, -0.35, -0.45, -0.49, -0.47, -0.45, -0.43, -0.40, -0.35, -0.22])


def outcomes_of(
    values: np.ndarray, metric: str = "logp", *, slots: Sequence[int] | None = None, of: int | None = None,
    skipped: list[list[str]] | None = None, closed: np.ndarray | None = None, longest: int | None = None,
) -> Outcomes:  # fmt: skip
    n, width = values.shape
    slots = tuple(range(width)) if slots is None else tuple(slots)
    empty = [[""] * width for _ in range(n)]
    return Outcomes(
        "test", tuple(map(str, range(n))), slots, slots[-1] + 1 if of is None else of, {metric: values.astype(float)},
        skipped or empty, empty, [[400 + j for j in range(width)]] * n,
        {} if closed is None else {"closed book": {metric: closed}}, {} if longest is None else {"longest": longest},
    )  # fmt: skip


def logp_rows(n: int, seed: int = 0, means: np.ndarray = QA, spread: float = 0.16) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return means + 0.4 * generator.normal(size=(n, 1)) + spread * generator.normal(size=(n, len(means)))


def test_band_is_students_interval_of_the_mean() -> None:
    rows = logp_rows(40)
    curve = slot_curve(outcomes_of(rows))
    from scipy.stats import t as student

    reach = student.ppf(0.975, 39) * rows.std(axis=0, ddof=1) / math.sqrt(40)
    np.testing.assert_allclose(curve.mean, rows.mean(axis=0))
    np.testing.assert_allclose(curve.error, rows.std(axis=0, ddof=1) / math.sqrt(40))
    np.testing.assert_allclose(curve.low, rows.mean(axis=0) - reach, atol=0.1 * reach.max())
    np.testing.assert_allclose(curve.high, rows.mean(axis=0) + reach, atol=0.1 * reach.max())


def test_band_of_a_share_is_wilsons_and_has_width_where_every_sample_agrees() -> None:
    from scipy.stats import binomtest

    rows = np.zeros((35, 3))
    rows[:, 0] = 1
    rows[:6, 1] = 1
    curve = slot_curve(outcomes_of(rows, "exact"), "exact")
    for j, right in enumerate((35, 6, 0)):
        expected = binomtest(right, 35).proportion_ci(method="wilson")
        assert (curve.low[j], curve.high[j]) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert curve.low[0] == pytest.approx(0.901, abs=5e-4)


def test_incomplete_rows_are_left_out_counted_and_said() -> None:
    rows = logp_rows(20)
    rows[3, 2] = rows[4, 2] = rows[4, 5] = np.nan
    skipped = [[""] * 10 for _ in range(20)]
    skipped[3][2] = skipped[4][2] = "too long"
    curve = slot_curve(outcomes_of(rows, skipped=skipped))
    keep = [i for i in range(20) if i not in (3, 4)]
    assert (curve.n, curve.offered, curve.missing) == (18, 20, (0, 0, 2, 0, 0, 1, 0, 0, 0, 0))
    assert curve.reasons == {"too long": 2, "not scored, no reason recorded": 1}
    np.testing.assert_allclose(curve.mean, rows[keep].mean(axis=0))
    np.testing.assert_allclose(curve.available, np.nanmean(rows, axis=0))
    assert curve.lines()[0].startswith("2 of 20 samples were not scored at every slot")
    assert "too long: 2" in summarise(outcomes_of(rows, skipped=skipped)).notes[0]


def test_no_complete_row_is_an_error_with_the_reason() -> None:
    rows = np.full((4, 3), np.nan)
    with pytest.raises(InvalidInput, match=r"scored at every slot by logp, got 'none'; too long \(12\)"):
        slot_curve(outcomes_of(rows, skipped=[["too long"] * 3] * 4))
    with pytest.raises(InvalidInput, match="unknown metric"):
        slot_curve(outcomes_of(np.ones((4, 3)), "exact"), "contains")


def test_contrasts_of_the_means_by_hand() -> None:
    found = {r.name: r for r in contrasts(slot_curve(outcomes_of(logp_rows(60))))}
    m = logp_rows(60).mean(axis=0)
    assert found["first - mid"].value == pytest.approx(m[0] - m[3:7].mean())
    assert found["last - mid"].value == pytest.approx(m[9] - m[3:7].mean())
    assert found["first - last"].value == pytest.approx(m[0] - m[9])
    z = np.linspace(-1, 1, 10)
    assert found["quadratic"].value == pytest.approx(np.polyfit(z, m, 2)[0])
    assert found["quadratic without first"].value == pytest.approx(np.polyfit(z[1:], m[1:], 2)[0])


def test_contrasts_of_recorded_means() -> None:
    """Slot means of three templates on a 135M model, printed to two digits, and the contrasts printed beside them."""
    weights = contrast_weights(np.linspace(0, 1, 10))
    recorded = {
        "first - mid": 0.287, "last - mid": 0.234, "first - last": 0.053, "quadratic": 0.267,
        "quadratic without first": 0.209,
    }  # fmt: skip
    for name, value in recorded.items():
        assert float(weights[name] @ QA) == pytest.approx(value, abs=0.011), name
    json_pairs = np.array([-0.12, -0.43, -0.48, -0.47, -0.44, -0.46, -0.41, -0.37, -0.32, -0.32])
    weights = contrast_weights(np.array([0, 2, 4, 6, 8, 11, 13, 15, 17, 19]) / 19)
    for name, value in {"first - mid": 0.329, "last - mid": 0.123, "first - last": 0.206}.items():
        assert float(weights[name] @ json_pairs) == pytest.approx(value, abs=0.011), name


def test_intervals_of_contrasts_are_students() -> None:
    from scipy.stats import t as student

    rows = logp_rows(60)
    found = {r.name: r for r in contrasts(slot_curve(outcomes_of(rows)))}
    gap = rows[:, 0] - rows[:, 3:7].mean(axis=1)
    reach = student.ppf(0.975, 59) * gap.std(ddof=1) / math.sqrt(60)
    assert found["first - mid"].low == pytest.approx(gap.mean() - reach, abs=0.1 * reach)
    assert found["first - mid"].high == pytest.approx(gap.mean() + reach, abs=0.1 * reach)


def test_contrast_without_spread_keeps_a_width() -> None:
    rows = np.zeros((30, 5))
    rows[:, 0] = 1
    first = contrasts(slot_curve(outcomes_of(rows, "exact"), "exact"))[0]
    assert (first.value, first.high) == (1.0, pytest.approx(2 - 0.025 ** (1 / 30)))
    assert first.low == pytest.approx(0.025 ** (1 / 30))


def test_too_few_slots_have_a_reason() -> None:
    found = {r.name: r for r in contrasts(slot_curve(outcomes_of(logp_rows(9)[:, :2])))}
    assert found["first - last"].reason == ""
    for name in ("first - mid", "last - mid", "quadratic", "quadratic without first"):
        assert math.isnan(found[name].value)
        assert "2 slots are too few" in found[name].reason


def test_middle_slots() -> None:
    assert middle(np.linspace(0, 1, 10)) == (3, 4, 5, 6)
    assert middle(np.array([0, 4, 9, 14, 19]) / 19) == (2,)
    assert middle(np.array([0, 0.05, 0.1, 1])) == (2,)
    assert middle(np.array([0, 1.0])) == ()


def test_worst_slot_shares() -> None:
    rows = logp_rows(60)
    share = worst_slots(slot_curve(outcomes_of(rows)))
    assert share.sum() == pytest.approx(1)
    assert int(share.argmax()) == int(rows.mean(axis=0).argmin())
    ties = worst_slots(slot_curve(outcomes_of(np.ones((9, 4)), "exact"), "exact"))
    np.testing.assert_allclose(ties, 0.25)
    generator = np.random.default_rng(5)
    mean, counts = rows.mean(axis=0), np.zeros(10)
    cov = np.cov(rows.T) / 60
    for draw in generator.multivariate_normal(mean, cov, size=4000):
        counts[draw.argmin()] += 1
    np.testing.assert_allclose(share, counts / 4000, atol=0.05)


def test_sign_flips_of_shares_are_mcnemars_exact_test() -> None:
    from scipy.stats import binomtest

    generator = np.random.default_rng(2)
    rows = (generator.random((40, 2)) < [0.8, 0.5]).astype(float)
    difference = (rows[:, 0] - rows[:, 1])[:, None]
    up, down = int((difference > 0).sum()), int((difference < 0).sum())
    assert sign_flip_p(difference, binary=True)[0] == pytest.approx(binomtest(up, up + down).pvalue)
    assert sign_flip_p(np.zeros((5, 1)), binary=True)[0] == 1


def test_sign_flips_against_every_sign_pattern() -> None:
    d = np.random.default_rng(3).normal(0.5, 1, size=9)
    observed = abs(d.mean())
    every = [abs((np.array(signs) * d).mean()) >= observed - 1e-12 for signs in itertools.product((1, -1), repeat=9)]
    found = sign_flip_p(d[:, None], binary=False)[0]
    assert found == pytest.approx(np.mean(every), abs=4 * math.sqrt(0.05 / 20_000))
    assert sign_flip_p(np.zeros((5, 1)), binary=False)[0] == 1


def test_holm_by_hand() -> None:
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(np.array([0.6, 0.9])), [1, 1])


def test_slot_tests_pair_each_slot_with_best_and_worst() -> None:
    rows = logp_rows(60)
    m = rows.mean(axis=0)
    best, worst = slot_tests(slot_curve(outcomes_of(rows)))
    assert {t.reference for t in best} == {int(m.argmax())}
    assert {t.reference for t in worst} == {int(m.argmin())}
    assert len(best) == len(worst) == 9
    for test in best:
        assert test.difference == pytest.approx(m[test.slot] - m.max())
        assert test.holm >= test.p
    assert max(t.holm for t in best if 1 <= t.slot <= 8) < 0.05


def test_holm_over_all_pairs_keeps_its_level_although_references_are_picked() -> None:
    false = 0
    for seed in range(200):
        rows = logp_rows(30, seed, np.zeros(6))
        best, worst = slot_tests(slot_curve(outcomes_of(rows), resamples=2), flips=2000)
        false += min(t.holm for t in (*best, *worst)) < 0.05
    assert false <= 16  # 5 % of 200 is 10; 16 is two standard deviations above


def test_sample_counts_of_recorded_spreads() -> None:
    """Counts recorded with paired spreads .225 (a log-probability), .1299 (key-value) and .5445 (exact match)."""
    assert samples_for(0.1, 0.225) == 40
    assert samples_for(0.05, 0.225) in (159, 160)
    assert samples_for(0.02, 0.225) == pytest.approx(1000, rel=0.01)
    assert [samples_for(effect, 0.1299) for effect in (0.1, 0.05)] == [14, 53]
    assert [samples_for(effect, 0.5445) for effect in (0.2, 0.1, 0.05)] == [59, 233, 931]


def test_power_at_the_count_is_four_in_five() -> None:
    generator = np.random.default_rng(0)
    n = samples_for(0.1, 0.225)
    draws = generator.normal(0.1, 0.225, size=(4000, n))
    t = draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / math.sqrt(n))
    assert (np.abs(t) > 1.96).mean() == pytest.approx(0.8, abs=0.03)
    assert detectable(n, 0.225) == pytest.approx(0.1, rel=0.01)


def test_paired_sd_is_that_of_every_pair() -> None:
    rows = logp_rows(25)
    every = [(rows[:, i] - rows[:, k]).var(ddof=1) for i, k in itertools.combinations(range(10), 2)]
    assert paired_sd(rows) == pytest.approx(math.sqrt(np.mean(every)))
    assert math.isnan(paired_sd(rows[:1]))


def test_a_pilots_range_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    held = 0
    for _ in range(600):
        low, high = samples_range(0.05, float(generator.normal(0, 0.2, size=12).std(ddof=1)), 12)
        held += low <= samples_for(0.05, 0.2) <= high
    assert held / 600 == pytest.approx(0.95, abs=0.03)
    low, high = samples_range(0.05, 0.2, 10)
    assert high / low == pytest.approx(7.0, abs=0.2)


@pytest.mark.parametrize(("effect", "sd"), [(0, 1), (-1, 1), (math.nan, 1), (1, math.nan), (1, -1)])
def test_impossible_sample_counts_are_refused(effect: float, sd: float) -> None:
    with pytest.raises(InvalidInput):
        samples_for(effect, sd)


def test_standard_errors_of_gaps_and_their_critical_value() -> None:
    rows = logp_rows(50)
    gaps = gaps_of_rows(rows, np.linspace(0, 1, 10), binary=False)
    for i, k in ((0, 4), (9, 2), (3, 7)):
        expected = (rows[:, i] - rows[:, k]).std(ddof=1) / math.sqrt(50)
        assert gaps.error[i, k] == pytest.approx(expected)
    mid = rows[:, 9] - rows[:, 3:7].mean(axis=1)
    assert gaps.over_middle(1) == pytest.approx(mid.mean() / (mid.std(ddof=1) / math.sqrt(50)))
    generator = np.random.default_rng(9)
    largest, widest = [], []
    for _ in range(400):
        flat = logp_rows(50, int(generator.integers(1 << 30)), 0 * QA)
        own = gaps_of_rows(flat, np.linspace(0, 1, 10), binary=False, draws=2)
        ends = [own.t(e, k) for e in (0, 9) for k in range(10)]
        largest.append(max([*ends, own.over_middle(0), own.over_middle(1)]))
        widest.append(max(abs(own.t(i, k)) for i, k in itertools.combinations(range(10), 2)))
    assert gaps.ends == pytest.approx(np.quantile(largest, 0.95), rel=0.08)
    assert gaps.pairs == pytest.approx(np.quantile(widest, 0.95), rel=0.08)


@pytest.mark.parametrize(("column", "sign"), [(0, 1), (1, 1), (1, -1), (2, -1), (3, 1), (4, 1)])
def test_each_way_an_end_can_be_higher_counts(column: int, sign: int) -> None:
    """Columns are slots 0 - 1, 0 - 2, 1 - 2, first - mid, last - mid."""
    t = np.zeros((100, 5))
    t[:, column] = 5 * sign
    assert _gaps(np.zeros(3), (1,), np.ones(5), t, paired=True).ends == 5
    t[:, column] = -5 * sign
    assert _gaps(np.zeros(3), (1,), np.ones(5), t, paired=True).ends == (5 if column == 1 else 1.644854)


def test_gaps_of_means_add_variances() -> None:
    gaps = gaps_of_means(np.array([0.7, 0.5, 0.6]), np.array([1e-4, 2e-4, 3e-4]), np.array([0, 0.5, 1]))
    assert gaps.error[0, 2] == pytest.approx(math.sqrt(4e-4))
    assert gaps.t(0, 1) == pytest.approx(0.2 / math.sqrt(3e-4))
    assert gaps.over_middle(1) == pytest.approx(0.1 / math.sqrt(5e-4))


def test_summary_is_json_and_says_how_full_the_context_is() -> None:
    rows = logp_rows(60)
    summary = summarise(outcomes_of(rows, longest=8192, closed=np.full(60, -2.0)))
    assert summary.occupancy == pytest.approx(404.5 / 8192)
    assert summary.notes == ("Prompts of 400 to 409 tokens, on average 4.9% of the 8,192 that the model takes.",)
    held = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
    assert held["verdict"]["shape"] == "U"
    assert held["baselines"] == {"closed book": {"mean": -2.0, "n": 60}}
    assert held["detectable"] == pytest.approx(2.8016 * paired_sd(rows) / math.sqrt(60), rel=1e-4)
    assert "first - mid" in summary.table()
    assert summarise(outcomes_of(rows)).to_dict()["occupancy"] is None
    assert metrics_of(outcomes_of(rows, "exact")) == ("exact",)
    again = summarise(outcomes_of(rows, longest=8192, closed=np.full(60, -2.0)))
    assert again.to_dict() == summary.to_dict()


@pytest.mark.parametrize("n", [1, 2, 6])
def test_few_samples_have_a_summary_without_a_verdict(n: int) -> None:
    summary = summarise(outcomes_of(logp_rows(n)))
    assert summary.verdict.shape == "no verdict"
    assert f"{n} samples" in summary.verdict.words
    json.dumps(summary.to_dict(), allow_nan=False)
    assert summary.table()


def test_one_slot_is_no_curve() -> None:
    assert summarise(outcomes_of(logp_rows(10)[:, :1], of=5)).verdict.words.startswith("no verdict: one slot")
