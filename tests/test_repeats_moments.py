"""Moments of a softmax over tokens that share logits: against independent tokens, explicit integrals and sampling."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.errors import InvalidInput
from catenary.theory.attention.moments import softmax_moments
from catenary.theory.repeats.moments import Placement, RowMoments, RowMomentTable

TABLE = RowMomentTable.build(400, 4.0)


def at(moments: RowMoments, multiplicity: float) -> np.ndarray:
    """Mean, second and key moments of a token of this multiplicity."""
    place = Placement.of(np.array([float(multiplicity)]), TABLE.bins)
    bins = place.first + np.arange(4)
    logs = np.log(np.stack([moments.mean, moments.second, moments.key]))
    return np.exp(logs[:, bins] @ place.weights[:, 0])


@pytest.mark.parametrize("count", [2, 3, 17, 400])
@pytest.mark.parametrize("variance", [0.05, 1.0, 3.7])
def test_without_copies_they_are_those_of_independent_logits(count: int, variance: float) -> None:
    found = at(TABLE(np.ones(count), variance), 1.0)
    known = softmax_moments(np.array([count]), np.array([variance]))
    assert found[0] == pytest.approx(1, rel=1e-12)
    assert found[1] == pytest.approx(count**2 * known.second[0, 0], rel=1e-7)
    assert found[2] == pytest.approx(count**2 * known.key[0, 0], rel=1e-6)


TYPES = ([3, 1, 1], [2, 2, 1, 1, 1, 1], [40, 15, 7, 7, 3, 3, 2, 2, *[1] * 25], [5, 2])


def sampled(types: np.ndarray, variance: float, draws: int = 100_000) -> dict[int, np.ndarray]:
    """Mean and standard error of (nA, n^2A^2, n^2A^2(1 - 2A_T + sum A_T'^2)) per multiplicity, by drawing logits."""
    generator = np.random.default_rng(int(types.sum()))
    weights = np.exp(np.sqrt(variance) * generator.standard_normal((draws, types.size)))
    whole = types * weights
    whole /= whole.sum(axis=1, keepdims=True)
    squares = (whole**2).sum(axis=1, keepdims=True)
    token, n = whole / types, types.sum()
    values = np.stack([n * token, (n * token) ** 2, (n * token) ** 2 * (1 - 2 * whole + squares)])
    found = {}
    for c in set(types.tolist()):
        chosen = values[:, :, types == c].mean(axis=2)
        found[c] = np.stack([chosen.mean(axis=1), chosen.std(axis=1) / np.sqrt(draws)])
    return found


@pytest.mark.parametrize("types", TYPES, ids=str)
@pytest.mark.parametrize("variance", [0.4, 2.7])
def test_copies_as_drawn(types: list[int], variance: float) -> None:
    counts = np.array(types)
    moments = TABLE(np.repeat(counts, counts).astype(float), variance)
    for c, (mean, error) in sampled(counts, variance).items():
        # 3e-3 where one type is nearly all of the row and kappa is a small difference.
        np.testing.assert_array_less(np.abs(at(moments, c) - mean), 4 * error + 3e-3 * mean)


def test_attention_sums_to_one() -> None:
    counts = np.array(TYPES[2])
    moments = TABLE(np.repeat(counts, counts).astype(float), 2.7)
    total = sum(c * at(moments, c)[0] for c in counts) / counts.sum()
    assert total == pytest.approx(1, abs=1e-6)


def test_copies_get_less_each() -> None:
    counts = np.array(TYPES[2])
    moments = TABLE(np.repeat(counts, counts).astype(float), 2.7)
    levels = np.array([at(moments, c) for c in (1, 2, 3, 7, 15, 40)])
    assert (np.diff(levels, axis=0) < 0).all()


def test_one_token_has_all() -> None:
    moments = TABLE(np.ones(1), 1.0)
    assert (moments.mean == 1).all()
    assert (moments.second == 1).all()


@pytest.mark.parametrize("variance", [0.0, -1.0, 101.0])
def test_a_variance_without_a_table_is_refused(variance: float) -> None:
    with pytest.raises(InvalidInput, match=r"variance must be in \(0, 100\], got"):
        RowMomentTable.build(10, variance)
