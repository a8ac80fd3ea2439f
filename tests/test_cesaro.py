"""The discrete first-moment law: golden values, three routes against three oracles, and its stated properties."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.cesaro.first_moment import path_counts
from catenary.theory.cesaro.log_row import cesaro_log_row
from catenary.theory.cesaro.powersums import power_sums
from catenary.theory.cesaro.row import cesaro_point, cesaro_row
from oracles.cesaro import alternating_row, beta_smoothed, dense_row, exact_point, exact_row

GOLDEN = json.loads((Path(__file__).parent / "golden" / "birth.json").read_text())["entries"]


def _fractions(entry: dict) -> list[Fraction]:
    text = entry["alpha"].strip("[]").split(",")
    return [Fraction(a) for a in text] * (1 if len(text) > 1 else entry["H"])


@pytest.mark.parametrize("entry", GOLDEN, ids=lambda e: f"H{e['H']}-L{e['L']}-{e['alpha']}")
def test_golden_values(entry: dict) -> None:
    exact = exact_row(entry["L"], _fractions(entry))
    mixing = [float(a) for a in _fractions(entry)]
    row = cesaro_row(entry["L"], entry["H"], mixing)
    log_row = cesaro_log_row(entry["L"], entry["H"], mixing)
    assert entry["values"]
    for position, text in entry["values"].items():
        j, value = int(position) - 1, float(text)
        assert float(exact[j]) == pytest.approx(value, rel=1e-15)
        assert row[j] == pytest.approx(value, rel=1e-13)
        assert math.exp(log_row[j]) == pytest.approx(value, rel=1e-13)
        assert cesaro_point(entry["L"], entry["H"], mixing, j) == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize("length", [2, 3, 30])
@pytest.mark.parametrize("mixings", [[1.0], [0.3, 0.3, 0.3], [0.0, 1.0], [0.9, 0.05, 0.5, 0.2]])
def test_dense_matrices_agree(length: int, mixings: list[float]) -> None:
    dense = dense_row(length, mixings)
    layers = len(mixings)
    np.testing.assert_allclose(cesaro_row(length, layers, mixings), dense, rtol=1e-13)
    np.testing.assert_allclose(np.exp(cesaro_log_row(length, layers, mixings)), dense, rtol=1e-13)
    points = [cesaro_point(length, layers, mixings, j) for j in range(length)]
    np.testing.assert_allclose(points, dense, rtol=1e-13)


def test_one_number_means_the_same_in_every_layer() -> None:
    np.testing.assert_array_equal(cesaro_row(20, 5, 0.2), cesaro_row(20, 5, [0.2] * 5))
    np.testing.assert_array_equal(cesaro_row(20, 1, [0.2]), cesaro_row(20, 1, 0.2))


def test_every_entry_against_exact_integers() -> None:
    exact = np.array([float(x) for x in exact_row(64, [Fraction(3, 10)] * 24)])
    np.testing.assert_allclose(cesaro_row(64, 24, 0.3), exact, rtol=2e-14)
    np.testing.assert_allclose([cesaro_point(64, 24, 0.3, j) for j in range(64)], exact, rtol=2e-14)


@pytest.mark.parametrize("length", [300, 10**4, 10**6, 10**9])
@pytest.mark.parametrize(("layers", "mixing"), [(1, 0.3), (2, 1.0), (24, 0.05), (128, 0.3)])
def test_single_point_at_any_length(length: int, layers: int, mixing: float) -> None:
    with mp.workdps(60):
        for j in (0, 1, 7, length // 2, length - 200, length - 2, length - 1):
            exact = exact_point(length, layers, mixing, j)
            assert float(cesaro_point(length, layers, mixing, j) / exact - 1) == pytest.approx(0, abs=5e-14)


def test_long_rows_agree_with_single_points() -> None:
    length = 1_000_000
    row = cesaro_row(length, 24, 0.1)
    for j in (0, 1, 1000, length // 2, length - 2, length - 1):
        assert row[j] == pytest.approx(cesaro_point(length, 24, 0.1, j), rel=1e-11)


@pytest.mark.parametrize(("length", "layers", "mixing"), [(12, 2, 0.5), (20, 6, 0.3), (9, 4, 1.0)])
def test_the_law_is_the_density_smoothed_by_a_beta_distribution(length: int, layers: int, mixing: float) -> None:
    row = cesaro_row(length, layers, mixing)
    with mp.workdps(25):
        for j in (0, 1, length // 2, length - 1):
            assert row[j] == pytest.approx(float(beta_smoothed(length, layers, mixing, j)), rel=1e-12)


def test_log_row_near_mixing_one() -> None:
    length, layers = 2000, 128
    log_row = cesaro_log_row(length, layers, 1.0)
    assert log_row[-1] == pytest.approx(-layers * math.log(length), rel=1e-13)
    with mp.workdps(60):
        for j in (0, 5, 1000, 1998, 1999):
            assert log_row[j] == pytest.approx(float(mp.log(exact_point(length, layers, 1.0, j))), rel=1e-12)
    assert np.logaddexp.reduce(log_row) == pytest.approx(0, abs=1e-12)
    for call in (lambda: cesaro_row(length, layers, 1.0), lambda: cesaro_point(length, layers, 1.0, length - 1)):
        with pytest.raises(NotApplicable, match="use cesaro_log_row"):
            call()


def test_path_counts_are_the_expanded_product() -> None:
    mixings = [0.1, 0.0, 0.75, 0.4, 1.0]
    product = np.polynomial.Polynomial([1.0])
    for a in mixings:
        product *= np.polynomial.Polynomial([1 - a, a])
    coefficients = np.zeros(6)
    coefficients[: len(product.coef)] = product.coef
    np.testing.assert_allclose(path_counts(5, mixings), coefficients, rtol=1e-14, atol=1e-16)
    binomial = [math.comb(24, r) * 0.3**r * 0.7 ** (24 - r) for r in range(25)]
    np.testing.assert_allclose(path_counts(24, 0.3), binomial, rtol=1e-14)


@pytest.mark.parametrize(("start", "stop"), [(1, 1), (1, 40), (3, 500), (999_000, 10**6), (10**9, 10**9 + 2000)])
def test_power_sums_of_short_runs(start: int, stop: int) -> None:
    for count in (1, 127, 1000):
        sums = power_sums(start, stop, count)
        with mp.workdps(30):
            for k in {1, 2, 3, 60, 127, 1000} & set(range(count + 1)):
                exact = mp.fsum((mp.mpf(start) / m) ** k for m in range(start, stop + 1))
                assert float(sums[k - 1] / exact - 1) == pytest.approx(0, abs=k * 5e-16)


@pytest.mark.parametrize(("start", "stop"), [(1, 10**7), (40, 10**12)])
def test_power_sums_of_long_runs(start: int, stop: int) -> None:
    for count in (1, 127):
        sums = power_sums(start, stop, count)
        with mp.workdps(250):
            exact = start * (mp.psi(0, stop + 1) - mp.psi(0, start))
            assert float(sums[0] / exact - 1) == pytest.approx(0, abs=5e-16)
            for k in (2, 3, 60, 127)[: 0 if count == 1 else 4]:
                exact = start**k * (mp.zeta(k, start) - mp.zeta(k, stop + 1))
                assert float(sums[k - 1] / exact - 1) == pytest.approx(0, abs=k * 5e-16)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    length=st.integers(2, 120),
    mixings=st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=12).filter(lambda a: max(a) > 1e-6),
    seed=st.integers(0, 2**32 - 1),
)
def test_properties(length: int, mixings: list[float], seed: int) -> None:
    layers = len(mixings)
    row = cesaro_row(length, layers, mixings)
    assert row.sum() == pytest.approx(1, rel=1e-13)
    assert (row > 0).all()
    # Rounding is monotone, so the fall up to L-1 holds to the last bit.
    assert (np.diff(row[:-1]) <= 0).all()
    shuffled = np.random.default_rng(seed).permutation(mixings)
    np.testing.assert_allclose(cesaro_row(length, layers, shuffled), row, rtol=1e-12)
    np.testing.assert_allclose(np.exp(cesaro_log_row(length, layers, mixings)), row, rtol=1e-11)
    assert row[-1] == pytest.approx(math.prod(1 - a + a / length for a in mixings), rel=1e-12)


def test_the_fall_is_strict_with_two_attention_layers() -> None:
    row = cesaro_row(200, 2, [0.4, 0.1])
    assert (np.diff(row[:-1]) < 0).all()
    assert row.argmin() == 198


def test_one_layer_without_residual_is_exactly_flat() -> None:
    for length in (2, 7, 1000):
        np.testing.assert_array_equal(cesaro_row(length, 1, 1.0), np.full(length, 1 / length))


def test_the_alternating_sum_is_the_same_law_in_rationals() -> None:
    assert alternating_row(14, 4, Fraction(1, 2), exact=True) == exact_row(14, [Fraction(1, 2)] * 4)


@pytest.mark.parametrize(("length", "lost"), [(16, 2e-11), (32, 2e-3), (40, 1e1), (64, 6e12)])
def test_the_alternating_sum_in_float64_is_unusable(length: int, lost: float) -> None:
    exact = np.array([float(x) for x in exact_row(length, [Fraction(1, 2)] * 4)])
    printed = np.array(alternating_row(length, 4, Fraction(1, 2), exact=False))
    worst = np.abs(printed / exact - 1).max()
    # Which digits go depends on the order of the additions; the size of the loss does not.
    assert lost / 10 < worst < lost * 10
    assert np.abs(cesaro_row(length, 4, 0.5) / exact - 1).max() < 1e-15


@pytest.mark.parametrize(
    ("length", "layers", "mixing", "message"),
    [
        (1, 2, 0.5, "length must be a whole number >= 2, got 1"),
        (2.5, 2, 0.5, "length must be a whole number >= 2, got 2.5"),
        (8, 0, 0.5, "layers must be a whole number >= 1, got 0"),
        (8, -1, 0.5, "layers must be a whole number >= 1, got -1"),
        (8, True, 0.5, "layers must be a whole number >= 1, got True"),
        (8, 2, 1.4, r"mixing must be in \[0, 1\], got 1.4"),
        (8, 2, -0.1, r"mixing must be in \[0, 1\], got -0.1"),
        (8, 2, math.nan, r"mixing must be in \[0, 1\], got nan"),
        (8, 2, [0.5, math.inf], r"mixing must be in \[0, 1\], got inf"),
        (8, 2, 0.0, "mixing must be > 0 in at least one layer, got 0.0; with 0 everywhere only the last token"),
        (8, 2, [0.0, 0.0], "mixing must be > 0 in at least one layer"),
        (8, 2, [0.5], r"mixing must be a number or 2 numbers, one per layer, got \[0.5\]"),
        (8, 2, [[0.5, 0.5]], "mixing must be a number or 2 numbers, one per layer"),
        (8, 2, [], "mixing must be a number or 2 numbers, one per layer"),
        (8, 2, "much", "mixing must be a number or one number per layer, got 'much'"),
    ],
)
def test_refusals(length: int, layers: int, mixing: object, message: str) -> None:
    for call in (cesaro_row, cesaro_log_row, lambda n, h, a: cesaro_point(n, h, a, 0)):
        with pytest.raises(InvalidInput, match=message):
            call(length, layers, mixing)


@pytest.mark.parametrize("position", [-1, 8])
def test_refuses_a_position_outside(position: int) -> None:
    with pytest.raises(InvalidInput, match=r"position must be in 0\.\.7"):
        cesaro_point(8, 2, 0.5, position)
