"""Softmax moments: the one-dimensional integral against Monte Carlo, quadrature for two logits, and limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.attention.moments import RowLaw, softmax_moments
from catenary.theory.attention.scores import Scores, query_norms
from catenary.theory.attention.strong import MomentTable
from oracles.birth import moments as adaptive_moments


@pytest.mark.parametrize("n", [2, 3, 10, 100, 1000])
@pytest.mark.parametrize("variance", [1.0, 4.0, 12.0])
def test_moments_agree_with_monte_carlo(n: int, variance: float) -> None:
    rng = np.random.default_rng(n)
    draws = 400_000 // n
    weights = np.exp(math.sqrt(variance) * rng.standard_normal((draws, n)))
    weights /= weights.sum(axis=1, keepdims=True)
    square = (weights**2).sum(axis=1)
    second = square / n
    key = (weights**2 * (1 - 2 * weights + square[:, None])).sum(axis=1) / n
    exact = softmax_moments(np.array([n]), np.array([variance]))
    for drawn, value in ((second, exact.second[0, 0]), (key, exact.key[0, 0])):
        assert abs(drawn.mean() - value) < 4 * drawn.std() / math.sqrt(draws)


@pytest.mark.parametrize("variance", [0.01, 1.0, 9.0, 16.0])
def test_two_logits_are_a_logistic_function_of_one_normal(variance: float) -> None:
    # A_1 = sigmoid(z_1 - z_2), z_1 - z_2 ~ N(0, 2u), on a dense line.
    x = np.linspace(-12, 12, 200_001)
    weight = np.exp(-x**2 / 2) / np.exp(-x**2 / 2).sum()
    a = 1 / (1 + np.exp(-math.sqrt(2 * variance) * x))
    second = weight @ a**2
    key = weight @ (a**2 * (1 - 2 * a + a**2 + (1 - a) ** 2))
    exact = softmax_moments(np.array([2.0]), np.array([variance]))
    assert exact.second[0, 0] == pytest.approx(second, rel=1e-12)
    assert exact.key[0, 0] == pytest.approx(key, rel=1e-12)


def test_moments_agree_with_adaptive_quadrature() -> None:
    for n, variance in ((3, 2.0), (30, 2.7), (200, 6.25)):
        exact = softmax_moments(np.array([n]), np.array([variance]))
        second, key = adaptive_moments(n, variance)
        assert exact.second[0, 0] == pytest.approx(second, rel=1e-8)
        assert exact.key[0, 0] == pytest.approx(key, rel=1e-8)


def test_limits() -> None:
    counts = np.array([1.0, 1.5, 2.0, 50.0, 1e4])
    flat = softmax_moments(counts, np.array([0.0, 1e-6]))
    np.testing.assert_allclose(flat.second[:, 0], 1 / counts**2)
    np.testing.assert_allclose(flat.second[:, 1], flat.second[:, 0], rtol=1e-5)
    np.testing.assert_allclose(flat.key[:, 0], (1 - 1 / counts) / counts**2)
    np.testing.assert_allclose(flat.key[:, 1], flat.key[:, 0], rtol=1e-5, atol=1e-12)
    # One logit has no choice; at very unequal logits one key takes all: n E[A^2] -> 1.
    alone = softmax_moments(np.array([1.0]), np.array([0.5, 12.0]))
    np.testing.assert_allclose(alone.second, 1, rtol=1e-12)
    np.testing.assert_allclose(alone.key, 0, atol=1e-12)
    assert 3 * softmax_moments(np.array([3.0]), np.array([100.0])).second[0, 0] > 0.9


def test_first_order_in_the_variance() -> None:
    # m_2 = n^-2 [1 + (1 - 1/n) u + O(u^2)]: the remainder falls as u^2 (slope 2 +- 1 %).
    n, variances = np.array([7.0]), np.array([0.001, 0.002, 0.004])
    remainder = np.abs(softmax_moments(n, variances).second[0] * 49 - 1 - (1 - 1 / 7) * variances)
    slope = np.polyfit(np.log(variances), np.log(remainder), 1)[0]
    assert slope == pytest.approx(2, rel=0.01)


def test_counts_need_not_be_whole() -> None:
    fine = softmax_moments(np.linspace(1, 3, 41), np.array([2.0])).second[:, 0]
    assert (np.diff(fine) < 0).all()
    assert (np.diff(fine, 2) > 0).all()


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"counts must be >= 1, got 0.5"):
        softmax_moments(np.array([0.5]), np.array([1.0]))
    with pytest.raises(InvalidInput, match=r"variances must be in \[0, 100\], got -1.0"):
        softmax_moments(np.array([2.0]), np.array([-1.0]))


@pytest.mark.parametrize(
    ("variance", "head_dim"), [(0.13, None), (2.7, 64), (10.7, 128), (16.0, None), (0.13, 4), (2.7, 4)]
)
def test_the_table_agrees_with_the_moments_it_interpolates(variance: float, head_dim: int | None) -> None:
    counts = np.array([1.0, 2.0, 5.0, 40.0, 600.0, 2.0**20])
    table = MomentTable.build(Scores(variance, head_dim), counts)
    norms = query_norms(head_dim)
    for share in (0.003, 0.2, 0.71, 1.0):
        u = share * variance
        row = table.at(np.full(counts.size, u))
        value, score = row.value, row.score
        n = counts[1:]
        expected = np.zeros((2, n.size))
        for factor, weight in zip(norms.at, norms.weights, strict=True):
            exact = softmax_moments(n, np.array([factor * u]))
            expected[0] += weight * (exact.second[:, 0] - n**-2) * n**3 / (n - 1) / u
            expected[1] += weight * factor * exact.key[:, 0] * n**3 / (n - 1)
        np.testing.assert_allclose(value[1:], expected[0], rtol=3e-5)
        np.testing.assert_allclose(score[1:], expected[1], rtol=3e-5)
        assert value[0] == score[0] == pytest.approx(1)


def test_the_table_hits_its_own_nodes_and_tends_to_one() -> None:
    counts = np.array([3.0, 9.0])
    table = MomentTable.build(Scores(2.0, None), counts)
    node = 1 - math.cos(math.pi / 32)
    exact = softmax_moments(counts, np.array([node]))
    value = table.at(np.full(2, node)).value
    np.testing.assert_allclose(value, (exact.second[:, 0] - counts**-2) * counts**3 / (counts - 1) / node, rtol=1e-10)
    weak = MomentTable.build(Scores(1e-9, 64), counts).at(np.full(2, 1e-10))
    np.testing.assert_allclose([*weak.value, *weak.score, *weak.participation], 1, rtol=1e-6)


@pytest.mark.parametrize(("head_dim", "exact_up_to"), [(1, 6), (2, 6), (5, 6), (6, 2), (64, 2)])
def test_query_norms_have_the_moments_of_a_chi_square(head_dim: int, exact_up_to: int) -> None:
    norms = query_norms(head_dim)
    assert (norms.at >= 0).all()
    moment = 1.0
    for p in range(exact_up_to + 1):
        assert norms.weights @ norms.at**p == pytest.approx(moment, rel=1e-10)
        moment *= 1 + 2 * p / head_dim


def test_a_logit_variance_beyond_the_integrals_is_refused() -> None:
    with pytest.raises(NotApplicable, match="variance 90 at birth is beyond"):
        MomentTable.build(Scores(90.0, 64), np.array([2.0]))


@pytest.mark.parametrize("law", [RowLaw(sink=0.3), RowLaw(softcap=1.0, total=2.0), RowLaw(2.0, -1.0, 3.0)], ids=str)
@pytest.mark.parametrize("n", [1, 2, 20])
def test_sinks_caps_and_common_parts_agree_with_monte_carlo(law: RowLaw, n: int) -> None:
    u, rng, draws = 1.2, np.random.default_rng(n), 2_000_000 // (n + 3)
    common = 0.0 if law.total is None else law.total - u
    z = math.sqrt(u) * rng.standard_normal((draws, n)) + math.sqrt(common) * rng.standard_normal((draws, 1))
    bend = np.zeros_like(z) if law.softcap is None else np.tanh(z / law.softcap)
    weights = np.exp(z if law.softcap is None else law.softcap * bend)
    weights /= weights.sum(axis=1, keepdims=True) + (0 if law.sink is None else math.exp(law.sink))
    slope, square, one = 1 - bend[:, 0] ** 2, (weights**2).sum(axis=1), weights[:, 0]
    drawn = (one, one**2, one * (1 - one) * slope, one**2 * (1 - 2 * one + square) * slope**2)
    exact = softmax_moments(np.array([n]), np.array([u]), law)
    found = [exact.mean, exact.second, exact.response, exact.key, exact.whole]
    drawn = (*drawn, (one * (1 - weights.sum(axis=1)) * slope) ** 2)
    if n > 1:
        found, drawn = [*found, exact.pair], (*drawn, one * weights[:, 1])
    for sample, value in zip(drawn, found, strict=True):
        assert abs(sample.mean() - value[0, 0]) < 4 * sample.std() / math.sqrt(draws) + 1e-12


def test_one_key_beside_a_sink_is_a_logistic_function() -> None:
    # A_1 = sigmoid(z - s), z ~ N(0, u), on a dense line.
    x = np.linspace(-12, 12, 200_001)
    weight = np.exp(-x**2 / 2) / np.exp(-x**2 / 2).sum()
    for u, sink in ((0.5, 0.0), (4.0, 2.0), (9.0, -3.0)):
        a = 1 / (1 + np.exp(sink - math.sqrt(u) * x))
        exact = softmax_moments(np.array([1.0]), np.array([u]), RowLaw(sink=sink))
        found = [float(m[0, 0]) for m in (exact.mean, exact.second, exact.response, exact.key)]
        wanted = [a, a**2, a * (1 - a), a**2 * (1 - a) ** 2]
        np.testing.assert_allclose(found, [weight @ f for f in wanted], rtol=1e-10)


def test_equal_logits_have_a_closed_form() -> None:
    law = RowLaw(softcap=3.0, sink=0.7)
    n = np.array([1.0, 4.0, 30.0])
    exact, near = (softmax_moments(n, np.array([u]), law) for u in (0.0, 1e-8))
    for name in ("mean", "second", "response", "key", "pair", "whole"):
        np.testing.assert_allclose(getattr(exact, name), getattr(near, name), rtol=1e-6)
    np.testing.assert_allclose(exact.mean[:, 0], 1 / (n + math.exp(0.7)))


def test_a_wide_cap_and_a_deep_sink_change_nothing() -> None:
    n, u = np.array([2.0, 9.0, 200.0]), np.array([0.5, 3.0])
    plain = softmax_moments(n, u)
    for law in (RowLaw(softcap=1e4, total=3.0), RowLaw(sink=-25.0)):
        for name in ("mean", "second", "response", "key"):
            np.testing.assert_allclose(getattr(softmax_moments(n, u, law), name), getattr(plain, name), rtol=1e-6)


@pytest.mark.parametrize("scores", [Scores(0.13, 64), Scores(2.7, None), Scores(10.7, 128), Scores(30.0, 128)], ids=str)
def test_many_counts_through_few(scores: Scores) -> None:
    """Polynomials in ln n from n = 8 on, against the quadrature at each count."""
    counts = np.unique(np.round(np.exp(np.linspace(0, np.log(1e6), 120))))
    assert (counts >= 8).sum() > 60
    many = MomentTable.build(scores, counts).logs
    pieces = [MomentTable.build(scores, counts[at : at + 20]).logs for at in range(0, counts.size, 20)]
    np.testing.assert_allclose(many, np.concatenate(pieces, axis=1), atol=3e-7)
