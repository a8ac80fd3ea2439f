"""The one-pass row and log row: the same numbers as layer by layer at any size, and no numba where it is not used."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from catenary import compiled
from catenary.errors import NotApplicable
from catenary.theory.cesaro import row as cesaro
from catenary.theory.cesaro.log_row import cesaro_log_row
from catenary.theory.cesaro.path_sum import path_sum_row
from catenary.theory.cesaro.row import cesaro_log_point, cesaro_point, cesaro_row, layerwise_row
from catenary.theory.cesaro.stream import stream_row, stream_squares
from oracles.cesaro import dense_row, exact_point, exact_row, log_row

MIXINGS = [[1.0], [0.3] * 3, [0.0, 1.0], [0.9, 0.05, 0.5, 0.2], [1.0] * 20, [0.02] * 40]


@pytest.mark.parametrize("length", [2, 3, 17, 64])
@pytest.mark.parametrize("mixings", MIXINGS, ids=lambda m: f"{len(m)}x{m[0]}")
def test_one_pass_is_the_recursion_layer_by_layer(length: int, mixings: list[float]) -> None:
    """More layers than positions, too: some layers then begin after others are done."""
    row = stream_row(1 / np.arange(1.0, length + 1), np.array(mixings))
    np.testing.assert_array_equal(row, layerwise_row(1 / np.arange(1.0, length + 1), np.array(mixings)))
    np.testing.assert_allclose(row, dense_row(length, mixings), rtol=1e-13)


def test_one_pass_against_exact_integers() -> None:
    exact = np.array([float(x) for x in exact_row(128, [Fraction(3, 10)] * 24)])
    np.testing.assert_allclose(stream_row(1 / np.arange(1.0, 129), np.full(24, 0.3)), exact, rtol=1e-14)


def test_a_million_positions() -> None:
    row = cesaro_row(10**6, 128, 0.05)
    assert row.size * 128 >= cesaro.STREAM_FROM
    assert row.sum() == pytest.approx(1, abs=1e-13)
    assert (np.diff(row[:-1]) < 0).all()
    with mp.workdps(60):
        for j in (0, 3, 999_998, 999_999):
            assert row[j] == pytest.approx(float(exact_point(10**6, 128, 0.05, j)), rel=1e-12)


def test_both_routes_of_the_row_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    layerwise = cesaro_row(500, 12, 0.2), path_sum_row(500, [0.3] * 12)
    monkeypatch.setattr(cesaro, "STREAM_FROM", 1)
    monkeypatch.setattr("catenary.theory.cesaro.path_sum.STREAM_FROM", 1)
    np.testing.assert_array_equal(cesaro_row(500, 12, 0.2), layerwise[0])
    np.testing.assert_allclose(path_sum_row(500, [0.3] * 12), layerwise[1], rtol=1e-14)


def test_squares_travel_with_the_wave() -> None:
    shares, factors = 1 / np.arange(1.0, 31), np.array([0.7, 1.3, 0.2, 2.0])
    row = np.eye(30)[-1]
    total = row.copy()
    for factor in factors:
        row = np.array([factor * sum(shares[i] * row[i] for i in range(j, 30)) for j in range(30)])
        total += row**2
    np.testing.assert_allclose(stream_squares(shares, factors), total, rtol=1e-14)


@pytest.mark.parametrize(
    ("length", "mixings"),
    [
        (2, [1.0] * 400),
        (3000, [1.0] * 128),
        (600, [1.0] * 300),
        (2000, [1.0] * 60 + [0.999] * 60),
        (2000, [1 - 1e-9] * 128),
        (300, [0.3] * 24),
        (2, [0.5]),
    ],
    ids=lambda value: str(value)[:12],
)
def test_log_row_against_log_sums(length: int, mixings: list[float]) -> None:
    found, expected = cesaro_log_row(length, len(mixings), mixings), log_row(length, mixings)
    np.testing.assert_allclose(found, expected, rtol=2e-13, atol=1e-13)
    points = [cesaro_log_point(length, len(mixings), mixings, j) for j in (0, length // 2, length - 2, length - 1)]
    np.testing.assert_allclose(points, expected[[0, length // 2, length - 2, length - 1]], rtol=2e-13, atol=1e-13)


def test_log_row_of_a_million_positions_at_mixing_one() -> None:
    logs = cesaro_log_row(10**6, 128, 1.0)
    assert logs[-1] == pytest.approx(-128 * math.log(10**6), rel=1e-14)
    with mp.workdps(60):
        for j in (0, 700_000, 900_000, 999_998):
            assert logs[j] == pytest.approx(float(mp.log(exact_point(10**6, 128, 1.0, j))), rel=1e-12)


def test_log_row_says_where_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tilt that starts at e^800 leaves float64 at once, as thousands of layers would on their way."""
    monkeypatch.setattr("catenary.theory.cesaro.log_row.TOP", 800.0)
    with pytest.raises(NotApplicable, match="about 1500 layers near mixing 1, got 128; use cesaro_log_point"):
        cesaro_log_row(2000, 128, 1.0)


@pytest.mark.parametrize("layers", [1, 2, 300])
def test_points_where_powers_leave_float64(layers: int) -> None:
    """300 powers of p_1 = 21 overflow, 300 of 1e-9 underflow; the weight is neither."""
    length = 10**9
    assert 0 < cesaro_point(length, layers, 0.01, 0) < 1
    exact = layers * math.log(0.99 + 0.01 / length)
    assert cesaro_log_point(length, layers, 0.01, length - 1) == pytest.approx(exact, rel=1e-13)
    assert cesaro_log_point(length, layers, 1.0, length - 1) == pytest.approx(-layers * math.log(length), rel=1e-13)


@pytest.mark.parametrize("failure", [RuntimeError("cannot cache function"), OSError(28, "No space left on device")])
def test_without_a_folder_for_machine_code_it_compiles_in_memory(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numba

    def njit(loop: object, *, cache: bool, fastmath: object) -> object:
        if cache:
            raise failure
        return loop

    monkeypatch.setattr(numba, "njit", njit)
    compiled._compiled.cache_clear()
    try:
        np.testing.assert_array_equal(stream_row(np.array([1.0, 0.5]), np.array([1.0])), [0.5, 0.5])
    finally:
        compiled._compiled.cache_clear()


def test_other_theories_and_short_rows_do_without_numba() -> None:
    code = (
        "import sys, catenary as ct\n"
        "shape = ct.read_config('qwen2-0.5b')\n"
        "ct.predict(shape, length=64)\n"
        "ct.predict(shape, length=64, theory='null')\n"
        "ct.predict(shape, length=4096, theory='cesaro', mixing=0.1)\n"
        "ct.predict(shape, length=64, theory='cesaro-density', mixing=0.1)\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
