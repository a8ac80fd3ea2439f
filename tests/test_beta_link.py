"""The exact link from densities to chains of L positions: for the law itself, its limits, and any other density."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma

from catenary.errors import InvalidInput
from catenary.theory.cesaro import beta_link
from catenary.theory.cesaro.beta_link import beta_smoothed
from catenary.theory.cesaro.density import cesaro_density, spike_mass
from catenary.theory.cesaro.limits import poisson_density, poisson_spike
from catenary.theory.cesaro.moments import log_moments
from catenary.theory.cesaro.row import cesaro_row


@pytest.mark.parametrize(
    ("length", "layers", "mixing"),
    [
        (2, 1, 0.5), (2, 3, 1.0), (12, 2, 0.5), (300, 24, 0.3), (300, 6, [0.1, 0.9, 0.0, 1.0, 0.2, 0.3]),
        (4096, 128, 0.3),
    ],
)
def test_the_law_is_its_own_density_smoothed(length: int, layers: int, mixing: float | list[float]) -> None:
    positions = np.unique(np.linspace(0, length - 1, 40).astype(int))
    smooth = beta_smoothed(lambda x: cesaro_density(x, layers, mixing), length, positions)
    smooth[-1] += spike_mass(layers, mixing)
    np.testing.assert_allclose(smooth, cesaro_row(length, layers, mixing)[positions], rtol=5e-13)


def test_half_the_nodes_do(monkeypatch: pytest.MonkeyPatch) -> None:
    positions = np.arange(0, 500, 7)
    smooth = beta_smoothed(lambda x: cesaro_density(x, 24, 0.3), 500, positions)
    monkeypatch.setattr(beta_link, "NODES", 200)
    np.testing.assert_allclose(beta_smoothed(lambda x: cesaro_density(x, 24, 0.3), 500, positions), smooth, rtol=2e-13)


def test_moments_of_a_beta_variable() -> None:
    """E[x^p] and E[ln(1/x)] in closed form; a mass of 1 is kept at every position."""
    positions, length = np.arange(50), 50
    j = positions + 1
    np.testing.assert_allclose(beta_smoothed(np.ones_like, length, positions) * length, 1, rtol=1e-14)
    np.testing.assert_allclose(beta_smoothed(lambda x: x, length, positions) * length, j / (length + 1), rtol=1e-13)
    logs = beta_smoothed(lambda x: -np.log(x), length, positions) * length
    np.testing.assert_allclose(logs, digamma(length + 1) - digamma(j), rtol=1e-12)
    np.testing.assert_allclose(logs, [log_moments(length, k, 2).values()[1] for k in range(length)], rtol=1e-12)


def test_log_moments_against_drawn_exponentials() -> None:
    """T is a sum of independent exponentials of means 1/j, ..., 1/L: moments of 200,000 draws, 5 standard errors."""
    j, length = 3, 9
    exponentials = np.random.default_rng(0).exponential(size=(200_000, length - j + 1))
    draws = (exponentials / np.arange(j, length + 1)).sum(axis=1)
    for s, moment in enumerate(log_moments(length, j - 1, 4).values()):
        powers = draws**s / [1, 1, 2, 6][s]
        assert moment == pytest.approx(powers.mean(), abs=5 * powers.std() / 200_000**0.5 + 1e-15)


def test_the_poisson_limit_at_a_finite_length() -> None:
    """Rows of many weak layers approach the smoothed Poisson density as 1/H, first token included."""
    positions = np.array([0, 1, 10, 63])
    limit = beta_smoothed(lambda x: poisson_density(x, 2.0), 64, positions)
    limit[-1] += poisson_spike(2.0)
    depths = 2 ** np.arange(5, 10)
    errors = np.array([np.abs(cesaro_row(64, int(h), 2 / h)[positions] / limit - 1) for h in depths])
    for column in errors.T:
        assert np.polyfit(np.log(depths), np.log(column), 1)[0] == pytest.approx(-1, abs=0.06)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match=r"positions must be in 0\.\.7 \(0-based\), got 8"):
        beta_smoothed(np.ones_like, 8, np.array([0, 8]))
    with pytest.raises(InvalidInput, match="density must be finite on"):
        beta_smoothed(lambda x: np.full_like(x, np.inf), 8, np.array([0]))
