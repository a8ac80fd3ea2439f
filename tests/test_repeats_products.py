"""Products of interpolated matrices and the sums over pairs of queries, against dense matrices and loops."""

from __future__ import annotations

import numpy as np
import pytest

import oracles.repeats as oracle
from catenary.architecture import Causal, Chunk, Kernel, Prefix, Rotary, Window
from catenary.theory.attention.scores import Scores
from catenary.theory.repeats import layer as repeats
from catenary.theory.repeats.attention import RepeatedAttention
from catenary.theory.repeats.band import Band, band
from catenary.theory.repeats.between import Interpolated, both_queries, each_query
from catenary.theory.repeats.law import rotation
from catenary.theory.repeats.layer import Law, Values


def sparse(length: int, kernel: Kernel) -> Band:
    """A band with chosen queries at growing distances."""
    return Band.of(kernel, length, np.array([0, 1, 2, 3, 7, 8, 13, 20, length - 1]))


def smooth(seen: Band) -> Interpolated:
    """n W linear in progress where tokens are seen by both neighbours."""
    values = seen.each(1 / seen.counts) * (2 + np.sin(seen.columns)) * (1 + 0.1 * seen.each(seen.progress))
    return Interpolated(seen.unpack(values), seen)


@pytest.mark.parametrize("kernel", [Causal(), Window(9), Prefix(6), Prefix(18)])
def test_products_are_those_of_the_dense_matrix(kernel: Kernel) -> None:
    seen = sparse(29, kernel)
    w = smooth(seen)
    whole = w.dense()
    i = np.arange(29)
    inside = (seen.first[:, None] <= i) & (i < seen.stop[:, None])
    assert (whole[inside] > 0).all()
    assert np.abs(whole[~inside]).max() < 1e-15
    x = np.random.default_rng(0).standard_normal((29, 29))
    np.testing.assert_allclose(w.at(x), whole[seen.queries] @ x, atol=1e-12)
    np.testing.assert_allclose(w.times(x), whole @ x, atol=1e-12)
    np.testing.assert_allclose(w.transposed(x), whole.T @ x, atol=1e-12)
    np.testing.assert_allclose(w.transposed(x.T), whole.T @ x.T, atol=1e-12)
    np.testing.assert_allclose(w.sandwich(x + x.T), whole.T @ (x + x.T) @ whole, atol=1e-11)


def test_rows_between_are_interpolated_where_both_neighbours_see() -> None:
    seen = sparse(29, Causal())
    whole = smooth(seen).dense()
    progress = np.cumsum(1 / np.arange(1, 30))
    j = 5
    expected = (2 + np.sin(j)) * (1 + 0.1 * progress[14:]) / np.arange(15, 30)
    np.testing.assert_allclose(whole[14:, j], expected, rtol=1e-12)
    # Entering at 10, between 8 and 13: the value at 13.
    np.testing.assert_allclose(whole[11, 10] * 12, whole[13, 10] * 14, rtol=1e-12)
    np.testing.assert_allclose(each_query(seen.progress, seen), progress, rtol=1e-12)
    square = np.outer(seen.progress, seen.progress)
    np.testing.assert_allclose(both_queries(square, seen), np.outer(progress, progress), rtol=1e-12)


@pytest.mark.parametrize(
    ("theta", "kernel"), [(None, Causal()), (50.0, Prefix(5)), (50.0, Window(6)), (None, Chunk(7))]
)
def test_sums_over_pairs_of_queries(theta: float | None, kernel: Kernel) -> None:
    """Every query chosen: matrix products against loops over pairs of queries and of tokens."""
    n = 18
    generator = np.random.default_rng(3)
    ids = generator.integers(0, 9, n)
    same = ids[:, None] == ids
    root = generator.standard_normal((n, 60))
    r = 0.1 + 0.4 * same + 0.4 * np.corrcoef(root)
    np.fill_diagonal(r, 1.0)
    turning = None if theta is None else rotation(Rotary(theta, 16), 16, n)
    law = Law.of(RepeatedAttention(1.0, Scores(1.3, 16), same, turning, kernel).told, r, 1.3)
    values = Values.of(r, law)
    out = law.outputs(values)
    free = oracle.outputs(law, r)
    np.testing.assert_allclose(out.diagonal(), free.diagonal(), rtol=1e-12)
    bound = np.sqrt(np.outer(free.diagonal(), free.diagonal()))
    np.testing.assert_allclose(out, np.minimum(free, bound), rtol=1e-12)
    d = root @ root.T / 60
    np.testing.assert_allclose(law.through_values(d), oracle.at_values(law, d), atol=1e-11)
    found, expected = law.through_scores(d, values), oracle.at_scores(law, d, r)
    np.testing.assert_allclose(found, 0.5 * (expected + expected.T), atol=1e-11)


@pytest.mark.parametrize(
    ("length", "kernel"), [(300, Causal()), (260, Window(120)), (300, Chunk(170)), (260, Prefix(60))]
)
def test_chosen_queries_stand_for_all(length: int, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """One layer with all queries chosen: O(L^3)."""
    ids = np.random.default_rng(5).zipf(1.4, length) % 90
    same = ids[:, None] == ids
    r = 0.06 + 0.5 * same + 0.44 * np.eye(length)
    d = np.outer(*2 * [np.arange(1, length + 1) / length]) * (0.1 * same + 0.9 * np.eye(length))
    attention = RepeatedAttention(1.0, Scores(1.6, 64), same, rotation(Rotary(1e4, 64), 64, length), kernel)

    def both() -> tuple[np.ndarray, np.ndarray]:
        law = Law.of(attention.told, r, 1.6)
        values = Values.of(r, law)
        return law.outputs(values), law.through_values(d) + law.through_scores(d, values)

    few = both()
    monkeypatch.setattr(repeats, "band", lambda n, w: band(n, w, every=True))
    every = both()
    for one, all_of_them in zip(few, every, strict=True):
        ratio = np.sqrt(one.diagonal() / all_of_them.diagonal())
        assert np.abs(np.log10(ratio)).max() < 0.008
        assert np.abs(np.log10(ratio)).mean() < 0.002
