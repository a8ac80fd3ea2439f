"""Bootstrap, halves and noise floors against known values and against the standard error."""

import numpy as np
import pytest

from catenary.blocks import Blocks
from catenary.deviation import between, between_halves
from catenary.errors import InvalidInput
from catenary.sample import Sample
from catenary.statistics import Units, floor_between_halves, interval, reliability, small_sample_factor
from samples import noise, sample


@pytest.mark.parametrize("axis", [2, 3, 4])
@pytest.mark.parametrize("average", ["rms", "log", "mean"])
def test_mean_of_rows_is_the_profile(axis: int, average: str) -> None:
    s = sample(noise(6, 40, 0.2), axis)
    units = Units.of(s, average)
    curve = units.curves(np.full((1, 6), 1 / 6))[0]
    np.testing.assert_allclose(curve, s.profile(average).values, rtol=1e-12)
    assert units.kind == {2: "net", 3: "sequence", 4: "probe"}[axis]


def test_bootstrap_scatter_is_the_standard_error() -> None:
    n = 20
    s = sample(noise(n, 200, 0.1))
    draws = Units.of(s, "rms").bootstrap(lambda curves: curves)
    expected = s.profile("rms").standard_error * np.sqrt((n - 1) / n)  # the bootstrap uses the (n-1)/n variance
    # 1000 draws know a standard deviation to 1/sqrt(2000) = 2.2 %; the mean over 200 positions far better.
    np.testing.assert_allclose(draws.std(axis=0), expected, rtol=0.12)
    assert np.mean(draws.std(axis=0) / expected) == pytest.approx(1, abs=0.01)


def test_bootstrap_is_seeded_and_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    units = Units.of(sample(noise(5, 30, 0.1)), "log")
    whole = units.bootstrap(lambda c: c[:, :3], resamples=50, seed=3)
    monkeypatch.setattr("catenary.statistics._BATCH", 7 * 30)
    np.testing.assert_allclose(units.bootstrap(lambda c: c[:, :3], resamples=50, seed=3), whole, rtol=1e-13)
    assert np.abs(units.bootstrap(lambda c: c[:, :3], resamples=50, seed=4) - whole).max() > 1e-3


@pytest.mark.parametrize("units", [4, 16])
def test_noise_floor_is_its_known_value(units: int) -> None:
    s = 0.1
    found = between_halves(sample(noise(units, 4000, s)), "log")
    known = 0.67449 * s * np.sqrt(2 / units)
    assert found.median_absolute == pytest.approx(known, rel=0.03)
    assert found.median_shape == pytest.approx(known, rel=0.03)


def test_noise_floor_counts_a_common_factor_as_absolute_only() -> None:
    common = np.random.default_rng(1).normal(0, 0.1, (16, 1)) + np.zeros((16, 300))
    found = between_halves(sample(common), "log")
    # Half means differ by N(0, 2 s / sqrt n), whose mean size is sqrt(2/pi) of that; 32 splits know it to 13 %.
    known = np.sqrt(2 / np.pi) * 2 * common[:, 0].std(ddof=1) / 4 / np.sqrt(2)
    assert found.median_absolute == pytest.approx(known, rel=0.4)
    assert found.median_shape < 1e-12
    assert found.w1 < 1e-12


def test_floor_is_the_mean_over_splits_of_two_units() -> None:
    log10 = noise(2, 100, 0.1)
    expected = between(10.0 ** log10[0], 10.0 ** log10[1]).w1 / np.sqrt(2)
    assert between_halves(sample(log10), "log").w1 == pytest.approx(expected, rel=1e-12)


def test_halves_are_disjoint_and_complete() -> None:
    rows = np.eye(6) + 1e-9
    units = Units.of(Sample(rows.reshape(1, 1, 1, 6, 1, 6), ("r",)), "rms")
    for a, b in units.halves():
        assert sorted(np.flatnonzero(a[0] > 0.1).tolist() + np.flatnonzero(b[0] > 0.1).tolist()) == list(range(6))


@pytest.mark.parametrize("units", [3, 8])
def test_interval_of_a_mean_covers_it(units: int) -> None:
    """95 % intervals of a log-mean contain the truth in 95 % of draws, down to a few units."""
    hits = 0
    for seed in range(300):
        s = sample(noise(units, 2, 0.1, seed))
        u = Units.of(s, "log")
        draws = np.log10(u.bootstrap(lambda c: c, resamples=400, seed=seed))[:, 0]
        low, high = interval(float(np.log10(s.profile("log").values[0])), draws, units)
        hits += low <= 0 <= high
    assert 0.90 <= hits / 300 <= 0.99  # binomial sd .013; percentile draws of 3 units are coarse


def test_small_sample_factor_matches_tables() -> None:
    assert small_sample_factor(2) == pytest.approx(np.sqrt(2) * 12.7062 / 1.95996, rel=1e-5)
    assert small_sample_factor(8) == pytest.approx(np.sqrt(8 / 7) * 2.36462 / 1.95996, rel=1e-5)


def test_reliability_of_signal_and_of_noise() -> None:
    blocks = Blocks(256)
    slope = np.linspace(0, 0.5, 256)
    signal = reliability(Units.of(sample(slope + noise(10, 256, 0.1)), "log"), blocks.log_means)
    assert signal > 0.95
    luck = [
        reliability(Units.of(sample(noise(10, 256, 0.1, seed)), "log"), blocks.log_means) for seed in range(20)
    ]
    assert abs(np.mean(luck)) < 0.25
    assert np.isnan(reliability(Units.of(sample(np.zeros((4, 256))), "log"), blocks.log_means))


def test_one_unit_has_no_error() -> None:
    units = Units.of(sample(noise(1, 20, 0.1)), "rms")
    with pytest.raises(InvalidInput, match="two networks, sequences or probes"):
        units.bootstrap(lambda c: c)
    with pytest.raises(InvalidInput, match="two networks, sequences or probes"):
        floor_between_halves(units, lambda a, b: a[0])
    assert np.isnan(between_halves(sample(noise(1, 20, 0.1)), "rms").median_absolute)


def test_the_interval_of_a_ratio_never_reaches_zero() -> None:
    draws = np.array([1.0, 2.0, 4.0, 8.0])
    low, high = interval(3.0, draws, 2, 0.0, np.inf)
    assert 0 < low < 1
    mirrored = interval(1 / 3.0, 1 / draws, 2, 0.0, np.inf)
    assert mirrored == pytest.approx((1 / high, 1 / low))
