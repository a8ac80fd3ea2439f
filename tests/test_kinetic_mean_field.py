"""Mean field: printed values, the closed form, derivatives by the start, particles; near-deterministic responses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from catenary.errors import InvalidInput, NotApplicable
from catenary.kinetic import cluster_memory, cluster_response, graphon, mode_rate, response, source_at
from catenary.kinetic.field.correlated import mean_field_correlations
from catenary.kinetic.field.layered import mean_field
from catenary.kinetic.field.near_curve import near_deterministic
from catenary.kinetic.particles.adjoint import sensitivity
from catenary.kinetic.particles.circle import Circle
from catenary.kinetic.particles.integrate import flow

# C-hat(1, 1, n; sigma0) at lambda = 2, beta = t = 1, f = 1 + 0.6 cos(theta - pi sigma), phi = e^{-i theta}; rows
# sigma0 = .1, .3, .5, .7, .9, columns n = 1, 2, 3. Made by another scheme: Runge-Kutta of order 4 with 80 steps,
# Chebyshev nodes in sigma (24 for f, 20 behind each source), 48 angles; its own error is about 2e-10.
NON_UNIFORM = np.array([
    [-0.042159385526 + 0.001907314458j, 0.020244172666 + 0.018274371390j, 0.001759777378 - 0.016075421904j],
    [0.006471054915 + 0.023094429429j, 0.009685306427 - 0.030146417030j, -0.018764875327 + 0.002087422180j],
    [0.055135971132 - 0.025997989190j, -0.053202646837 - 0.028558430296j, -0.002651195149 + 0.029505492100j],
    [0.021270789423 - 0.112318941236j, -0.070817093948 + 0.048856917922j, 0.033189189529 + 0.017667465519j],
    [-0.091362778700 - 0.112117158507j, 0.015830721203 + 0.088572693908j, 0.027411217025 - 0.025173436690j],
])  # fmt: skip
SOURCES = [0.1, 0.3, 0.5, 0.7, 0.9]


def tilted(sigma: Any, theta: Any) -> Any:
    return 1 + 0.6 * np.cos(theta - np.pi * sigma)


def uniform(sigma: Any, theta: Any) -> Any:
    return np.ones(np.broadcast_shapes(sigma.shape, theta.shape))


def wave(theta: Any) -> Any:
    return np.exp(-1j * theta)


def bent(sigma: Any) -> Any:
    return 0.8 * np.sin(2 * np.pi * sigma)


def test_printed_values_and_the_error_estimate() -> None:
    errors = []
    for nodes in (12, 24):
        seen = mean_field_correlations(
            tilted, wave, sigma0=SOURCES, lam=2.0, beta=1.0, t=1.0, positions=nodes, nodes=nodes + 2, angles=48
        )
        errors.append(np.abs(seen.fourier([1, 2, 3]) - NON_UNIFORM).max())
        assert errors[-1] < seen.resolution
    assert errors[1] < 1e-11
    assert errors[1] < errors[0]


@pytest.mark.parametrize("lam", [0.0, 2.0, 40.0])
def test_uniform_start_gives_the_closed_form(lam: float) -> None:
    at = np.array([1e-6, 0.1, 0.5, 0.9, 1.0])
    seen = mean_field_correlations(
        uniform, lambda a: np.cos(a) + np.cos(3 * a), sigma0=at, lam=lam, beta=1.0, t=1.5, nodes=32, angles=16
    )
    for n in (1, 3):
        expected = response(1.5, 1.0, at, a=mode_rate(n, 1.0), lam=lam) / 2
        assert seen.fourier(n)[:, 0] == pytest.approx(expected, rel=1e-10)
        inside = response(1.5, seen.sigma, at[:, None], a=mode_rate(n, 1.0), lam=lam) / 2
        coefficients = np.fft.fft(seen.later, axis=-1)[..., n] / 16
        assert coefficients == pytest.approx(inside, rel=1e-9, abs=1e-9 * np.abs(inside).max())
    assert np.abs(seen.fourier(2)).max() < 1e-12
    assert np.abs(seen.own - (np.cos(seen.angles.nodes) + np.cos(3 * seen.angles.nodes))).max() < 1e-12


def test_correlations_are_the_derivative_by_the_start() -> None:
    r"""f from f0 (1 + e chi(sigma)(phi - mean)) has derivative chi A + int chi(s) C(.; s) ds by e."""
    lam, beta, t, step = 2.0, 1.0, 0.7, 1e-4

    def chi(s: Any) -> Any:
        return s**2 * (1.5 - s)

    def moved(epsilon: float) -> Any:
        def start(s: Any, a: Any) -> Any:
            grid = 2 * np.pi * np.arange(64) / 64
            mean = (np.cos(grid) * tilted(s, grid)).mean(axis=-1, keepdims=True)
            return tilted(s, a) * (1 + epsilon * chi(s) * (np.cos(a) - mean))

        return mean_field(start, lam=lam, beta=beta, t=t, positions=24).density[-1, -1]

    difference = (moved(step) - moved(-step)) / (2 * step)
    x, w = np.polynomial.legendre.leggauss(24)
    u, weight = (x + 1) / 2, w / 2
    at = u**3  # C has a logarithm at 0
    seen = mean_field_correlations(
        tilted, np.cos, sigma0=np.append(at, 1.0), lam=lam, beta=beta, t=t, nodes=28, positions=24
    )
    total = chi(1.0) * seen.own[-1] + (weight * 3 * u**2 * chi(at)) @ seen.last[:-1]
    assert total.real == pytest.approx(difference, abs=2e-8)
    assert np.abs(difference).max() > 0.3


def test_particles_have_the_mean_fields_moments() -> None:
    """Angles drawn from the start, moved by the particle system: the difference falls to the order of 1/N."""
    tokens, copies = 192, 3000
    rng = np.random.default_rng(5)
    grid = np.linspace(0, 2 * np.pi, 4001)
    shift = np.pi * np.arange(1, tokens + 1) / tokens
    share = np.interp(rng.random((copies, tokens)), (grid + 0.6 * np.sin(grid)) / (2 * np.pi), grid)
    ends = flow(Circle(tokens, 1.0, 2.0), share + shift, 1.0)
    seen = mean_field(tilted, lam=2.0, beta=1.0, t=1.0)
    for mode in (1, 2):
        for token in (tokens // 2, tokens):
            found = np.exp(-1j * mode * ends[:, token - 1])
            error = found.std() / np.sqrt(copies)
            assert abs(found.mean() - seen.fourier(mode, token / tokens)[0, 0, 0]) < 4 * error + 2 / tokens
    assert abs(seen.fourier(1, 1.0)[0, 0, 0]) > 0.3


def test_mean_field_keeps_mass_turns_with_the_start_and_stays_uniform() -> None:
    still = mean_field(uniform, lam=1.0, beta=3.0, t=[0.0, 2.0], angles=16)
    assert np.abs(still.density - 1).max() < 1e-12
    plain = mean_field(tilted, lam=1.0, beta=1.0, t=[0.3, 1.0])
    assert plain.density.mean(axis=-1) == pytest.approx(np.ones((2, 24)), abs=1e-12)
    turned = mean_field(lambda s, a: tilted(s, a - 5 * 2 * np.pi / 64), lam=1.0, beta=1.0, t=[0.3, 1.0])
    assert turned.density == pytest.approx(np.roll(plain.density, 5, axis=-1), abs=1e-9)


def test_near_deterministic_printed_values() -> None:
    seen = near_deterministic(bent, sigma0=[0.1, 0.25, 0.5, 0.75, 0.9], lam=1.0, beta=1.0, t=1.0, positions=40)
    assert seen.path_at(1.0) == pytest.approx(0.1043282, abs=1e-7)
    assert seen.memory_at(1.0) == pytest.approx(0.1116829, abs=1e-7)
    # printed to six digits
    assert seen.last == pytest.approx([1.204543, 0.475462, 0.567015, 0.873167, 0.562887], abs=6e-7)


def test_near_deterministic_responses_sum_to_one() -> None:
    total = 0.0
    x, w = np.polynomial.legendre.leggauss(28)
    for low, high in ((0.0, 3.0), (3.0, 10.0), (10.0, 50.0)):
        y = (low + high) / 2 + (high - low) / 2 * x
        at = np.asarray(source_at(y, lam=1.0))
        seen = near_deterministic(bent, sigma0=at, lam=1.0, beta=1.0, t=1.0, positions=40, nodes=64)
        total += float(((high - low) / 2 * w * np.exp(-y) * seen.last / graphon(1.0, at, lam=1.0)).sum())
    assert total + float(seen.memory[-1]) == pytest.approx(1.0, abs=1e-7)


def test_a_constant_curve_gives_the_cluster_closed_form() -> None:
    at = np.array([1e-5, 0.1, 0.5, 1.0])
    for lam, beta, t in ((0.0, 1.0, 1.0), (2.0, 0.5, 2.0), (30.0, 2.0, 0.3)):
        seen = near_deterministic(lambda s: 0 * s + 0.7, sigma0=at, lam=lam, beta=beta, t=t)
        assert seen.last == pytest.approx(cluster_response(t, 1.0, at, beta=beta, lam=lam), rel=1e-9)
        assert seen.memory == pytest.approx(np.full(32, cluster_memory(t, beta=beta)), rel=1e-9)


def test_near_deterministic_against_the_particles_jacobian() -> None:
    at = np.array([0.25, 0.5, 0.75])
    seen = near_deterministic(bent, sigma0=at, lam=1.0, beta=1.0, t=1.0, positions=40, nodes=40)
    errors = []
    for tokens in (1600, 3200, 6400):
        start = bent(np.arange(1, tokens + 1) / tokens)
        found = sensitivity(Circle(tokens, 1.0, 1.0), start, 1.0, steps=60)
        index = np.rint(at * tokens).astype(int) - 1
        errors.append(tokens * found.gradient[index] - seen.last)
        assert found.gradient[-1] - seen.memory[-1] == pytest.approx(0, abs=3 / tokens)
        assert found.end[-1] - seen.path[-1] == pytest.approx(0, abs=3 / tokens)
    order = np.log2(np.divide(errors[0], errors[2])) / 2
    assert order[1:] == pytest.approx(np.ones(2), abs=0.05)  # the first source's error has a slower part beside 1/N
    assert 2 * errors[2] - errors[1] == pytest.approx(np.zeros(3), abs=2e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lam": -1.0}, "lam must be >= 0"),
        ({"beta": 0.0}, "beta must be in"),
        ({"t": [2.0, 1.0]}, "t must be one time, or increasing"),
        ({"positions": 3}, "positions must be a whole number in 4..256"),
        ({"angles": 5}, "angles must be a whole number in 8..4096"),
        ({"tolerance": 0.0}, "tolerance must be > 0"),
        ({"start": lambda s, a: 1 + 2 * np.cos(a + s)}, "start must be a density"),
        ({"start": lambda s, a: 0.9 + 0 * (a + s)}, "start must have mean 1"),
    ],
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"start": tilted, "lam": 1.0, "beta": 1.0, "t": 1.0} | change
    with pytest.raises(InvalidInput, match=words):
        mean_field(given.pop("start"), **given)


def test_what_the_grid_misses_is_refused() -> None:
    with pytest.raises(NotApplicable, match="use more angles"):
        mean_field(tilted, lam=1.0, beta=1.0, t=1.0, angles=12)
    with pytest.raises(NotApplicable, match="a line spans"):
        near_deterministic(bent, sigma0=0.1, lam=500.0, beta=1.0, t=1.0)
    with pytest.raises(NotApplicable, match="use more positions and nodes"):
        near_deterministic(lambda s: np.sin(40 * s), sigma0=0.1, lam=1.0, beta=1.0, t=1.0, positions=8, nodes=8)
    with pytest.raises(InvalidInput, match="modes must be below"):
        mean_field(tilted, lam=1.0, beta=1.0, t=0.5).fourier(40, 1.0)


def test_a_run_that_would_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catenary.kinetic.field.layered.MOST_EVALUATIONS", 50)
    with pytest.raises(NotApplicable, match="must need at most 50 evaluations"):
        near_deterministic(lambda s: 0.5 * s, sigma0=[0.5], lam=1.0, beta=30.0, t=1.0)
