"""Any output position: rows, columns, the whole matrix and the powers, against dense matrices and exact integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.cesaro.matrix import cesaro_column, cesaro_matrix, cesaro_query_row
from catenary.theory.cesaro.powers import cesaro_powers
from catenary.theory.cesaro.row import cesaro_point, cesaro_row
from oracles.cesaro import dense_kernel, dense_product, exact_row


@pytest.mark.parametrize("length", [2, 3, 40])
@pytest.mark.parametrize("mixings", [[1.0], [0.3, 0.8], [1.0] * 5, [0.0, 0.5, 0.05]], ids=str)
def test_matrix_rows_and_columns_are_the_dense_product(length: int, mixings: list[float]) -> None:
    dense, layers = dense_product(dense_kernel(length), mixings), len(mixings)
    np.testing.assert_allclose(cesaro_matrix(length, layers, mixings), dense, rtol=1e-13)
    for k in range(length):
        np.testing.assert_allclose(cesaro_query_row(length, layers, mixings, k), dense[k], rtol=1e-13)
        np.testing.assert_allclose(cesaro_column(length, layers, mixings, k), dense[:, k], rtol=1e-13)
        np.testing.assert_array_equal(cesaro_query_row(length, layers, mixings, k)[k + 1 :], 0)
        np.testing.assert_array_equal(cesaro_column(length, layers, mixings, k)[:k], 0)
    for query in range(1, length):
        entry = cesaro_point(query + 1, layers, mixings, query // 2)
        assert entry == pytest.approx(dense[query, query // 2], rel=1e-13)


def test_a_row_does_not_know_what_follows() -> None:
    exact = [float(x) for x in exact_row(30, [Fraction(1, 4)] * 3)]
    np.testing.assert_allclose(cesaro_query_row(1000, 3, 0.25, 29)[:30], exact, rtol=1e-14)
    np.testing.assert_allclose(cesaro_query_row(1000, 3, 0.25, 29).sum(), 1, rtol=1e-14)


def test_a_source_loses_influence_as_one_over_the_output_position() -> None:
    """Two layers of mixing 1: M^2 at (i, 1) is H_i / i, a harmonic number over i."""
    column = cesaro_column(400, 2, 1.0, 0)
    np.testing.assert_allclose(column, np.cumsum(1 / np.arange(1.0, 401)) / np.arange(1.0, 401), rtol=1e-13)


def test_powers_against_exact_integers_and_points() -> None:
    powers = cesaro_powers(40, 12)
    for r in range(1, 13):
        np.testing.assert_allclose(powers[r - 1], [float(x) for x in exact_row(40, [Fraction(1)] * r)], rtol=1e-14)
        np.testing.assert_allclose(powers[r - 1], cesaro_row(40, r, 1.0), rtol=1e-14)
        assert powers[r - 1, 7] == pytest.approx(cesaro_point(40, r, 1.0, 7), rel=1e-13)
    np.testing.assert_allclose(powers.sum(axis=1), 1, rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cesaro_query_row(8, 2, 0.5, 8), r"query must be in 0\.\.7 \(0-based\), got 8"),
        (lambda: cesaro_column(8, 2, 0.5, -1), r"position must be in 0\.\.7 \(0-based\), got -1"),
        (lambda: cesaro_query_row(8, 2, 0.0, 0), "mixing must be > 0 in at least one layer"),
        (lambda: cesaro_matrix(1, 2, 0.5), "length must be a whole number >= 2, got 1"),
        (lambda: cesaro_powers(8, 0), "count must be a whole number >= 1, got 0"),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()  # type: ignore[operator]


def test_what_float64_cannot_hold_is_refused() -> None:
    for call in (
        lambda: cesaro_matrix(1000, 100, 1.0),
        lambda: cesaro_column(1000, 100, 1.0, 999),
        lambda: cesaro_powers(1000, 100),
        lambda: cesaro_query_row(1000, 100, 1.0, 990),
    ):
        with pytest.raises(NotApplicable, match="cesaro_log_row"):
            call()
    assert cesaro_column(1000, 100, 1.0, 0).min() > 0
