"""Errors, distances and floors against loops and scipy, their identities, and what is refused or left undefined."""

import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import catenary as ct
from catenary.comparison import compare
from catenary.deviation import between, spearman, wasserstein
from catenary.profile import Profile
from catenary.quantity import PATH_WEIGHT, SCALAR_GRADIENT
from catenary.sample import Sample
from catenary.theory.cesaro.row import cesaro_row
from oracles.comparison import errors, log_ratios, region_of
from samples import noise, sample

positive = arrays(np.float64, st.integers(3, 40), elements=st.floats(1e-3, 1e3))
L = 256


def theory(values: np.ndarray, label: str = "predicted", **more: object) -> Profile:
    return Profile(values, label=label, average="expectation", **more)


def power(exponent: float = 0.4) -> np.ndarray:
    rho = 3 / np.arange(1, L + 1) ** exponent
    rho[-1] = 9.0
    return rho


def test_errors_equal_loops() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.lognormal(size=(2, L))
    found, expected = compare(theory(a), theory(b)), errors(a.tolist(), b.tolist())
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-12), name
    ratios = log_ratios(a.tolist(), b.tolist())
    for reading in found.regions:
        inside = [r for j, r in enumerate(ratios, 1) if f"error {region_of(j, L)}" == reading.name]
        assert reading.value == pytest.approx(float(np.median(inside)), rel=1e-12)


