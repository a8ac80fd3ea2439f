"""Limits of many weak layers: Bessel and hypergeometric functions by mpmath, and the fitted orders of the approach.

Golden values of the Poisson limit, c = 2, were computed with 30 digits from its series.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.cesaro.density import cesaro_density, spike_mass
from catenary.theory.cesaro.limits import (
    poisson_density,
    poisson_error,
    poisson_slope,
    poisson_spike,
    second_moment_density,
    second_moment_slope,
)
from catenary.theory.cesaro.path_sum import path_sum_density

X = np.array([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-12])


def psi(t: mp.mpf, c: mp.mpf) -> mp.mpf:
    return mp.nsum(lambda r: c**r / mp.factorial(r) * t ** (r - 1) / mp.factorial(r - 1), [1, mp.inf])


@pytest.mark.parametrize("rate", [1e-3, 0.5, 2.0, 30.0])
def test_poisson_density_and_slope_by_their_series(rate: float) -> None:
    with mp.workdps(40):
        t = [-mp.log(mp.mpf(point)) for point in X]
        exact = [float(mp.exp(-rate) * psi(each, mp.mpf(rate))) for each in t]
        slopes = [float(-mp.diff(lambda u: mp.log(psi(u, mp.mpf(rate))), each)) for each in t[:-1]]
    np.testing.assert_allclose(poisson_density(X, rate), exact, rtol=1e-13)
    np.testing.assert_allclose(poisson_slope(X[:-1], rate), slopes, rtol=1e-12)
    assert float(poisson_density(1.0, rate)) == pytest.approx(rate * math.exp(-rate), rel=1e-15)
    assert float(poisson_slope(1.0, rate)) == pytest.approx(-rate / 2, rel=1e-14)


def test_golden_values() -> None:
    golden = np.array([1.60537685681896282, 0.507004741206454684])
    np.testing.assert_allclose(poisson_density(np.array([0.1, 0.5]), 2.0), golden, rtol=1e-15)
    finite = {24: [1.64737609145421352, 0.516804373661831755], 96: [1.61563521267363646, 0.509415271718679388]}
    for layers, values in finite.items():
        np.testing.assert_allclose(cesaro_density(np.array([0.1, 0.5]), layers, 2 / layers), values, rtol=1e-14)


def test_poisson_masses() -> None:
    with mp.workdps(20):
        body = mp.quad(lambda t: mp.exp(-t) * float(poisson_density(math.exp(-float(t)), 2.0)), [0, 2, 10, 40, 200])
    assert float(body) + poisson_spike(2.0) == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize(("rate", "x"), [(1.7, 0.2), (0.5, 0.9), (5.0, 1e-3)])
def test_the_poisson_limit_is_reached_as_one_over_depth(rate: float, x: float) -> None:
    depths = 2 ** np.arange(5, 10)
    limit = float(poisson_density(x, rate))
    errors = np.array([float(cesaro_density(x, int(h), rate / h)) / limit - 1 for h in depths])
    assert np.polyfit(np.log(depths), np.log(np.abs(errors)), 1)[0] == pytest.approx(-1, abs=0.06)
    # The predicted leading term leaves an error of order 1/H^2.
    rest = np.abs(depths * errors - float(poisson_error(x, rate)))
    assert np.polyfit(np.log(depths), np.log(rest), 1)[0] == pytest.approx(-1, abs=0.1)
    spikes = [spike_mass(int(h), rate / h) / poisson_spike(rate) - 1 for h in depths]
    assert np.polyfit(np.log(depths), np.log(np.abs(spikes)), 1)[0] == pytest.approx(-1, abs=0.06)


def test_published_size_of_the_error() -> None:
    """c = 1.7, x = 0.2: 24 times the relative error of 24 layers, and its limit."""
    error = float(cesaro_density(0.2, 24, 1.7 / 24) / poisson_density(0.2, 1.7)) - 1
    assert 24 * error == pytest.approx(0.59059, rel=2e-5)
    assert float(poisson_error(0.2, 1.7)) == pytest.approx(0.573177, rel=2e-6)


@pytest.mark.parametrize("strength", [1e-3, 0.5, 2.0, 300.0])
def test_second_moment_limit_is_hypergeometric(strength: float) -> None:
    def series(u: mp.mpf) -> mp.mpf:
        return mp.hyper([], [1, 2], strength * u**2)

    with mp.workdps(40):
        t = [-mp.log(mp.mpf(point)) for point in X]
        exact = [float(mp.sqrt(strength * series(each))) for each in t]
        slopes = [float(-mp.diff(lambda u: mp.log(series(u)) / 2, each)) for each in t[:-1]]
    np.testing.assert_allclose(second_moment_density(X, strength), exact, rtol=1e-14)
    np.testing.assert_allclose(second_moment_slope(X[:-1], strength), slopes, rtol=1e-13)
    assert float(second_moment_slope(1.0, strength)) == 0


@pytest.mark.parametrize(("strength", "x"), [(2.0, 0.1), (0.3, 0.5), (10.0, 0.01)])
def test_the_second_moment_limit_is_reached_as_one_over_depth(strength: float, x: float) -> None:
    depths = 2 ** np.arange(6, 10)
    limit = float(second_moment_density(x, strength)) ** 2
    errors = [abs(float(path_sum_density(x, [strength / h] * int(h))) / limit - 1) for h in depths]
    assert np.polyfit(np.log(depths), np.log(errors), 1)[0] == pytest.approx(-1, abs=0.06)


def test_refusals() -> None:
    for call in (poisson_density, poisson_slope, poisson_error, second_moment_density, second_moment_slope):
        with pytest.raises(InvalidInput, match=r"x must be in \(0, 1\], got 0.0"):
            call(np.array([0.5, 0.0]), 1.0)
        with pytest.raises(InvalidInput, match="must be a finite number > 0, got 0"):
            call(0.5, 0)
    with pytest.raises(NotApplicable, match="stay below 1e7, or use path_sum_log_point"):
        second_moment_density(1e-100, 1e4)
