"""Mass of the first k positions, discrete and continuous: sums of exact rows, quadrature, and how fast the two meet."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from catenary.errors import InvalidInput
from catenary.theory.cesaro.density import cesaro_density, continuous_mass, spike_mass
from catenary.theory.cesaro.masses import cesaro_head_mass, cesaro_mass, density_head_mass
from catenary.theory.cesaro.row import cesaro_row
from oracles.cesaro import exact_row

CASES = [(6, Fraction(1, 2)), (1, Fraction(3, 10)), (4, Fraction(1)), (12, Fraction(1, 20))]


@pytest.mark.parametrize(("layers", "mixing"), CASES)
def test_against_exact_sums(layers: int, mixing: Fraction) -> None:
    exact = exact_row(30, [mixing] * layers)
    for k in range(31):
        assert cesaro_head_mass(30, layers, float(mixing), k) == pytest.approx(float(sum(exact[:k])), rel=1e-13)
    assert cesaro_mass(30, layers, float(mixing), 4, 17) == pytest.approx(float(sum(exact[4:17])), rel=1e-13)
    assert cesaro_mass(30, layers, float(mixing), 4, 4) == 0


def test_one_mixing_per_layer() -> None:
    row = cesaro_row(50, 3, [0.2, 0.0, 1.0])
    np.testing.assert_allclose([cesaro_head_mass(50, 3, [0.2, 0.0, 1.0], k) for k in range(1, 51)], row.cumsum(), 1e-13)


def test_a_million_positions() -> None:
    row = cesaro_row(10**6, 24, 0.1)
    for k in (1, 1000, 500_000, 999_999):
        assert cesaro_head_mass(10**6, 24, 0.1, k) == pytest.approx(float(row[:k].sum()), rel=1e-11)
    assert cesaro_head_mass(10**12, 24, 0.1, 10**12) == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize(("layers", "mixing"), CASES)
def test_continuous_mass_against_quadrature(layers: int, mixing: Fraction) -> None:
    a = float(mixing)
    x = np.array([0.0, 1e-3, 0.1, 0.5, 0.9, 1.0])
    mass = density_head_mass(x, layers, a)
    for left, right, difference in zip(x[1:-1], x[2:], np.diff(mass)[1:], strict=True):
        integral = quad(lambda point: float(cesaro_density(point, layers, a)), left, right, epsabs=1e-15)[0]
        assert difference == pytest.approx(integral, rel=1e-11)
    assert mass[0] == 0
    assert mass[-1] == pytest.approx(continuous_mass(layers, a), rel=1e-13)
    assert mass[-1] + spike_mass(layers, a) == pytest.approx(1, rel=1e-14)


def test_the_two_masses_meet_as_one_over_the_length() -> None:
    lengths = 2 ** np.arange(8, 20)
    limit = float(density_head_mass(0.25, 12, 0.2))
    errors = [abs(cesaro_head_mass(int(length), 12, 0.2, int(length) // 4) / limit - 1) for length in lengths]
    assert np.polyfit(np.log(lengths), np.log(errors), 1)[0] == pytest.approx(-1, abs=0.01)


@pytest.mark.parametrize("tokens", [-1, 9, 2.0, True])
def test_refuses_tokens_outside(tokens: object) -> None:
    with pytest.raises(InvalidInput, match=r"tokens must be a whole number in 0\.\.8"):
        cesaro_head_mass(8, 2, 0.5, tokens)  # type: ignore[arg-type]


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="start must be at most stop = 2, got 3"):
        cesaro_mass(8, 2, 0.5, 3, 2)
    with pytest.raises(InvalidInput, match=r"x must be in \[0, 1\], got 1.5"):
        density_head_mass(np.array([0.5, 1.5]), 2, 0.5)
