"""Minimum and ratios of the first-moment law: golden table, whole rows, limits in L, and the edges of the domain.

The table was printed to 4 digits (mid to 3 decimals) from the row recursion; masses to 3 decimals.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import eval_genlaguerre

from catenary.errors import InvalidInput
from catenary.theory.cesaro.extremes import cesaro_extremes
from catenary.theory.cesaro.log_row import cesaro_log_row
from catenary.theory.cesaro.masses import cesaro_head_mass
from catenary.theory.cesaro.row import cesaro_row

TABLE = np.genfromtxt(Path(__file__).parent / "golden" / "cesaro_ratios.csv", delimiter=",", names=True)


def test_golden_table() -> None:
    length, layers = TABLE["length"].astype(int), TABLE["layers"].astype(int)
    found = cesaro_extremes(length, layers, TABLE["mixing"])
    assert len(TABLE) == 60
    np.testing.assert_allclose(10**found.first_over_min, TABLE["first_over_min"], rtol=6e-4)
    np.testing.assert_allclose(10**found.mid_over_min, TABLE["mid_over_min"], rtol=6e-4)
    np.testing.assert_allclose(10**found.last_over_min, TABLE["last_over_min"], rtol=6e-4)
    np.testing.assert_allclose(10 ** (found.first_over_min - found.last_over_min), TABLE["first_over_last"], rtol=6e-3)
    np.testing.assert_array_equal(found.argmin + 1, TABLE["argmin_from_1"])


def test_golden_masses() -> None:
    for row in TABLE:
        mass = cesaro_head_mass(int(row["length"]), int(row["layers"]), row["mixing"], int(row["length"]) // 100)
        assert mass == pytest.approx(row["first_percent_mass"], abs=6e-4)


@pytest.mark.parametrize("length", [2, 3, 4, 50])
@pytest.mark.parametrize(("layers", "mixing"), [(1, 0.5), (2, 0.9), (5, 1.0), (24, 0.3), (64, 0.99)])
def test_whole_rows(length: int, layers: int, mixing: float) -> None:
    logs = cesaro_log_row(length, layers, mixing) / math.log(10)
    found = cesaro_extremes(length, layers, mixing)
    assert logs[found.argmin] == pytest.approx(logs.min(), abs=1e-12)
    assert found.first_over_min == pytest.approx(logs[0] - logs.min(), abs=1e-12)
    assert found.mid_over_min == pytest.approx(logs[length // 2] - logs.min(), abs=1e-12)
    assert found.last_over_min == pytest.approx(logs[-1] - logs.min(), abs=1e-12)


def test_arguments_are_broadcast() -> None:
    found = cesaro_extremes(np.array([100, 1000])[:, None], 6, np.array([0.1, 0.5, 1.0]))
    assert found.first_over_min.shape == found.argmin.shape == (2, 3)
    row = np.log10(cesaro_row(1000, 6, 0.5))
    assert found.first_over_min[1, 1] == pytest.approx(row[0] - row.min(), abs=1e-12)
    assert found.argmin.tolist() == [[98, 98, 99], [998, 998, 999]]


def test_mixing_one_beyond_float64() -> None:
    found = cesaro_extremes(10**6, 128, 1.0)
    assert found.argmin == 10**6 - 1
    assert found.last_over_min == 0
    # The first token has nearly all the weight, so the ratio is the last token's L^H.
    assert found.first_over_min == pytest.approx(128 * 6, abs=0.01)


def test_large_length_limits() -> None:
    """last/min -> (1-a) L/(H a), mid/min -> Laguerre at ln 2, both with an error of order 1/L."""
    lengths = 2 ** np.arange(12, 24, 2)
    for layers, a in ((12, 0.1), (6, 0.5), (24, 0.3)):
        found = cesaro_extremes(lengths, layers, a)
        last = np.abs(10**found.last_over_min / ((1 - a) * lengths / (layers * a)) - 1)
        limit = eval_genlaguerre(layers - 1, 1, -a * math.log(2) / (1 - a)) / layers
        mid = np.abs(10**found.mid_over_min / limit - 1)
        for errors in (last, mid):
            assert np.polyfit(np.log(lengths), np.log(errors), 1)[0] == pytest.approx(-1, abs=0.02)


def test_first_over_min_grows_like_a_power_of_the_logarithm_of_length() -> None:
    """To the power H - 1 in the end: the leading term is (a/(1-a))^{H-1} (ln L)^{H-1} / H!."""
    lengths = [10**k for k in (6, 12, 18)]
    slopes = np.diff(cesaro_extremes(lengths, 4, 0.5).first_over_min) / np.diff(np.log10(np.log(np.float64(lengths))))
    assert 2.4 < slopes[0] < slopes[1] < 3


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="length must be a whole number >= 2, got 1"):
        cesaro_extremes([4, 1], 2, 0.5)
    with pytest.raises(InvalidInput, match=r"length must be below 2\^63"):
        cesaro_extremes(1 << 63, 2, 0.5)
    with pytest.raises(InvalidInput, match=r"mixing must be in \[0, 1\], got 1.5"):
        cesaro_extremes(4, 2, 1.5)
