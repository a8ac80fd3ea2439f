"""The paper's law fitted by one mixing: it recovers its own, matches a brute-force search, and says it is fitted."""

from __future__ import annotations

import json
import math
from typing import Literal

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from catenary.errors import InvalidInput, NotApplicable
from catenary.profile import Profile
from catenary.quantity import JACOBIAN_NORM, SCALAR_GRADIENT
from catenary.theory.cesaro.fit import CRITERIA, GRID, fit_cesaro
from catenary.theory.cesaro.log_row import cesaro_log_row
from catenary.theory.cesaro.row import cesaro_row
from oracles.cesaro import dense_row

By = Literal["w1", "log"]


@pytest.mark.parametrize("by", ["w1", "log"])
@pytest.mark.parametrize(("layers", "mixing"), [(1, 0.4), (24, 0.0755), (24, 0.9), (128, 0.05)])
def test_recovers_its_own_mixing_and_scale(layers: int, mixing: float, by: By) -> None:
    fit = fit_cesaro(Profile(7.0 * cesaro_row(256, layers, mixing), label="law"), layers, by=by)
    assert fit.mixing == pytest.approx(mixing, rel=1e-6)
    assert fit.scale == pytest.approx(7, rel=1e-5)
    assert fit.misfit < 1e-6
    assert not fit.at_edge
    np.testing.assert_allclose(fit.profile().values, 7.0 * cesaro_row(256, layers, mixing), rtol=1e-4)


def _misfit(values: np.ndarray, mixing: float, layers: int, by: By) -> float:
    """The two criteria from scipy and from dense matrices."""
    law, x = dense_row(len(values), [mixing] * layers), np.arange(len(values)) / len(values)
    if by == "w1":
        return float(wasserstein_distance(x, x, law, values))
    return float(np.std(np.log10(law / values)))


@pytest.mark.parametrize("by", ["w1", "log"])
def test_brute_force_finds_nothing_better(by: By) -> None:
    values = 1 / np.arange(1.0, 33.0) + 0.1
    values[-1] = 3.0
    fit = fit_cesaro(Profile(values), 4, by=by)
    heights = [_misfit(values, mixing, 4, by) for mixing in np.linspace(0.001, 1, 1000)]
    assert fit.misfit == pytest.approx(_misfit(values, fit.mixing, 4, by), rel=1e-9)
    assert fit.misfit <= min(heights)
    assert fit.misfit > 0.9 * min(heights)
    assert abs(fit.mixing - np.linspace(0.001, 1, 1000)[int(np.argmin(heights))]) < 2e-3


def test_the_criteria_differ_where_the_law_does_not_fit() -> None:
    values = cesaro_row(128, 12, 0.1).copy()
    values[-1] /= 10
    by_w1, by_log = (fit_cesaro(Profile(values), 12, by=by) for by in ("w1", "log"))
    assert by_w1.mixing > 1.05 * by_log.mixing


@pytest.mark.parametrize(("share", "low"), [(0.56, False), (0.98, True)])
def test_the_lower_of_two_minima_wins(share: float, low: bool) -> None:
    """Two unlike laws mixed: the log misfit has a minimum near each, and a search from one end finds only one."""
    values = share * cesaro_row(64, 12, 4.5e-6) + (1 - share) * cesaro_row(64, 12, 0.89)
    heights = np.array([_misfit(values, float(mixing), 12, "log") for mixing in GRID])
    inner = heights[1:-1]
    minima = 1 + np.flatnonzero((inner < heights[:-2]) & (inner < heights[2:]))
    assert len(minima) == 2
    fit = fit_cesaro(Profile(values), 12, by="log")
    assert fit.misfit < heights.min() * (1 - 1e-6)  # refined, not the grid's own point
    assert (fit.mixing < 0.01) is low


def test_a_law_below_the_range_of_the_fast_route() -> None:
    """230^-128 = 1e-302 at the last token: only the recursion in log space reaches it."""
    values = np.exp(cesaro_log_row(230, 128, 1.0))
    with pytest.raises(NotApplicable):
        cesaro_row(230, 128, 1.0)
    fit = fit_cesaro(Profile(values), 128, by="log")
    assert fit.mixing == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(fit.profile().values, values, rtol=1e-3)


def test_flat_is_one_layer_without_residual() -> None:
    fit = fit_cesaro(Profile(np.ones(64)), 1)
    assert fit.mixing == 1.0
    assert fit.at_edge
    np.testing.assert_allclose(fit.profile().values, 1, rtol=1e-12)


def test_a_spike_alone_ends_at_the_edge() -> None:
    values = np.full(64, 1e-12)
    values[-1] = 1.0
    fit = fit_cesaro(Profile(values), 24)
    assert fit.at_edge
    assert fit.mixing == pytest.approx(GRID[0], rel=1e-12)


def test_the_profile_says_what_was_fitted() -> None:
    source = Profile(cesaro_row(64, 6, 0.2) * 3, SCALAR_GRADIENT, "untrained net")
    fit = fit_cesaro(source, 6, by="log")
    profile = fit.profile()
    assert "fitted" in profile.label
    assert profile.quantity is SCALAR_GRADIENT
    assert profile.card is None
    record = json.loads(json.dumps(dict(profile.provenance)))
    assert record["fitted_to"] == "untrained net"
    assert record["fitted"]["mixing"] == fit.mixing
    assert record["by"] == "log"
    assert record["fitted_by"] == CRITERIA["log"].words
    assert record["misfit"] == fit.misfit


def test_scale_follows_the_criterion() -> None:
    values = np.random.default_rng(0).uniform(1, 2, 50)
    by_w1, by_log = (fit_cesaro(Profile(values), 3, by=by).profile().values for by in ("w1", "log"))
    assert by_w1.sum() == pytest.approx(values.sum(), rel=1e-12)
    assert np.mean(np.log(by_log / values)) == pytest.approx(0, abs=1e-12)


def test_zeros_are_for_w1_only() -> None:
    values = np.concatenate([np.zeros(10), np.ones(10), [20.0]])
    assert math.isfinite(fit_cesaro(Profile(values), 3, by="w1").misfit)
    with pytest.raises(InvalidInput, match="profile must be > 0 everywhere for by='log'"):
        fit_cesaro(Profile(values), 3, by="log")


def test_refusals() -> None:
    profile = Profile(np.ones(8), JACOBIAN_NORM)
    with pytest.raises(InvalidInput, match=r"unknown fit criterion 'lag'\. Did you mean 'log'"):
        fit_cesaro(profile, 2, by="lag")  # type: ignore[arg-type]
    for layers in (0, -2, 1.5):
        with pytest.raises(InvalidInput, match="layers must be a whole number >= 1"):
            fit_cesaro(profile, layers)  # type: ignore[arg-type]
