"""Bands of seen tokens and products with triangular matrices, against dense loops."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.theory.repeats.band import (
    Band,
    band,
    lower_times,
    sandwich,
    symmetric_product,
    times_lower,
    transposed_times,
)


def mask(length: int, width: int | None) -> np.ndarray:
    i = np.arange(length)
    seen = i[:, None] >= i
    return seen if width is None else seen & (i[:, None] - i < width)


@pytest.mark.parametrize("width", [None, 1, 5, 30])
def test_sums_over_what_queries_see(width: int | None) -> None:
    length = 23
    seen, inside = band(length, width), mask(length, width)
    x = np.random.default_rng(0).standard_normal((length, length))
    np.testing.assert_array_equal(seen.counts, inside.sum(axis=1))
    np.testing.assert_array_equal(seen.unpack(seen.pack(x)), np.where(inside, x, 0))
    np.testing.assert_allclose(seen.total(seen.pack(x)), np.where(inside, x, 0).sum(axis=1), atol=1e-12)
    np.testing.assert_array_equal(seen.row(seen.pack(x), 11), x[11, inside[11]])
    for i in (0, 4, 5, 22):
        np.testing.assert_allclose(seen.running(x)[i], x[inside[i]].sum(axis=0), atol=1e-12)
    symmetric = x + x.T
    sums = [symmetric[np.ix_(row, row)].sum() for row in inside]
    np.testing.assert_allclose(seen.pair_sums(symmetric), sums, atol=1e-12)


def test_chosen_queries_are_dense_enough() -> None:
    seen = Band(500, 60)
    rows = seen.chosen(0.1, 7, 4)
    assert set(rows) >= {*range(7), *range(496, 500)}
    assert np.diff(seen.progress[rows])[7:].max() < 0.2
    assert rows.size < 150


def test_triangular_products() -> None:
    generator = np.random.default_rng(1)
    w = np.tril(generator.standard_normal((150, 150)))
    x = generator.standard_normal((150, 150))
    np.testing.assert_allclose(lower_times(w, x), w @ x, atol=1e-12)
    np.testing.assert_allclose(times_lower(x, w), x @ w, atol=1e-12)
    np.testing.assert_allclose(transposed_times(w, x), w.T @ x, atol=1e-12)
    np.testing.assert_allclose(symmetric_product(w, x @ x.T @ w), w.T @ x @ x.T @ w, atol=1e-9)
    np.testing.assert_allclose(sandwich(w, x + x.T), w.T @ (x + x.T) @ w, atol=1e-9)
