"""Numbers with a range beyond float64: the same sums and products as whole numbers give."""

from __future__ import annotations

import math

import numpy as np

from catenary.theory.cesaro.scaled import Scaled


def test_sums_and_products_beyond_float64() -> None:
    """1e-400 and 1e400, built by repeated multiplication, against their logarithms."""
    small, large = Scaled.of(np.array([1e-200, 3e-200])), Scaled.of(np.array([1e200, 2e200]))
    np.testing.assert_allclose(small.times(small).log(), 2 * np.log([1e-200, 3e-200]), rtol=1e-15)
    np.testing.assert_allclose(large.times(large).log(), 2 * np.log([1e200, 2e200]), rtol=1e-15)
    np.testing.assert_allclose(small.times(small).over(small).values(), [1e-200, 3e-200], rtol=1e-15)
    np.testing.assert_allclose(large.times(large).plus(large).log(), 2 * np.log([1e200, 2e200]), rtol=1e-15)
    assert float(small.times(small).total().log()) == np.float64(math.log(10) - 400 * math.log(10))
    np.testing.assert_array_equal(large.times(large).values(), [np.inf, np.inf])
    np.testing.assert_array_equal(small.times(small).values(), [0.0, 0.0])


def test_within_float64_it_is_float64() -> None:
    a, b = np.random.default_rng(0).lognormal(0, 20, (2, 100))
    np.testing.assert_array_equal(Scaled.of(a).plus(Scaled.of(b)).values(), a + b)
    np.testing.assert_array_equal(Scaled.of(a).times(Scaled.of(b)).values(), a * b)
    np.testing.assert_array_equal(Scaled.of(a).over(Scaled.of(b)).values(), a / b)


def test_zero_is_exact() -> None:
    zero, one = Scaled.of(np.zeros(2)), Scaled.of(np.ones(2))
    np.testing.assert_array_equal(zero.plus(one).values(), 1.0)
    np.testing.assert_array_equal(zero.times(one).plus(zero).values(), 0.0)
    np.testing.assert_array_equal(zero.over(zero).values(), 0.0)
    np.testing.assert_array_equal(zero.log(), -np.inf)
