"""Attention on spheres: loops over tokens, the circle as a special case, exact invariances, sampled values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from catenary.errors import InvalidInput
from catenary.kinetic.particles.circle import Circle
from catenary.kinetic.particles.spheres import Spheres, correlate_on_sphere, uniform_points
from oracles.particles import attention_push


def points(tokens: int, dimension: int, seed: int = 0, copies: tuple[int, ...] = ()) -> np.ndarray:
    return uniform_points((*copies, tokens, dimension), np.random.default_rng(seed))


def matrices(dimension: int, seed: int) -> np.ndarray:
    return np.eye(dimension) + 0.7 * np.random.default_rng(seed).standard_normal((3, dimension, dimension))


@pytest.mark.parametrize(("beta", "lam"), [(1.0, 0.0), (3.0, 5.0), (300.0, 700.0)])
def test_drift_is_the_loop_over_tokens(beta: float, lam: float) -> None:
    system, here, (query, key, value) = Spheres(12, 4, beta, lam), points(12, 4), matrices(4, 1)
    exact = attention_push(here, beta, lam, query, key, value)
    np.testing.assert_allclose(system.drift(here, query, key, value), exact, atol=1e-12)


def test_each_prompt_has_its_own_matrices() -> None:
    here = points(6, 3, copies=(2, 5))
    drawn = np.stack([matrices(3, seed) for seed in range(5)], axis=1)
    whole = Spheres(6, 3, 1.0, 1.0).drift(here, *drawn)
    one = Spheres(6, 3, 1.0, 1.0).drift(here[1, 4], *drawn[:, 4])
    np.testing.assert_allclose(whole[1, 4], one, atol=1e-15)


def test_on_the_circle_it_differs_from_the_angles_equation_by_the_normaliser_alone() -> None:
    tokens, beta, lam = 30, 1.3, 2.0
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, tokens)
    here = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    drift = Spheres(tokens, 2, beta, lam).drift(here, np.eye(2), np.eye(2), np.eye(2))
    turn = drift[:, 1] * here[:, 0] - drift[:, 0] * here[:, 1]
    lags = np.subtract.outer(np.arange(tokens), np.arange(tokens))
    weight = np.where(lags > 0, np.exp(-lam * lags / tokens), 0.0)
    scores = weight * np.exp(beta * np.cos(np.subtract.outer(angles, angles)))
    normaliser = weight[1:].sum(axis=1) / scores[1:].sum(axis=1)
    np.testing.assert_allclose(turn[1:], Circle(tokens, beta, lam).drift(angles)[1:] / beta * normaliser, atol=1e-14)


def test_points_stay_on_the_sphere_the_first_rests_and_turning_all_turns_the_result() -> None:
    system, start = Spheres(20, 3, 2.0, 1.0), points(20, 3, copies=(4,))
    end = system.flow(start, 1.0, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(end, axis=-1), 1, atol=1e-14)
    np.testing.assert_allclose(end[:, 0], start[:, 0], atol=1e-15)
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))
    np.testing.assert_allclose(system.flow(start @ turn, 1.0, np.random.default_rng(0)), end @ turn, atol=1e-13)


def test_steps_are_of_first_order() -> None:
    system, start = Spheres(20, 3, 2.0, 1.0), points(20, 3, copies=(1,))
    ends = [system.flow(start, 1.0, np.random.default_rng(0), step=0.1 / 2**k) for k in (0, 1, 2, 3, 7)]
    errors = [float(np.abs(end - ends[-1]).max()) for end in ends[:-1]]
    assert -np.polyfit(range(4), np.log2(errors), 1)[0] == pytest.approx(1, abs=0.1)


def test_random_matrices_have_unit_norm_and_are_drawn_per_step_and_prompt() -> None:
    system = Spheres(5, 8, 1.0, 1.0, noise=0.5)
    query, key, value = system._matrices(7, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(np.stack([query, key, value]), ord=2, axis=(-2, -1)), 1)
    assert len({float(matrix[0, 0]) for matrix in (*query, *key, *value)}) == 21
    start = points(5, 8, copies=(1, 2))
    start[:, 1] = start[:, 0]
    end = system.flow(start, 0.2, np.random.default_rng(0))
    assert np.abs(end[0, 0] - end[0, 1]).max() > 1e-3
    shared = system.flow(np.repeat(start, 2, axis=0), 0.2, np.random.default_rng(0))
    np.testing.assert_array_equal(shared[0], shared[1])


@pytest.mark.parametrize(
    ("system", "t", "reference", "error", "samples"),
    [
        (Spheres(64, 3, 1.0, 1.0), 1.5, (0.6905, 0.7618), 0.018, 300),
        (Spheres(64, 3, 1.0, 2.0, noise=0.5), 2.0, (0.4846, 0.8191), 0.0118, 300),
    ],
)
def test_correlations_repeat_sampled_values(
    system: Spheres, t: float, reference: tuple[float, ...], error: float, samples: int
) -> None:
    """References: 6000 prompts sampled apart from this package, with matrices shared between 200 prompts."""
    found = correlate_on_sphere(system, t=t, sigma0=[0.375, 0.875], samples=samples, seed=1)
    assert found.sigma0.tolist() == [0.375, 0.875]
    assert (np.abs(found.value - reference) < 4 * np.hypot(found.stderr, error)).all()
    assert (found.stderr < 0.1).all()


def test_with_two_tokens_the_correlation_is_an_average_over_their_first_angle() -> None:
    """On the circle: the second token turns to the first at rate sin D, whatever beta: tan(D/2) decays as e^-t."""
    start = 2 * np.pi * np.arange(400) / 400
    end = 2 * np.arctan2(np.sin(start / 2) * math.exp(-0.5), np.cos(start / 2))
    mean_end, mean_start = (np.exp(-2 * (1 - np.cos(angle))).mean() for angle in (end, start))
    found = correlate_on_sphere(Spheres(2, 2, 1.0, 1.0), t=0.5, sigma0=[0.5], samples=4000, seed=0, step=0.01)
    assert abs(found.value[0] - 2 * (mean_end - mean_start)) < 4 * found.stderr[0] + 2e-3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokens": 1}, "tokens must be a whole number of at least 2"),
        ({"dimension": 1}, "dimension must be a whole number of at least 2"),
        ({"beta": 0.0}, "beta must be in"),
        ({"lam": -1.0}, "lam must be >= 0"),
        ({"noise": math.nan}, "noise must be finite"),
        ({"samples": 1}, "samples must be a whole number of at least 2"),
        ({"t": 0.0}, "t must be > 0"),
        ({"sigma0": [1.0]}, "sigma0 must be a row of positions"),
        ({"step": 0.7}, "step must be at most 2/.2 . beta. = 0.667 for a stable step, got 0.7"),
    ],
)
def test_what_is_out_of_range_is_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"tokens": 4, "dimension": 3, "beta": 1.0, "lam": 1.0, "noise": 0.0}
    rest: dict[str, object] = {"t": 1.0, "sigma0": [0.5], "samples": 4, "seed": 0, "step": 0.1}

    def run() -> None:
        system = Spheres(**{key: changes.get(key, value) for key, value in given.items()})  # type: ignore[arg-type]
        rest.update({key: value for key, value in changes.items() if key in rest})
        correlate_on_sphere(system, **rest)  # type: ignore[arg-type]

    with pytest.raises(InvalidInput, match="^" + message):
        run()


def test_points_of_another_shape_are_refused() -> None:
    system = Spheres(4, 3, 1.0, 1.0)
    with pytest.raises(InvalidInput, match=r"^points must be \(..., 4, 3\)"):
        system.drift(points(5, 3), *np.eye(3)[None].repeat(3, axis=0))
    with pytest.raises(InvalidInput, match=r"^start must be \(..., prompts, tokens, d\)"):
        system.flow(points(4, 3), 1.0, np.random.default_rng(0))