@given(positive, st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_distances_equal_scipy(a: np.ndarray, seed: int) -> None:
    b = np.random.default_rng(seed).lognormal(size=len(a))
    x = np.arange(1, len(a) + 1) / len(a)
    assert wasserstein(a, b) == pytest.approx(scipy.stats.wasserstein_distance(x, x, a, b), abs=1e-12)
    cut = scipy.stats.wasserstein_distance(x[:-1], x[:-1], a[:-1], b[:-1])
    assert between(a, b).w1_without_last == pytest.approx(cut, abs=1e-12)
    if np.ptp(a) > 0:
        assert spearman(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic, abs=1e-12)


def test_spearman_of_ties_equals_scipy() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = rng.integers(1, 5, (2, 30)).astype(float)
        assert spearman(a, b) == pytest.approx(scipy.stats.spearmanr(a, b).statistic, abs=1e-12)


@given(positive, st.floats(1e-3, 1e3), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_a_factor_changes_absolute_but_not_shape(a: np.ndarray, factor: float, seed: int) -> None:
    b = np.random.default_rng(seed).lognormal(size=len(a))
    one, two = between(a, b), between(factor * a, b)
    for name in ("median_shape", "max_shape", "w1", "w1_without_last"):
        assert getattr(two, name) == pytest.approx(getattr(one, name), abs=1e-9), name
    np.testing.assert_allclose(two.regions_shape, one.regions_shape, atol=1e-9)
    assert two.factor == pytest.approx(factor * one.factor, rel=1e-9)
    np.testing.assert_allclose(two.regions, one.regions + np.log10(factor), atol=1e-9)


@given(positive, st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_swapping_changes_only_signs(a: np.ndarray, seed: int) -> None:
    b = np.random.default_rng(seed).lognormal(size=len(a))
    one, two = between(a, b), between(b, a)
    assert two.median_absolute == pytest.approx(one.median_absolute, rel=1e-9)
    assert two.w1 == pytest.approx(one.w1, abs=1e-12)
    np.testing.assert_allclose(two.regions, -one.regions, atol=1e-9)


def test_a_profile_is_at_no_distance_from_itself() -> None:
    found = compare(theory(power()), theory(power()))
    assert found.median_absolute == found.max_shape == found.w1 == 0
    assert found.spearman == pytest.approx(1)
    assert found.skill == 1


def test_skill_against_the_null() -> None:
    from catenary.theory.null import fit_null

    b = theory(power(), "measured")
    null = fit_null(b)
    assert compare(theory(null.values), b).skill == pytest.approx(0, abs=1e-9)
    ours = theory(power() * 10 ** (0.02 * np.cos(np.arange(L))))
    ratio = [np.median(np.abs(np.log10(p.values / b.values))) for p in (ours, null)]
    assert compare(ours, b).skill == pytest.approx(1 - ratio[0] / ratio[1], rel=1e-12)
    exact = theory(np.append(1 / np.arange(1.0, L), 5.0))
    found = compare(theory(power()), exact)
    assert math.isnan(found.skill)
    assert found.reasons["skill"] == "the null itself is exact here"


def test_every_falling_curve_has_the_same_spearman() -> None:
    measured = sample(np.log10(power()) + noise(4, L, 0.05))
    # each has its last token above its first, as the measurement has
    curves = [cesaro_row(L, 24, 0.1), cesaro_row(L, 24, 0.05), power(1.0), power(0.2)]
    found = [compare(theory(c), measured) for c in curves]
    assert np.ptp([c.spearman for c in found]) < 1e-12
    assert np.ptp([c.median_shape for c in found]) > 0.1
    assert "cannot judge" in {n: m for n, _, m in found[0].rows()}["Spearman"]


def test_constant_profile_has_no_spearman_and_everything_else() -> None:
    flat = theory(cesaro_row(L, 1, 1.0), "one layer")
    found = compare(flat, sample(noise(4, L, 0.05)))
    assert math.isnan(found.spearman)
    text = {n: v for n, v, _ in found.rows()}
    assert text["Spearman"] == "undefined: one layer is constant, so there are no ranks to correlate"
    assert not any(v.startswith("undefined") for n, v in text.items() if n != "Spearman")


def test_floor_is_beside_every_figure_of_a_sample() -> None:
    measured = sample(np.log10(power()) + noise(8, L, 0.1), label="measured")
    found = compare(theory(power()), measured)
    without = {"factor", "skill", "within 2 errors", "Spearman"}
    for reading in found.readings:
        assert (reading.floor is None) == (reading.name in without), reading.name
    assert found.noise_floor == found.floor.median_absolute > 0
    assert "the noise floor is" in found.words()
    assert "8 sequences of measured, one network" in found.words()
    assert all(r.floor is None for r in compare(theory(power()), theory(power(0.5))).readings)


def test_only_noise_is_told_from_a_real_difference() -> None:
    truth = np.log10(power())
    agree = differ = 0
    for seed in range(20):
        measured = sample(truth + noise(8, L, 0.05, seed), provenance={"weights": "pretrained"})
        logs = Profile(power(), label="truth", average="log")
        agree += compare(logs, measured).words().find("noise alone would show as much") > 0
        differ += compare(Profile(1.3 * power(), label="x", average="log"), measured).words().find("x what noise") > 0
    assert agree == 20  # the floor is sqrt 2 above what the whole sample shows
    assert differ == 20


def test_two_floors_join_in_quadrature() -> None:
    one = sample(np.log10(power()) + noise(8, L, 0.1, 1), label="one")
    two = sample(np.log10(power()) + noise(8, L, 0.2, 2), label="two")
    joint = compare(one, two).floor
    parts = [compare(s, theory(power())).floor for s in (one, two)]
    assert joint.median_absolute == pytest.approx(np.hypot(*(p.median_absolute for p in parts)), rel=1e-12)
    assert joint.w1 == pytest.approx(np.hypot(*(p.w1 for p in parts)), rel=1e-12)
    np.testing.assert_allclose(joint.regions, np.hypot(*(p.regions for p in parts)), rtol=1e-12)
    assert joint.spearman == pytest.approx(np.sqrt(parts[0].spearman * parts[1].spearman), rel=1e-12)


def test_standard_errors_are_counted() -> None:
    inside = []
    for seed in range(10):
        measured = sample(noise(30, L, 0.05, seed), axis=2)
        truth = theory(np.full(L, 10 ** (0.05**2 * np.log(10))))  # the root mean square of 10^N(0, .05)
        inside.append(compare(truth, measured).within)
    assert np.mean(inside) == pytest.approx(0.945, abs=0.015)  # two-sided 2 se at 29 degrees of freedom: 0.945
    one = compare(theory(power()), sample(np.log10(power())[None]))
    assert math.isnan(one.within)
    assert one.reasons["within 2 errors"] == "neither side has a standard error"


def test_averages() -> None:
    s, t = (sample(np.log10(power()) + noise(4, L, 0.4, k), label=str(k)) for k in (1, 2))
    trained = sample(np.log10(power()) + noise(4, L, 0.4, 3), label="trained", provenance={"weights": "pretrained"})
    assert (compare(theory(power()), trained).b.average, compare(s, t).a.average) == ("rms", "rms")
    assert (compare(s, trained).a.average, compare(s, trained).b.average) == ("log", "log")
    assert compare(Profile(power(), average="mean"), s).b.average == "mean"
    mixed = compare(Profile(power(), average="mean"), Profile(power(), average="log"))
    assert "averages differ (mean, log)" in mixed.words()


def test_a_fitted_curve_is_compared_in_shape_only() -> None:
    b = theory(2 * power(), "measured")
    found = compare(theory(power(), "law, fitted", provenance={"fitted": {"mixing": 0.1}}), b)
    assert math.isnan(found.median_absolute)
    assert found.median_shape == pytest.approx(0, abs=1e-12)
    assert found.median_error == found.median_shape
    assert all(r.name.startswith("shape error") for r in found.regions)
    assert "the size of law, fitted was fitted" in found.words()
    rows = {n: v for n, v, _ in found.rows()}
    assert rows["median absolute"] == "undefined: the size of law, fitted was fitted"


def test_a_quantity_without_size_is_compared_in_shape_only() -> None:
    a, b = (Profile(k * power(), SCALAR_GRADIENT, label=str(k)) for k in (1, 3))
    found = compare(a, b)
    assert math.isnan(found.max_absolute)
    assert found.max_shape == pytest.approx(0, abs=1e-12)


def test_unlike_quantities_and_lengths_are_refused_by_name() -> None:
    with pytest.raises(ct.InvalidInput, match=r"a's quantity \('one': jacobian-norm\), got \"'two': path-weight"):
        compare(Profile(power(), label="one"), Profile(power(), PATH_WEIGHT, label="two"))
    with pytest.raises(ct.InvalidInput, match=r"a's length \('one': 256\), got \"'two': 255"):
        compare(Profile(power(), label="one"), Profile(power()[1:], label="two"))


def test_zeros_are_left_out_and_counted() -> None:
    b = power()
    b[:10] = 0
    found = compare(theory(power()), theory(b))
    assert found.deviation.excluded == 10
    assert found.median_absolute == 0
    assert found.regions[0].reason == "no position where both are above 0"
    assert "10 positions where either is exactly 0" in found.words()
    json.dumps(found.to_dict(), allow_nan=False)


def test_output_is_complete_and_json() -> None:
    found = compare(theory(power()), sample(np.log10(power()) + noise(4, L, 0.1), label="measured"))
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [r["name"] for r in data["readings"]] == [n for n, _, _ in found.rows()]
    assert data["words"] == found.words()
    table = found.table()
    assert table.startswith("a = predicted, b = measured")
    assert all(value in table for _, value, _ in found.rows())


@pytest.mark.parametrize("length", [2, 3, 5, 9, 65, 66])
def test_short_profiles_compare(length: int) -> None:
    rng = np.random.default_rng(length)
    found = compare(theory(rng.lognormal(size=length)), sample(rng.normal(size=(4, length))))
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.regions[0].name == "error first"
    assert found.regions[-1].name == "error last"


def test_trained_against_untrained_is_a_matter_of_shape() -> None:
    rng = np.random.default_rng(0)
    energy = rng.gamma(20.0, size=(1, 1, 1, 6, 1, 64))
    samples = [
        Sample(scale * energy, ("vanilla",), label=weights, provenance={"weights": weights})
        for weights, scale in (("untrained", 1.0), ("pretrained", 100.0))
    ]
    found = compare(*samples)
    assert found.shape_only
    assert np.isnan(found.median_absolute)
    assert found.median_shape == pytest.approx(0, abs=1e-12)
    assert "embeddings" in found.words()
    assert not compare(samples[0], samples[0]).shape_only
