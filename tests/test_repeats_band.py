"""Bands of seen tokens against dense loops."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.theory.repeats.band import Band, band


def mask(length: int, width: int | None) -> np.ndarray:
    i = np.arange(length)
    seen = i[:, None] >= i
    return seen if width is None else seen & (i[:, None] - i < width)


@pytest.mark.parametrize("queries", [np.arange(23), np.array([0, 1, 4, 9, 10, 22])])
@pytest.mark.parametrize("width", [None, 1, 5])
def test_sums_over_what_queries_see(width: int | None, queries: np.ndarray) -> None:
    seen, inside = Band(23, width, queries), mask(23, width)[queries]
    x = np.random.default_rng(0).standard_normal((23, 23))
    rows = x[queries]
    np.testing.assert_array_equal(seen.counts, inside.sum(axis=1))
    np.testing.assert_array_equal(seen.unpack(seen.pack(rows)), np.where(inside, rows, 0))
    np.testing.assert_allclose(seen.total(seen.pack(rows)), np.where(inside, rows, 0).sum(axis=1), atol=1e-12)
    for row, sees in enumerate(inside):
        np.testing.assert_array_equal(seen.row(seen.pack(rows), row), rows[row, sees])
        np.testing.assert_allclose(seen.running(x)[row], x[sees].sum(axis=0), atol=1e-12)
    symmetric = x + x.T
    sums = [symmetric[np.ix_(sees, sees)].sum() for sees in inside]
    np.testing.assert_allclose(seen.pair_sums(symmetric), sums, atol=1e-12)


@pytest.mark.parametrize("width", [None, 90])
def test_chosen_queries_are_dense_enough(width: int | None) -> None:
    seen = band(800, width)
    assert {*range(32), *range(792, 800)} <= set(seen.queries)
    assert np.diff(seen.progress)[32:].max() < 0.12
    assert np.diff(seen.queries).max() <= 64
    assert seen.length < (110 if width is None else 260)


@pytest.mark.parametrize(("length", "width"), [(128, None), (500, 48)])
def test_short_texts_and_narrow_windows_choose_every_query(length: int, width: int | None) -> None:
    assert band(length, width).length == length


def test_rows_of_moments_are_dense_enough() -> None:
    seen = band(800)
    rows = seen.chosen(0.14, 8)
    assert {*range(8), seen.length - 1} <= set(rows)
    assert np.diff(seen.progress[rows])[8:].max() < 0.28
