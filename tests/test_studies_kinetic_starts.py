"""Studies of starts that are not independent and uniform: their numbers by other routes, and what breaks them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from catenary import kinetic
from catenary.reproduce.experiment import read_experiments
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.studies import cluster_shape, graphon_limit, noisy_curve, tilted_start
from catenary.reproduce.studies.positional_turns import turning_points
from catenary.study.observer import Silent


def run(name: str, experiment: str, **changes: Any) -> Finding:
    settings = {**read_experiments("2605.09213")[experiment].settings, **changes}
    return STUDIES[name](settings, Silent())


def _falling(decay: float) -> Callable[[Any], Any]:
    return lambda x: np.exp(-decay * x)


def test_the_shape_of_one_mode_by_a_solver_without_the_closed_form() -> None:
    rng = np.random.default_rng(1)
    seen = []
    for lam, part in [(3.0, 1.1), (0.5, 1.3), *zip(rng.uniform(0.3, 4, 8), rng.uniform(0.1, 0.97, 8), strict=True)]:
        c, beta = part * -2 * math.expm1(-lam), 1.5
        kernel = kinetic.Weighting(_falling(lam), slope_at_0=-lam)
        at = np.concatenate([np.geomspace(1e-3, 0.02, 40), np.linspace(0.02, 1, 400)[1:]])
        values = np.asarray(kinetic.positional_response(at, c=c, kernel=kernel))
        turns = len(turning_points(at, values))
        u = turns == 1 and bool(values[-1] > values[-2])
        assert cluster_shape.one_minimum(lam, beta, c / cluster_shape.rate(beta), 200) == u
        seen.append((turns, u))
    assert (2, False) in seen  # a hump: decay above log 4, just behind the threshold
    assert (0, False) in seen
    assert (1, True) in seen


def test_variances_and_curves_take_the_u_away() -> None:
    from scipy.special import i1

    seen = run("cluster-shape", "cluster_shape", cases=20, grid=120, points=98)
    assert seen["share of U under the condition"].value == seen["share of U up to 2(1 - e^-decay)"].value == 1
    assert seen["rises past 2(1 - e^-decay)"].value == 0
    table = np.array(seen.rows)
    at, flat, first, last, curve = table[:-1].T
    c, y = 0.3 * math.e, np.log(math.expm1(1) / np.expm1(at))
    by_hand = math.exp(-c) * np.exp(-(1 - at)) / -math.expm1(-1) * np.sqrt(c / y) * i1(2 * np.sqrt(c * y))
    np.testing.assert_allclose(flat, by_hand, rtol=1e-12)
    np.testing.assert_allclose(first, at * by_hand, rtol=1e-12)
    np.testing.assert_allclose(last, (1.2 - at) * by_hand, rtol=1e-12)
    assert [seen[f"turning points, {name}"].value for name in cluster_shape.VARIANCES] == [1, 0, 0]
    assert len(turning_points(at, curve)) == seen["turning points, curve"].value == 3


NOISY: dict[str, Any] = {
    "tokens": 3,
    "lam": 1.5,
    "beta": 1.0,
    "t": 0.6,
    "variance": [0.5, 1.1],
    "sources": [1 / 3, 2 / 3],
    "steps": 8,
}


def test_covariances_near_a_curve_by_quadrature_over_all_tokens() -> None:
    bend, noise, sigma = 0.7, 0.6, np.arange(1, 4) / 3
    found = noisy_curve.covariances({**NOISY, "samples": 20000, "seed": 2}, bend, noise)
    nodes, weights = np.polynomial.legendre.leggauss(14)
    grid = np.array(list(itertools.product(nodes, repeat=3))) * np.sqrt(3 * (0.5 + 0.6 * sigma))
    share = np.array([math.prod(w) for w in itertools.product(weights / 2, repeat=3)])
    start = bend * np.sin(2 * np.pi * sigma) + noise * grid
    end = np.sin(kinetic.flow(kinetic.Circle(3, 1.0, 1.5), start, 0.6, steps=8)[:, -1])
    first = np.sin(start)
    exact = (share * end) @ first - (share @ end) * (share @ first)
    exact *= np.array([3, 3, 1]) / noise**2
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - exact) < 4 * error).all()
    assert (error < 0.02 * np.abs(exact)).all()


def test_small_noise_reaches_the_responses() -> None:
    small = {"tokens": 200, "samples": 150, "noises": [0.4, 0.2, 0.1], "sources": [0.2, 0.6]}
    seen = run("noisy-curve", "noisy_curve", **small)
    assert seen["exponent in the noise"].value == np.clip(seen["exponent in the noise"].value, 1.3, 2.6)
    assert seen["gap of the last token's own"].value < 0.02
    assert abs(seen["variance's rise read back"].value - 1) < 0.05
    assert seen["variance's rise read back"].low is not None


def test_a_tokens_own_covariance_by_a_sum_over_both_tokens() -> None:
    system, count = kinetic.Circle(2, 1.0, 2.0), 96
    found = tilted_start.own_covariance(system, 0.8, 20000, 24, seed=3)
    angles = 2 * np.pi * np.arange(count) / count
    first, second = np.meshgrid(angles, angles, indexing="ij")
    law = tilted_start.density(0.5, first) * tilted_start.density(1.0, second) / count**2
    end = np.exp(-1j * kinetic.flow(system, np.stack([first, second], axis=-1), 0.8)[..., 1])
    start = np.exp(1j * second)
    exact = (law * end * start).sum() - (law * end).sum() * (law * start).sum()
    error = 4 * found.std() / math.sqrt(found.size)
    assert abs(found.mean() - exact) < error < 0.02 * abs(exact)


def test_a_start_that_is_not_uniform_has_a_limit_of_its_own() -> None:
    small = {"tokens": [16, 32, 64], "samples": [1500, 1000, 700], "own_samples": [300, 200, 150]}
    seen = run("tilted-start", "tilted_start", **small)
    assert seen["exponent of the own correlation"].value < -0.5
    assert seen["gap of correlations at the largest N"].value < 0.05
    assert seen["gap of the own correlation at the largest N"].value < 0.02
    assert seen["gap of the uniform start's closed form"].value > 0.2
    at = np.array([0.41, 0.77])
    direct = kinetic.mean_field_correlations(
        tilted_start.density, tilted_start.wave, sigma0=[*at, *tilted_start._nodes()], lam=2.0, beta=1.0, t=1.0
    ).fourier([1])[:, 0]
    np.testing.assert_allclose(tilted_start.between(at, direct[2:]), direct[:2], rtol=1e-6)


def test_weights_are_the_particles_own_and_their_gap_is_the_last_cell() -> None:
    tokens, lam = 40, 3.0
    given = graphon_limit.weights(tokens, lam)
    angles = np.random.default_rng(4).uniform(0, 2 * np.pi, tokens)
    apart = angles[:, None] - angles
    pull = (given * -1.5 * np.sin(apart) * np.exp(1.5 * np.cos(apart))).sum(axis=1)
    np.testing.assert_allclose(pull, kinetic.Circle(tokens, 1.5, lam).drift(angles), atol=1e-12)
    seen = run("graphon-limit", "graphon_limit", tokens=[100, 200, 400], points=20000, sigmas=[0.25, 0.5])
    by_hand = 4 / -math.expm1(-1)  # k(1/4, 1/4); the own cell's part of the square is its square over N
    assert [row[2] for row in seen.rows] == pytest.approx([by_hand / math.sqrt(n) for n in (100, 200, 400)], rel=0.03)
    assert seen["exponent of the gap"].value == pytest.approx(-1, abs=0.05)
    assert [row[3] for row in seen.rows] == pytest.approx([100, 200, 400], rel=1e-12)
    assert [graphon_limit.cell(200, s) for s in (0.1, 0.1001, 1.0)] == [20, 21, 200]
