"""Estimators of N Cov: against exact values for two tokens, against each other, and against the limit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from catenary.errors import InvalidInput, NotApplicable
from catenary.kinetic.closed_form.retrieval import retrieval_profile
from catenary.kinetic.correlations.estimators import ESTIMATORS, correlate
from catenary.kinetic.correlations.plain import Conditional
from catenary.kinetic.correlations.result import Correlations, Question
from catenary.kinetic.particles.circle import Circle
from catenary.kinetic.particles.fourier import PositionalCircle
from catenary.kinetic.particles.readout import Readout, gaussian_readout

EIGHT = gaussian_readout(8)


def limit(sigma0: np.ndarray, beta: float = 1.0, t: float = 1.0) -> np.ndarray:
    return np.asarray(retrieval_profile(sigma0, lam=1.0, beta=beta, t=t, M=8))


def kernel(angles: np.ndarray) -> np.ndarray:
    """The read-out for M = 8 as a plain sum of cosines."""
    modes = np.arange(1, 60)
    return np.asarray(np.cos(angles[..., None] * modes) @ np.exp(-((np.pi * modes / 8) ** 2) / 2))


def two_tokens(beta: float, t: float) -> float:
    """N Cov at N = 2 without sampling: their difference follows D' = w'(D), uniform at the start.

    The mean over the start is a trapezoidal sum over a period, which converges faster than any power.
    """
    start = 2 * np.pi * np.arange(512) / 512

    def speed(_: float, difference: np.ndarray) -> np.ndarray:
        return np.asarray(-beta * np.sin(difference) * np.exp(beta * np.cos(difference)))

    solution = solve_ivp(speed, (0, t), start, method="DOP853", rtol=1e-11, atol=1e-11)
    return float(2 * kernel(solution.y[:, -1]).mean())


def test_read_out_is_its_sum_of_cosines() -> None:
    angles = np.random.default_rng(0).uniform(-9, 9, (4, 5))
    np.testing.assert_allclose(EIGHT.kernel(angles), kernel(angles), atol=1e-13)
    np.testing.assert_allclose(Readout(np.array([0.0, 0.0, 2.0])).kernel(angles), 2 * np.cos(3 * angles), atol=1e-14)
    assert EIGHT.kernel(np.zeros(1))[0] == pytest.approx(EIGHT.weights.sum())


@pytest.mark.parametrize("beta", [0.5, 1.0])
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_two_tokens_have_the_exact_correlation(name: str, beta: float) -> None:
    exact = two_tokens(beta, 0.8)
    found = correlate(
        Circle(2, beta, 1.0), t=0.8, readout=EIGHT, samples=4000, seed=5, estimator=name, steps=12  # type: ignore[arg-type]
    )
    assert found.value.shape == (1,)
    assert abs(found.value[0] - exact) < 4 * found.stderr[0] + 1e-4  # 1e-4: the steps and the modes left out
    assert found.stderr[0] < 0.05


def test_with_many_points_two_tokens_need_no_sampling() -> None:
    found = correlate(
        Circle(2, 1.0, 0.0), t=0.8, readout=EIGHT, samples=10, seed=0, estimator=Conditional(points=64), steps=80
    )
    np.testing.assert_allclose(found.draws, two_tokens(1.0, 0.8), rtol=1e-6)


def test_estimators_agree_with_each_other_and_with_the_limit() -> None:
    system, places = Circle(32, 1.0, 1.0), [0.25, 0.5, 0.75]
    samples = {"naive": 10_000, "pair": 3000, "conditional": 200, "adjoint": 6000, "adjoint-control": 4000}
    found = {
        name: correlate(
            system, t=1.0, readout=EIGHT, samples=samples[name], seed=seed, sigma0=places, estimator=name
        )  # type: ignore[arg-type]
        for seed, name in enumerate(ESTIMATORS)
    }
    best = found["adjoint-control"]
    exact = limit(best.sigma0)
    for one in found.values():
        error = np.hypot(one.stderr, best.stderr)
        assert (np.abs(one.value - best.value) < 4 * error).all(), one.estimator
        # measured at every N from 32 to 1024: the finite-N term is between -1 and -2.5 of the value over N
        assert (np.abs(one.value - exact) < 4 * one.stderr + 2.5 / 32 * exact).all(), one.estimator
    precision = [found[name].stderr.max() / exact.max() for name in ("pair", "conditional", "adjoint-control")]
    assert max(precision) < 0.04
    assert [one.runs_per_sample for one in found.values()] == [1.0, 4.0, 33.0, 3.0, 3.0]


def test_errors_are_what_repeated_runs_scatter_by() -> None:
    system = Circle(32, 1.0, 1.0)
    runs = [correlate(system, t=1.0, readout=EIGHT, samples=40, seed=seed) for seed in range(60)]
    scatter = np.std([run.value for run in runs], axis=0, ddof=1)
    claimed = np.sqrt(np.mean([run.stderr**2 for run in runs], axis=0))
    assert np.median(scatter / claimed) == pytest.approx(1, abs=0.1)


def test_the_particles_reach_the_closed_form_at_first_order() -> None:
    sizes, found, errors = [16, 32, 64], [], []
    for tokens, samples in zip(sizes, (10000, 7000, 4500), strict=True):
        run = correlate(Circle(tokens, 1.0, 1.0), t=1.0, readout=EIGHT, samples=samples, seed=tokens)
        middle = (run.sigma0 > 0.3) & (run.sigma0 < 0.9)
        off = (run.draws[:, middle] / limit(run.sigma0[middle]) - 1).mean(axis=1)
        found.append(-off.mean())
        errors.append(off.std() / math.sqrt(samples))
    relative = np.array(errors) / found
    assert min(found) > 0
    slope, spread = np.polyfit(np.log(sizes), np.log(found), 1, w=1 / relative, cov="unscaled")
    assert spread[0, 0] ** 0.5 < 0.1
    assert slope[0] == pytest.approx(-1, abs=0.25)


def test_spread_of_each_estimator_grows_as_derived() -> None:
    def spread(name: str, tokens: int, samples: int) -> float:
        run = correlate(
            Circle(tokens, 1.0, 1.0), t=1.0, readout=EIGHT, samples=samples, seed=1, sigma0=[0.25, 0.5, 0.75],
            estimator=name,  # type: ignore[arg-type]
        )
        return float(np.sqrt((run.spread**2).mean()))

    power = 0.5 * (EIGHT.weights**2).sum()
    assert spread("naive", 64, 1000) == pytest.approx(64 * math.sqrt(power), rel=0.05)
    assert spread("naive", 256, 300) == pytest.approx(256 * math.sqrt(power), rel=0.1)
    assert spread("adjoint", 16, 1500) == pytest.approx(spread("adjoint", 128, 500), rel=0.15)
    assert spread("adjoint-control", 32, 1000) / spread("adjoint-control", 128, 500) == pytest.approx(2, rel=0.2)
    assert spread("conditional", 32, 150) / spread("conditional", 128, 60) == pytest.approx(2, rel=0.25)


def test_one_percent_at_512_tokens_takes_few_samples_of_the_default_and_a_thousand_million_naive_ones() -> None:
    system = Circle(512, 1.0, 1.0)
    default = correlate(system, t=1.0, readout=EIGHT, samples=64, seed=0)
    away = default.sigma0 >= 0.1
    needed = default.samples_for(0.01, limit(default.sigma0))[away]
    per_bin = needed[: 28 * 16].reshape(28, 16).mean(axis=1)  # 64 samples give one source's variance to 18 %
    assert per_bin.max() < 1500
    naive = correlate(system, t=1.0, readout=EIGHT, samples=64, seed=0, estimator="naive")
    assert naive.samples_for(0.01, limit(naive.sigma0))[away].mean() > 3e8


def test_bins_average_the_noise_away() -> None:
    gains = {}
    for name in ("adjoint", "adjoint-control"):
        run = correlate(Circle(256, 1.0, 1.0), t=1.0, readout=EIGHT, samples=200, seed=2, estimator=name)  # type: ignore[arg-type]
        bins = run.binned(8)
        assert bins.sigma0[:2].tolist() == pytest.approx([4.5 / 256, 12.5 / 256])
        np.testing.assert_allclose(bins.value, run.value[:248].reshape(31, 8).mean(axis=1))
        gains[name] = np.median((run.spread[:248] ** 2).reshape(31, 8).mean(axis=1) / bins.spread**2)
    assert gains["adjoint"] == pytest.approx(8, rel=0.15)
    assert gains["adjoint-control"] == pytest.approx(6.5, rel=0.15)  # what is left shares the last token's noise


def test_a_seed_gives_the_same_draws_and_fewer_sources_change_nothing() -> None:
    system = Circle(24, 1.0, 1.0)
    whole = correlate(system, t=0.5, readout=EIGHT, samples=50, seed=3)
    part = correlate(system, t=0.5, readout=EIGHT, samples=50, seed=3, sigma0=[0.5, 23 / 24])
    assert part.sigma0.tolist() == [0.5, 23 / 24]
    np.testing.assert_array_equal(whole.draws[:, [11, 22]], part.draws)
    other = correlate(system, t=0.5, readout=EIGHT, samples=50, seed=4, sigma0=[0.5])
    assert other.draws[0, 0] != part.draws[0, 0]


def test_any_positional_kernel_is_estimated() -> None:
    same = PositionalCircle(32, 1.0, lambda x: np.exp(-x))
    scan = correlate(Circle(32, 1.0, 1.0), t=1.0, readout=EIGHT, samples=20, seed=0)
    transform = correlate(same, t=1.0, readout=EIGHT, samples=20, seed=0)
    np.testing.assert_allclose(scan.draws, transform.draws, atol=1e-10)


def test_the_conditional_estimator_refuses_fewer_points_than_modes_that_matter() -> None:
    system = Circle(16, 1.0, 1.0)
    with pytest.raises(InvalidInput, match=r"^points must be above 5, .* got 4; modes that"):
        correlate(system, t=1.0, readout=EIGHT, samples=4, seed=0, estimator=Conditional(points=4))
    with pytest.raises(InvalidInput, match=r"above 5, .* got 5"):
        correlate(system, t=1.0, readout=EIGHT, samples=4, seed=0, estimator=Conditional(points=5))
    enough = Question(system, 1.0, EIGHT, np.array([0, 3]))
    assert Conditional().runs(enough) == 22
    assert Conditional(points=8).runs(enough) == 16
    mode_four = Readout(np.array([0.0, 0.0, 0.0, 1.0]))
    with pytest.raises(InvalidInput, match=r"above 4, .* got 4"):
        correlate(system, t=1.0, readout=mode_four, samples=4, seed=0, estimator=Conditional(points=4))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"t": 0.0}, "t must be > 0, got 0.0"),
        ({"t": math.nan}, "t must be finite, got nan"),
        ({"samples": 1}, "samples must be a whole number of at least 2, got 1"),
        ({"samples": 3}, "samples must be at least 4 for a control variate, got 3"),
        ({"sigma0": [1.0]}, "sigma0 must be a row of positions up to"),
        ({"sigma0": [0.0]}, r"sigma0 must be in \(0, 1\], got 0.0"),
        ({"sigma0": [math.nan]}, "sigma0 must be finite, got nan"),
        ({"estimator": "adjiont"}, "unknown estimator 'adjiont'. Did you mean 'adjoint'?"),
        ({"t": 3.0, "steps": 2}, "steps must be at least 4 for a stable step"),
    ],
)
def test_what_is_out_of_range_is_refused_in_one_line(changes: dict[str, object], message: str) -> None:
    given = {"t": 1.0, "readout": EIGHT, "samples": 10, "seed": 0} | changes
    with pytest.raises(InvalidInput, match="^" + message) as error:
        correlate(Circle(8, 1.0, 1.0), **given)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_readouts_and_results_refuse_what_makes_no_sense() -> None:
    for weights in (np.zeros(3), np.array([1.0, -1.0]), np.array([math.nan])):
        with pytest.raises(InvalidInput, match=r"^weights must be"):
            Readout(weights)
    with pytest.raises(InvalidInput, match=r"^M must be >= 1"):
        gaussian_readout(0.5)
    noise = Correlations("naive", np.array([0.5]), np.array([[1.0], [-1.0]]), 1.0, 0)
    with pytest.raises(NotApplicable, match="within 3 standard errors"):
        noise.samples_for(0.01)
    with pytest.raises(InvalidInput, match="relative must be > 0"):
        noise.samples_for(0.0)
    with pytest.raises(InvalidInput, match="width must be from 1 to the number of sources"):
        noise.binned(2)


@pytest.mark.parametrize("lam", [400.0, 1000.0, 1e6])
def test_sources_whose_weight_all_but_vanishes_have_finite_estimates(lam: float) -> None:
    circle = Circle(64, 1.0, lam)
    found = correlate(circle, t=1.0, readout=EIGHT, samples=40, seed=0)
    plain = correlate(circle, t=1.0, readout=EIGHT, samples=40, seed=0, estimator="adjoint")
    assert np.isfinite(found.draws).all()
    far = circle.last_weights[:-1] < 1e-120
    assert far.any()
    np.testing.assert_array_equal(found.draws[:, far], plain.draws[:, far])
