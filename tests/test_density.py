"""The continuous first-moment law: values, masses, how fast the discrete law reaches it, and where it fails."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import digamma, eval_genlaguerre

from builders import qwen2_like
from catenary.errors import InvalidInput, NotApplicable
from catenary.protocols import TokenLaw
from catenary.theory.cesaro.density import CESARO_DENSITY, cesaro_density, continuous_mass, midpoints, spike_mass
from catenary.theory.cesaro.row import cesaro_point, cesaro_row
from oracles.cesaro import density

# arXiv 2603.10123 Eq. 5 and 6 evaluated by mpmath with 50 digits (tests/oracles/cesaro.py, density).
GOLDEN = [
    (2, 0.5, 0.5, 0.67328679513998633),
    (6, 0.5, 0.1, 2.0569507844807186),
    (12, 0.2, 0.25, 0.89399221870770794),
    (24, 0.3, 0.5, 0.021221975288357606),
    (24, 0.3, 1e-3, 114.60134503798599),
    (24, 0.05, 0.5, 0.54563432931604187),
    (64, 0.1, 0.01, 12.118799638600237),
    (128, 0.05, 1e-6, 14647.83046104984),
    (128, 0.05, 0.5, 0.05638157005926181),
    (24, 1.0, 0.01, 6.9527451678531724e-8),
    (24, 1.0, 1.0, 0.0),
]


@pytest.mark.parametrize(("layers", "mixing", "x", "value"), GOLDEN)
def test_golden_values(layers: int, mixing: float, x: float, value: float) -> None:
    assert float(cesaro_density(x, layers, mixing)) == pytest.approx(value, rel=2e-13, abs=0)


@pytest.mark.parametrize("layers", [1, 2, 6, 24, 128])
@pytest.mark.parametrize("mixing", [0.01, 0.3, 0.9, 1.0])
def test_fifty_digits(layers: int, mixing: float) -> None:
    x = np.array([1e-6, 1e-3, 0.01, 0.25, 0.5, 0.9, 0.999])
    with mp.workdps(50):
        exact = np.array([float(density(mp.mpf(point), layers, mixing)) for point in x])
    np.testing.assert_allclose(cesaro_density(x, layers, mixing), exact, rtol=2e-13)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_number_gives_a_number_and_an_array_an_array(layers: int) -> None:
    assert isinstance(cesaro_density(0.3, layers, 0.5), np.float64)
    assert cesaro_density(np.array([0.3, 0.4]), layers, 0.5).shape == (2,)


def test_scipy_laguerre_polynomial() -> None:
    x = np.linspace(0.01, 1, 100)
    laguerre = 0.2 * 0.8**23 * eval_genlaguerre(23, 1, -0.2 * np.log(1 / x) / 0.8)
    np.testing.assert_allclose(cesaro_density(x, 24, 0.2), laguerre, rtol=2e-13)


def test_one_mixing_per_layer() -> None:
    """Two layers by hand: a b t for both, a(1-b) + b(1-a) for one."""
    a, b, x = 0.3, 0.8, np.array([0.1, 0.6, 1.0])
    by_hand = a * (1 - b) + b * (1 - a) + a * b * np.log(1 / x)
    np.testing.assert_allclose(cesaro_density(x, 2, [a, b]), by_hand, rtol=1e-14)


@pytest.mark.parametrize(("layers", "mixing"), [(1, 1.0), (6, 0.5), (24, 0.05), (3, [0.2, 0.0, 0.9])])
def test_masses_sum_to_one(layers: int, mixing: float | list[float]) -> None:
    def integrand(t: mp.mpf) -> mp.mpf:  # x = e^-t
        return mp.mpf(float(cesaro_density(math.exp(-float(t)), layers, mixing))) * mp.exp(-t)

    integral = float(mp.quad(integrand, [0, 2, 10, 40, 200]))
    assert integral == pytest.approx(continuous_mass(layers, mixing), rel=1e-12)
    assert spike_mass(layers, mixing) + continuous_mass(layers, mixing) == pytest.approx(1, rel=1e-15)


def test_small_continuous_mass_keeps_its_digits() -> None:
    assert continuous_mass(3, 1e-12) == pytest.approx(3e-12, rel=1e-11)
    assert spike_mass(4, 1.0) == 0.0


@pytest.mark.parametrize(("layers", "mixing"), [(6, 0.5), (24, 0.3), (24, 0.05)])
def test_error_at_fixed_x_falls_as_one_over_length(layers: int, mixing: float) -> None:
    lengths = 2 ** np.arange(10, 17)
    middle, plain = [], []
    for length in lengths:
        row = cesaro_row(int(length), layers, mixing) * length
        inside = slice(length // 10, 9 * length // 10)
        fraction = np.arange(1, length + 1) / length
        plain.append(np.abs(row / cesaro_density(fraction, layers, mixing) - 1)[inside].max())
        middle.append(np.abs(row / cesaro_density(midpoints(int(length)), layers, mixing) - 1)[inside].max())
    for errors in (middle, plain):
        slope = np.polyfit(np.log(lengths), np.log(errors), 1)[0]
        assert slope == pytest.approx(-1, abs=0.02)
    assert (np.array(plain) / np.array(middle) > 1.7).all()


def test_midpoints_are_the_centre_of_log_x_under_the_beta_distribution() -> None:
    """E[ln X] = psi(j) - psi(L+1), and psi(j) = ln(j - 1/2) + 1/(24 (j - 1/2)^2) + O(j^-4)."""
    j = np.arange(1, 201)
    gap = digamma(j) - digamma(201) - np.log(midpoints(200))
    np.testing.assert_allclose(gap[2:100], 1 / (24 * (j - 0.5) ** 2)[2:100], rtol=0.3)
    np.testing.assert_allclose(midpoints(4), [1 / 9, 3 / 9, 5 / 9, 7 / 9], rtol=1e-15)


def test_error_at_the_first_token_falls_with_the_logarithm_only() -> None:
    lengths = 10.0 ** np.arange(6, 301, 49)
    errors = []
    for length in lengths:
        weight = cesaro_point(int(length), 6, 0.5, 0) * length
        errors.append(abs(float(cesaro_density(1 / length, 6, 0.5)) / weight - 1))
    assert (np.diff(errors) < 0).all()
    slope = np.polyfit(np.log(np.log(lengths)), np.log(errors), 1)[0]
    assert slope == pytest.approx(-1, abs=0.2)


@pytest.mark.parametrize(
    ("length", "first", "tenth"), [(512, -0.54, -0.07), (32768, -0.35, -0.03), (10**6, -0.26, -0.02)]
)
def test_how_wrong_it_is_at_the_first_tokens(length: int, first: float, tenth: float) -> None:
    x = midpoints(length)
    for position, error in ((0, first), (9, tenth)):
        weight = cesaro_point(length, 24, 0.3, position) * length
        assert float(cesaro_density(x[position], 24, 0.3)) / weight - 1 == pytest.approx(error, abs=0.006)


def test_theory() -> None:
    profile = CESARO_DENSITY.predict(qwen2_like(depth=24), 512, TokenLaw(), {"mixing": 0.3})
    row = cesaro_row(512, 24, 0.3)
    np.testing.assert_allclose(profile.values[50:], row[50:], rtol=0.05)
    assert profile.values[0] / row[0] - 1 == pytest.approx(-0.54, abs=0.01)
    assert profile.values.sum() == pytest.approx(0.66, abs=0.005)
    assert profile.card is not None
    assert any("first 10 tokens" in statement for statement in profile.card.statements)


def test_theory_refuses_what_float64_cannot_hold() -> None:
    with pytest.raises(NotApplicable, match="use a mixing further from 1"):
        CESARO_DENSITY.predict(qwen2_like(depth=128), 4096, TokenLaw(), {"mixing": 1.0})


@pytest.mark.parametrize("x", [0.0, -0.1, 1.001, math.nan])
def test_refuses_x_outside(x: float) -> None:
    with pytest.raises(InvalidInput, match=r"x must be in \(0, 1\]"):
        cesaro_density(x, 2, 0.5)


def test_refuses_a_single_position() -> None:
    with pytest.raises(InvalidInput, match="length must be a whole number >= 2, got 1"):
        CESARO_DENSITY.predict(qwen2_like(), 1, TokenLaw(), {"mixing": 0.5})
