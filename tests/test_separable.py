"""Separable kernels: dense matrices of several weights, the uniform special case, and the warped continuous limit."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.cesaro.density import cesaro_density, continuous_mass
from catenary.theory.cesaro.row import cesaro_row
from catenary.theory.cesaro.separable import (
    Warp,
    exponential_warp,
    power_warp,
    separable_density,
    separable_log_row,
    separable_row,
)
from oracles.cesaro import dense_product


def dense_separable(weights: np.ndarray) -> np.ndarray:
    """w_j over the sum up to the query, entry by entry."""
    kernel = np.zeros((weights.size, weights.size))
    for query in range(weights.size):
        for key in range(query + 1):
            kernel[query, key] = weights[key] / weights[: query + 1].sum()
    return kernel


@pytest.mark.parametrize("mixings", [[1.0], [0.3, 0.8, 0.0], [1.0] * 6], ids=str)
@pytest.mark.parametrize(
    "weights",
    [np.ones(25), np.exp(0.4 * np.arange(25)), np.exp(-0.3 * np.arange(25)), np.arange(1.0, 26) ** 1.5,
     np.random.default_rng(0).lognormal(0, 2, 25), np.array([5.0, 1.0])],
    ids=["uniform", "alibi", "early", "power", "random", "two"],
)  # fmt: skip
def test_against_dense_matrices(weights: np.ndarray, mixings: list[float]) -> None:
    dense = dense_product(dense_separable(weights), mixings)[-1]
    np.testing.assert_allclose(separable_row(np.log(weights), len(mixings), mixings), dense, rtol=1e-12)


def test_equal_weights_are_the_uniform_law() -> None:
    np.testing.assert_allclose(separable_row(np.full(400, 7.0), 12, 0.2), cesaro_row(400, 12, 0.2), rtol=1e-12)


def test_steep_weights_do_not_overflow() -> None:
    """ALiBi of slope 1 over 3000 positions: weights of e^3000, and a stationary profile seen from the end."""
    logs = separable_log_row(np.arange(3000.0), 6, 0.3)
    assert np.logaddexp.reduce(logs) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(logs[-20:], separable_log_row(np.arange(200.0), 6, 0.3)[-20:], rtol=1e-12)
    with pytest.raises(NotApplicable, match="use separable_log_row"):
        separable_row(np.arange(3000.0), 6, 0.3)


@pytest.mark.parametrize(
    "warp",
    [power_warp(0.0), power_warp(1.5), power_warp(-0.4), exponential_warp(3.0), exponential_warp(-2.0)],
    ids=["uniform", "rising", "falling", "late", "early"],
)
def test_warped_density(warp: Warp) -> None:
    """du/dx is the derivative of u, u runs from 0 to 1, and the warped density keeps the mass."""
    x = np.linspace(0.05, 0.95, 19)
    step = 1e-6
    rise = (warp.fraction(x + step) - warp.fraction(x - step)) / (2 * step)
    np.testing.assert_allclose(warp.slope(x), rise, rtol=1e-8)
    np.testing.assert_allclose(warp.fraction(np.array([1e-300, 1.0])), [0, 1], atol=1e-15)
    mass = mp.quad(
        lambda t: float(separable_density(np.exp(-np.array([float(t)])), 4, 0.3, warp)[0]) * math.exp(-t),
        [0, 1, 4, 20, 100],
    )
    assert float(mass) == pytest.approx(continuous_mass(4, 0.3), rel=1e-10)


def test_powers_of_the_kernel() -> None:
    """K_n(1, x) = w(x)/W(1) [ln(W(1)/W(x))]^{n-1}/(n-1)! for w = exp(3x), n = 1..5."""
    x = np.array([0.1, 0.5, 0.99])
    cumulative, total = np.expm1(3 * x) / 3, math.expm1(3) / 3
    for n in range(1, 6):
        power = np.exp(3 * x) / total * np.log(total / cumulative) ** (n - 1) / math.factorial(n - 1)
        np.testing.assert_allclose(separable_density(x, n, 1.0, exponential_warp(3.0)), power, rtol=1e-12)
    np.testing.assert_allclose(separable_density(x, 4, 0.2, power_warp(0.0)), cesaro_density(x, 4, 0.2), rtol=1e-15)


@pytest.mark.parametrize("rate", [4.0, -2.0])
def test_the_continuous_limit_is_reached_as_one_over_length(rate: float) -> None:
    lengths, errors = 2 ** np.arange(8, 15), []
    for length in lengths:
        row = separable_row(rate * np.arange(1.0, length + 1) / length, 6, 0.4)
        x = np.array([0.25, 0.5, 0.75])
        limit = separable_density(x, 6, 0.4, exponential_warp(rate)) / length
        errors.append(np.abs(row[(x * length).astype(int) - 1] / limit - 1))
    for column in np.array(errors).T:
        assert np.polyfit(np.log(lengths), np.log(column), 1)[0] == pytest.approx(-1, abs=0.03)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="log_weights must be finite, got -inf"):
        separable_row(np.array([0.0, -np.inf, 0.0]), 2, 0.5)
    with pytest.raises(InvalidInput, match="length must be a whole number >= 2, got 1"):
        separable_row(np.zeros(1), 2, 0.5)
    with pytest.raises(NotApplicable, match="use a mixing further from 1"):
        separable_log_row(np.zeros(5000), 128, 1.0)
    with pytest.raises(InvalidInput, match="exponent must be a finite number > -1, got -1"):
        power_warp(-1.0)
    with pytest.raises(InvalidInput, match=r"rate must be a finite number other than 0, got 0.*power_warp\(0\)"):
        exponential_warp(0.0)
