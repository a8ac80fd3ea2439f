"""Bands of seen tokens against dense loops."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.architecture import Alibi, Causal, Chunk, Kernel, Prefix, Window
from catenary.errors import NotApplicable
from catenary.theory.repeats.band import Band, band


def mask(length: int, kernel: Kernel) -> np.ndarray:
    i = np.arange(length)
    seen = i[:, None] >= i
    match kernel:
        case Window(width):
            seen &= i[:, None] - i < width
        case Chunk(width):
            seen &= i[:, None] // width == i // width
        case Prefix(inside):
            seen |= (i[:, None] < inside) & (i < inside)
    return seen


@pytest.mark.parametrize("queries", [np.arange(23), np.array([0, 1, 4, 9, 10, 22])])
@pytest.mark.parametrize("kernel", [Causal(), Window(1), Window(5), Chunk(6), Prefix(7), Prefix(40)])
def test_sums_over_what_queries_see(kernel: Kernel, queries: np.ndarray) -> None:
    seen, inside = Band.of(kernel, 23, queries), mask(23, kernel)[queries]
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


@pytest.mark.parametrize("kernel", [Causal(), Window(90), Chunk(300), Prefix(100)])
def test_chosen_queries_are_dense_enough(kernel: Kernel) -> None:
    seen = band(800, kernel)
    assert {*range(32), *range(792, 800)} <= set(seen.queries)
    apart = np.diff(seen.queries) > 1
    assert np.diff(seen.progress)[apart].max() < 0.12
    # No query is interpolated across the edge of a chunk.
    assert (np.diff(seen.first[seen.queries])[apart] <= 64).all()
    assert np.diff(seen.queries).max() <= 64
    assert seen.length < 260


@pytest.mark.parametrize(("length", "kernel"), [(128, Causal()), (500, Window(48)), (500, Chunk(40))])
def test_short_rows_choose_every_query(length: int, kernel: Kernel) -> None:
    assert band(length, kernel).length == length


def test_unequal_weights_are_refused() -> None:
    with pytest.raises(NotApplicable, match="does not cover Alibi"):
        band(20, Alibi(0.1))


def test_rows_of_moments_are_dense_enough() -> None:
    seen = band(800, Causal())
    rows = seen.chosen(0.14, 8)
    assert {*range(8), seen.length - 1} <= set(rows)
    assert np.diff(seen.progress[rows])[8:].max() < 0.28
