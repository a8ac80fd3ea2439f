"""The scalar second-moment law: exact fractions, random linear networks, its continuous limit, and its range."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.cesaro.path_sum import elementary_symmetric, path_sum_density, path_sum_log_point, path_sum_row
from oracles.cesaro import dense_kernel, exact_path_sum


def test_golden_fractions() -> None:
    exact = [841 / 1152, 385 / 1152, 265 / 1152, 153 / 128]
    np.testing.assert_allclose(path_sum_row(4, [1.0, 2.0]), exact, rtol=1e-15)
    golden = [
        0.83550877499591901, 0.17000311326947735, 0.0054411861446219916, 0.0030463884515310949, 1.0030343275914679
    ]
    row = path_sum_row(32, [1 / (k + 1) for k in range(12)])
    np.testing.assert_allclose(row[[0, 1, 15, 30, 31]], golden, rtol=5e-15)


@pytest.mark.parametrize(
    "gains", [["1/2"], ["3", "0", "1/7"], ["1/10"] * 8, ["100", "1/100", "5", "2"]], ids=lambda g: "-".join(g)[:20]
)
@pytest.mark.parametrize("length", [2, 3, 20])
def test_against_exact_fractions(gains: list[str], length: int) -> None:
    squared = [Fraction(g) for g in gains]
    exact = [float(x) for x in exact_path_sum(length, squared)]
    floats = [float(g) for g in squared]
    np.testing.assert_allclose(path_sum_row(length, floats), exact, rtol=1e-13)
    logs = [path_sum_log_point(length, floats, j) for j in range(length)]
    np.testing.assert_allclose(np.exp(logs), exact, rtol=1e-13)


def test_random_linear_networks() -> None:
    """h <- h + g M h W with independent Gaussian W: mean of ||J||^2/d over 600 networks, 4 standard errors."""
    width, length, gains, rng = 12, 8, np.array([0.5, 1.2, 0.8]), np.random.default_rng(1)
    kernel = dense_kernel(length)
    energies = []
    for _ in range(600):
        jacobian = np.zeros((width, length, width))  # by output coordinate of the last position
        jacobian[np.arange(width), -1, np.arange(width)] = 1.0
        for gain in gains:
            weights = rng.normal(0, width**-0.5, (width, width))
            jacobian = jacobian + gain * np.einsum("ij,oid,de->oje", kernel, jacobian, weights)
        energies.append((jacobian**2).sum(axis=(0, 2)) / width)
    mean, error = np.mean(energies, axis=0), np.std(energies, axis=0) / 600**0.5
    law = path_sum_row(length, gains**2)
    assert (np.abs(mean - law) < 4 * error).all()
    assert (error / law < 0.03).all()


def test_the_continuous_limit_is_reached_as_one_over_length() -> None:
    gains = [0.3, 0.1, 0.7, 0.2]
    lengths = 2 ** np.arange(8, 18)
    limit = float(path_sum_density(0.25, gains))
    errors = [
        abs(math.exp(path_sum_log_point(int(n), gains, int(n) // 4 - 1)) * float(n) ** 2 / limit - 1) for n in lengths
    ]
    assert np.polyfit(np.log(lengths), np.log(errors), 1)[0] == pytest.approx(-1, abs=0.01)
    # Four layers by hand at x = 1: e_1 alone.
    assert float(path_sum_density(1.0, gains)) == pytest.approx(sum(gains), rel=1e-15)


def test_a_million_positions() -> None:
    row = path_sum_row(10**6, [0.05] * 24)
    for j in (0, 1, 500_000, 999_998, 999_999):
        assert math.log(row[j]) == pytest.approx(path_sum_log_point(10**6, [0.05] * 24, j), abs=1e-12)


def test_strong_gains_stay_within_range_as_long_as_the_answer_does() -> None:
    """e_128 is 1e384 and the squared powers are 1e-600; their product is a number of moderate size."""
    gains = [1000.0] * 128
    assert float(elementary_symmetric(gains).log()[-1]) == pytest.approx(128 * math.log(1000), rel=1e-14)
    found = path_sum_log_point(10**6, gains, 10**6 - 1)
    assert found == pytest.approx(np.log1p(128 * 1000 / 1e12), rel=1e-6)
    with pytest.raises(NotApplicable, match="use path_sum_log_point"):
        path_sum_row(2000, gains)


@pytest.mark.parametrize(
    ("gains", "message"),
    [
        ([], "squared_gains must be one number per layer"),
        ([0.0, 0.0], "squared_gains must be finite and >= 0, and > 0 somewhere, got 0.0"),
        ([0.1, -1.0], "squared_gains must be finite and >= 0, and > 0 somewhere, got -1.0"),
        ([math.nan], "squared_gains must be finite and >= 0, and > 0 somewhere, got nan"),
    ],
)
def test_refusals(gains: list[float], message: str) -> None:
    for call in (lambda: path_sum_row(8, gains), lambda: path_sum_log_point(8, gains, 0)):
        with pytest.raises(InvalidInput, match=message):
            call()


def test_refuses_x_and_position_outside() -> None:
    with pytest.raises(InvalidInput, match=r"x must be in \(0, 1\], got 0.0"):
        path_sum_density(0.0, [1.0])
    with pytest.raises(InvalidInput, match=r"position must be in 0\.\.7"):
        path_sum_log_point(8, [1.0], 8)
