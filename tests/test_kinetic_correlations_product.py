"""Correlations of tokens with laws of their own: two tokens by quadrature, the closed form, the mean field."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from catenary.errors import InvalidInput
from catenary.kinetic.closed_form.modes import mode_rate
from catenary.kinetic.closed_form.one_mode import response
from catenary.kinetic.correlations.product import ModeCorrelations, correlate_modes, draw_prompts
from catenary.kinetic.field.correlated import mean_field_correlations
from catenary.kinetic.particles.circle import Circle


def drifting(sigma: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return np.asarray(1 + 0.6 * np.cos(theta - np.pi * sigma))


def uniform(sigma: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return np.ones(np.broadcast_shapes(np.shape(sigma), np.shape(theta)))


def wave(theta: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-1j * theta))


def excess(found: ModeCorrelations, exact: np.ndarray) -> float:
    """The largest difference, in standard errors."""
    difference = found.value - exact
    parts = np.abs(difference.real) / found.stderr.real, np.abs(difference.imag) / found.stderr.imag
    return float(np.max(parts))


def test_prompts_have_their_law() -> None:
    prompts = draw_prompts(drifting, 4, 20_000, np.random.default_rng(0))
    first = np.exp(-1j * prompts).mean(axis=0)
    np.testing.assert_allclose(first, 0.3 * np.exp(-1j * np.pi * np.arange(1, 5) / 4), atol=4 / math.sqrt(20_000))
    np.testing.assert_allclose(np.exp(-2j * prompts).mean(axis=0), 0, atol=4 / math.sqrt(20_000))
    assert np.abs(np.corrcoef(prompts.T) - np.eye(4)).max() < 0.03


@pytest.mark.parametrize("function", [wave, np.cos, lambda theta: np.sin(2 * theta) + 3])
def test_two_tokens_by_quadrature(function: object) -> None:
    """N Cov at N = 2 as a double sum over both starts; the first token rests, the second follows the difference."""
    grid = 2 * np.pi * np.arange(128) / 128
    beta, t = 1.0, 0.8

    def speed(_: float, difference: np.ndarray) -> np.ndarray:
        return np.asarray(-beta * np.sin(difference) * np.exp(beta * np.cos(difference)))

    gone = solve_ivp(speed, (0, t), grid, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    source, last = np.meshgrid(np.arange(128), np.arange(128), indexing="ij")
    end = grid[source] + gone[(last - source) % 128]
    mass = drifting(0.5, grid[source]) * drifting(1.0, grid[last]) / 128**2  # type: ignore[arg-type]
    values = function(grid[source])  # type: ignore[operator]
    centred = values - (mass * values).sum()
    exact = [2 * (mass * np.exp(-1j * n * end) * centred).sum() for n in (1, 3)]
    found = correlate_modes(
        Circle(2, beta, 1.0), drifting, function, t=t, modes=[1, 3], samples=8000, seed=1, steps=20  # type: ignore[arg-type]
    )
    assert excess(found, np.array(exact)[:, None]) < 4
    assert found.stderr.real.max() < 0.05


def test_uniform_laws_give_the_closed_form() -> None:
    found = correlate_modes(
        Circle(64, 1.0, 2.0), uniform, lambda theta: np.exp(2j * theta), t=0.5, modes=[1, 2], samples=2000, seed=2
    ).window(0.4, 0.6)
    exact = float(response(0.5, 1.0, 0.5, a=mode_rate(2, 1.0), lam=2.0))
    assert excess(found, np.array([[0], [exact]])) < 4
    assert found.stderr.real[1] < 0.1 * exact


def test_laws_that_move_along_the_prompt_give_the_mean_field() -> None:
    places = [0.3, 0.5, 0.7]
    exact = mean_field_correlations(drifting, wave, sigma0=places, lam=2.0, beta=1.0, t=1.0).fourier([1, 2])
    found = correlate_modes(Circle(48, 1.0, 2.0), drifting, wave, t=1.0, modes=[1, 2], samples=8000, seed=3)
    for place, values in zip(places, exact, strict=True):
        window = found.window(place - 0.05, place + 0.05)
        finite = 0.5 / 48  # the measured coefficient of 1/N is below .5 for these modes
        off = np.abs(window.value[:, 0] - values)
        assert (off < 4 * np.abs(window.stderr[:, 0]) + finite).all()
        assert abs(window.stderr[0, 0]) < 0.12 * np.abs(exact).max()


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (lambda sigma, theta: 1 + np.cos(theta) + 0 * sigma, "start must be > 0 everywhere, got 0.0"),
        (lambda sigma, theta: 2 + 0 * theta + 0 * sigma, "start must average 1 over the circle, at sigma = 0.25 too"),
        (lambda sigma, theta: np.nan * theta + 0 * sigma, "start must be finite, got nan"),
        (lambda sigma, theta: 1 + 2 * np.cos(theta) + 0 * sigma, "start must be >= 0, got"),
    ],
)
def test_what_is_no_density_is_refused(start: object, message: str) -> None:
    with pytest.raises(InvalidInput, match="^" + message):
        correlate_modes(Circle(4, 1.0, 1.0), start, wave, t=1.0, modes=[1], samples=4, seed=0)  # type: ignore[arg-type]


def test_other_arguments_are_checked_and_seeds_repeat() -> None:
    def run(t: float = 1.0, samples: int = 4, seed: int = 0) -> ModeCorrelations:
        return correlate_modes(Circle(4, 1.0, 1.0), drifting, wave, t=t, modes=[1], samples=samples, seed=seed)

    with pytest.raises(InvalidInput, match=r"^t must be > 0"):
        run(t=0.0)
    with pytest.raises(InvalidInput, match=r"^samples must be a whole number"):
        run(samples=1)
    with pytest.raises(InvalidInput, match=r"^low, high must have a source between them"):
        run().window(0.8, 0.9)
    np.testing.assert_array_equal(run().draws, run().draws)
    assert (run().draws != run(seed=1).draws).all()
