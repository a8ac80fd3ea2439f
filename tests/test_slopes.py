"""Local slopes and onsets: differences of exact rows, derivatives by mpmath, and their leading terms."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from catenary.errors import InvalidInput, NotApplicable
from catenary.theory.cesaro.density import cesaro_density
from catenary.theory.cesaro.limits import second_moment_density
from catenary.theory.cesaro.row import cesaro_row
from catenary.theory.cesaro.slopes import cesaro_onset, cesaro_slope, density_onset, density_slope, second_moment_onset
from oracles.cesaro import density, exact_row


@pytest.mark.parametrize("mixings", [["1"], ["1/2"] * 6, ["1"] * 4, ["1/20", "0", "1"]], ids=str)
def test_discrete_slope_is_the_difference_of_exact_rows(mixings: list[str]) -> None:
    length, exact = 20, [Fraction(a) for a in mixings]
    row = exact_row(length, exact)
    row[-1] -= math.prod(1 - a for a in exact)  # the spike is no part of the body
    for j in range(1, length):
        slope = float(j * (row[j] - row[j - 1]) / row[j - 1])
        found = cesaro_slope(length, len(exact), [float(a) for a in exact], j - 1)
        assert found == pytest.approx(slope, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("layers", "mixing"), [(1, 0.5), (2, 0.3), (24, 0.05), (12, 1.0), (128, 0.3)])
def test_density_slope(layers: int, mixing: float) -> None:
    x = np.array([1e-6, 1e-2, 0.3, 0.9])
    with mp.workdps(50):
        exact = [
            float(mp.diff(lambda u: mp.log(density(mp.exp(u), layers, mixing)), mp.log(mp.mpf(point)))) for point in x
        ]
    np.testing.assert_allclose(density_slope(x, layers, mixing), exact, rtol=1e-12, atol=1e-20)


def test_discrete_slope_reaches_the_continuous_one_as_one_over_length() -> None:
    lengths = 2 ** np.arange(8, 20)
    limit = float(density_slope(0.25, 12, 0.2))
    errors = [abs(cesaro_slope(int(n), 12, 0.2, int(n) // 4 - 1) / limit - 1) for n in lengths]
    assert np.polyfit(np.log(lengths), np.log(errors), 1)[0] == pytest.approx(-1, abs=0.01)


@pytest.mark.parametrize(
    ("layers", "mixing", "factor"), [(24, 0.1, 2.0), (6, 0.5, 10.0), (12, 1.0, 1.5), (3, 0.2, 1.01)]
)
def test_onset_of_whole_rows(layers: int, mixing: float, factor: float) -> None:
    row = cesaro_row(400, layers, mixing)
    assert cesaro_onset(400, layers, mixing, factor) == np.flatnonzero(row[:-1] >= factor * row[-2]).max()


def test_onset_of_the_shortest_row() -> None:
    assert cesaro_onset(3, 4, 1.0, 1.5) == 0


def test_onset_of_the_density() -> None:
    x = density_onset(24, 0.1)
    assert float(cesaro_density(x, 24, 0.1)) == pytest.approx(2 * float(cesaro_density(1.0, 24, 0.1)), rel=1e-12)
    length = 10**7
    assert cesaro_onset(length, 24, 0.1) / length == pytest.approx(x, rel=1e-5)
    # To first order in ln(1/x): exp(-(f-1) c_1/c_2), c_1/c_2 = 2 (1-a)/((H-1) a).
    near = [density_onset(24, 0.1, 1 + eps) for eps in (1e-2, 1e-3)]
    leading = [math.exp(-eps * 2 * 0.9 / (23 * 0.1)) for eps in (1e-2, 1e-3)]
    errors = np.log(near) / np.log(leading) - 1
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.05)


def test_second_moment_onset() -> None:
    for strength in (0.1, 2.0, 50.0):
        x = second_moment_onset(strength)
        assert float(second_moment_density(x, strength)) ** 2 == pytest.approx(2 * strength, rel=1e-11)
        # 1 + z/2 + z^2/24 + z^3/864 is 2 at z = 1.736 and not at 2: ln(1/x) is sqrt(1.736/2) of the leading term.
        assert math.log(x) / -math.sqrt(2 / strength) == pytest.approx(math.sqrt(1.736 / 2), abs=2e-4)
    near = [math.log(second_moment_onset(2.0, 1 + eps)) / -math.sqrt(2 * eps) - 1 for eps in (1e-2, 1e-3)]
    assert near[0] / near[1] == pytest.approx(10, rel=0.05)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"position must be in 0\.\.6"):
        cesaro_slope(8, 2, 0.5, 7)
    with pytest.raises(NotApplicable, match="a local slope needs a density > 0, got 0 at x = 1"):
        density_slope(np.array([0.5, 1.0]), 3, 1.0)
    with pytest.raises(InvalidInput, match="factor must be a finite number > 1, got 1"):
        density_onset(3, 0.5, 1.0)
    with pytest.raises(InvalidInput, match="length must be >= 3"):
        cesaro_onset(2, 3, 0.5)
    with pytest.raises(NotApplicable, match=r"no position has 2 times the lowest influence: the first token has 1\.0"):
        cesaro_onset(100, 2, 0.01)
    with pytest.raises(NotApplicable, match="one attention layer alone gives a flat density"):
        density_onset(2, [0.0, 0.5])
    with pytest.raises(NotApplicable, match="an onset needs a density > 0 at x = 1"):
        density_onset(2, 1.0)
    with pytest.raises(NotApplicable, match="it lies below x = 1e-292"):
        second_moment_onset(1e-9)
