"""The particle systems against double sums, a second integrator, 50-digit values and exact identities."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catenary import compiled
from catenary.errors import InvalidInput, MissingResource, NotApplicable
from catenary.kinetic.closed_form.one_mode import cluster_memory, cluster_response
from catenary.kinetic.particles.adjoint import sensitivity
from catenary.kinetic.particles.circle import Circle
from catenary.kinetic.particles.fourier import PositionalCircle
from catenary.kinetic.particles.integrate import flow, rk4_steps, trajectory
from catenary.kinetic.particles.system import System
from oracles.particles import decay_weights, force, jacobian, weights

FIVE = Circle(5, beta=2.0, lam=1.5)
START = np.array([0.3, 2.1, 4.0, 5.5, 1.2])
"""The example whose values were computed with 50 digits (mpmath, order-30 Taylor steps)."""


def power_law(x: np.ndarray) -> np.ndarray:
    return np.asarray((1 + 5 * x) ** -2.0)


def two_decays(x: np.ndarray) -> np.ndarray:
    return np.asarray(0.7 * np.exp(-x) + 0.3 * np.exp(-20 * x))


def prompt(tokens: int, seed: int = 0, copies: tuple[int, ...] = ()) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 2 * np.pi, (*copies, tokens))


SYSTEMS: list[System] = [
    Circle(40, 1.0, 0.0),
    Circle(40, 2.0, 3.0),
    Circle(40, 1.5, (1.0, 20.0), shares=(0.7, 0.3)),
    PositionalCircle(40, 1.5, power_law),
]


def test_values_to_the_digits_printed() -> None:
    omega = [0.150793610506210708, 0.20355008326799384, 0.274763872682130305, 0.370892433543665148, 0]
    np.testing.assert_allclose(FIVE.last_weights, omega, rtol=1e-14)
    speed = [0, -1.23644777028881867, -0.486812790682247585, 0.101173282767467401, 0.00962111375830322215]
    np.testing.assert_allclose(FIVE.drift(START), speed, rtol=1e-12, atol=1e-15)
    end = [0.3, 0.300102005360670979, 4.00059180728774183, 6.56033663611344269, 0.275385028937344125]
    np.testing.assert_allclose(trajectory(FIVE, START, [1.0], tolerance=1e-13)[0], end, rtol=1e-12)
    steps = [sensitivity(FIVE, START, 1.0, steps=count).gradient for count in (200, 400, 800)]
    fourth = [fine + (fine - coarse) / 15 for coarse, fine in pairwise(steps)]  # removes h^4, then h^5
    answer = [0.898942595529386751, 0.0194535499784665939, -0.168281722980835156, 0.234372554935887216,
              0.015513022537094595]
    np.testing.assert_allclose(fourth[1] + (fourth[1] - fourth[0]) / 31, answer, rtol=1e-12)


@pytest.mark.parametrize("beta", [0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("lam", [0.0, 1.0, 5.0, 50.0, 2000.0])
def test_scan_is_the_double_sum(lam: float, beta: float) -> None:
    angles = prompt(300, seed=int(lam) + int(10 * beta))
    direct = force(angles, decay_weights(300, lam), beta)
    assert np.abs(Circle(300, beta, lam).drift(angles) - direct).max() <= 2e-15 * np.abs(direct).max()


def test_no_decay_is_too_fast_for_the_weights() -> None:
    steep = Circle(6, 1.0, 1e6)
    np.testing.assert_array_equal(steep.last_weights, [0, 0, 0, 0, 1, 0])
    angles = prompt(6)
    np.testing.assert_allclose(steep.drift(angles), force(angles, decay_weights(6, 1e6), 1.0), atol=1e-15)


@pytest.mark.parametrize("b", [power_law, two_decays, np.ones_like])
@pytest.mark.parametrize("tokens", [2, 7, 300])
def test_transforms_are_the_double_sum(b: object, tokens: int) -> None:
    angles = prompt(tokens, seed=tokens)
    direct = force(angles, weights(tokens, b), 2.0)  # type: ignore[arg-type]
    system = PositionalCircle(tokens, 2.0, b)  # type: ignore[arg-type]
    assert np.abs(system.drift(angles) - direct).max() <= 2e-14 * np.abs(direct).max()
    np.testing.assert_allclose(system.last_weights, weights(tokens, b)[-1], rtol=1e-13)  # type: ignore[arg-type]


def test_several_scans_are_the_transform_of_their_sum() -> None:
    angles = prompt(200, copies=(3,))
    scans = Circle(200, 1.0, (1.0, 20.0), shares=(0.7, 0.3))
    transform = PositionalCircle(200, 1.0, two_decays)
    np.testing.assert_allclose(scans.drift(angles), transform.drift(angles), atol=2e-14)
    np.testing.assert_allclose(scans.pull_back(angles, angles), transform.pull_back(angles, angles), atol=1e-12)
    np.testing.assert_allclose(scans.last_weights, transform.last_weights, rtol=1e-13)


@pytest.mark.parametrize(("lam", "beta"), [(0.0, 0.3), (5.0, 3.0), (2000.0, 8.0)])
def test_pull_back_is_the_transposed_jacobian(lam: float, beta: float) -> None:
    angles, cotangents = prompt(120, 1), np.random.default_rng(2).standard_normal(120)
    direct = jacobian(angles, decay_weights(120, lam), beta).T @ cotangents
    assert np.abs(Circle(120, beta, lam).pull_back(angles, cotangents) - direct).max() <= 1e-14 * np.abs(direct).max()


@pytest.mark.parametrize("system", SYSTEMS)
def test_copies_are_independent(system: System) -> None:
    angles = prompt(40, copies=(2, 3))
    one_by_one = [[system.drift(angles[i, j]) for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(system.drift(angles), one_by_one, atol=1e-14)
    together = sensitivity(system, angles, 0.5)
    alone = sensitivity(system, angles[1, 2], 0.5)
    np.testing.assert_allclose(together.end[1, 2], alone.end, atol=1e-13)
    np.testing.assert_allclose(together.gradient[1, 2], alone.gradient, atol=1e-13)


@pytest.mark.parametrize("system", SYSTEMS)
def test_turning_all_tokens_turns_the_result(system: System) -> None:
    angles = prompt(40)
    np.testing.assert_allclose(flow(system, angles + 0.7, 1.0), flow(system, angles, 1.0) + 0.7, atol=1e-12)
    np.testing.assert_allclose(flow(system, -angles, 1.0), -flow(system, angles, 1.0), atol=1e-12)
    assert sensitivity(system, angles, 1.0).gradient.sum() == pytest.approx(1, abs=1e-13)
    assert flow(system, angles, 1.0)[0] == angles[0]


@settings(max_examples=25, deadline=None)
@given(
    tokens=st.integers(2, 60),
    beta=st.floats(0.05, 3.0),
    lam=st.floats(0, 500),
    t=st.floats(0, 1),
    seed=st.integers(0, 999),
)
def test_sensitivities_sum_to_one(tokens: int, beta: float, lam: float, t: float, seed: int) -> None:
    assert sensitivity(Circle(tokens, beta, lam), prompt(tokens, seed), t).gradient.sum() == pytest.approx(1, abs=1e-11)


@pytest.mark.parametrize("system", SYSTEMS)
def test_adjoint_is_the_derivative_of_the_steps(system: System) -> None:
    angles, cotangents = prompt(40), np.random.default_rng(3).standard_normal(40)
    found = sensitivity(system, angles, 1.0, cotangents=cotangents)
    np.testing.assert_array_equal(found.end, flow(system, angles, 1.0))
    shift = 1e-5
    for token in (0, 17, 39):
        nudged = np.stack([angles, angles])
        nudged[:, token] += (shift, -shift)
        high, low = flow(system, nudged, 1.0)
        assert found.gradient[token] == pytest.approx(cotangents @ (high - low) / (2 * shift), rel=1e-7, abs=1e-8)


def test_time_runs_on() -> None:
    system, angles = SYSTEMS[1], prompt(40)
    times = [0.0, 0.3, 1.0]
    path = trajectory(system, angles, times, tolerance=1e-12)
    np.testing.assert_array_equal(path[0], angles)
    np.testing.assert_allclose(path[2], trajectory(system, path[1], [0.7], tolerance=1e-12)[0], atol=1e-10)
    np.testing.assert_allclose(trajectory(system, angles, times, method="rk4", steps=200), path, atol=1e-8)
    np.testing.assert_array_equal(flow(system, angles, 0.0), angles)


def order(errors: list[float]) -> float:
    """Order of convergence under halving, by a straight line through the logarithms."""
    return float(-np.polyfit(np.arange(len(errors)), np.log2(errors), 1)[0])


def test_fixed_steps_are_of_order_four() -> None:
    system, angles = Circle(128, 1.0, 1.0), prompt(128)
    reference = trajectory(system, angles, [1.0], tolerance=1e-13)[0]
    errors = [float(np.abs(flow(system, angles, 1.0, steps=steps) - reference).max()) for steps in (20, 40, 80, 160)]
    assert order(errors) == pytest.approx(4, abs=0.1)


def test_discrete_adjoint_is_of_order_four() -> None:
    system, angles = Circle(64, 1.0, 1.0), prompt(64)
    found = [sensitivity(system, angles, 1.0, steps=steps).gradient for steps in (20, 40, 80, 320)]
    errors = [float(np.abs(gradient - found[-1]).max()) for gradient in found[:-1]]
    assert order(errors) == pytest.approx(4, abs=0.1)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 3.0])
def test_the_rule_for_steps_is_accurate_enough_for_sampling(beta: float) -> None:
    system, angles = Circle(256, beta, 1.0), prompt(256)
    reference = trajectory(system, angles, [0.5], tolerance=1e-12)[0]
    assert np.abs(flow(system, angles, 0.5) - reference).max() < 1e-2
    assert 0.5 * beta * math.exp(beta) <= 2.0 * rk4_steps(beta, 0.5)


def test_cluster_answers_as_the_closed_form_with_first_order_in_tokens() -> None:
    t, beta, lam = 2.0, 0.5, 2.0
    sources = np.array([1, 2, 4, 6, 7]) / 8
    exact = np.asarray(cluster_response(t, 1.0, sources, beta=beta, lam=lam))
    errors, own = [], []
    for tokens in (64, 128, 256, 512):
        answer = sensitivity(Circle(tokens, beta, lam), np.zeros(tokens), t, steps=60).gradient
        found = answer[(sources * tokens).astype(int) - 1] * tokens
        errors.append(float(np.abs(found / exact - 1).max()))
        own.append(abs(float(answer[-1]) - float(cluster_memory(t, beta=beta))))
    assert order(errors) == pytest.approx(1, abs=0.05)
    assert max(own) < 1e-6  # the same at every N: only the token's own decay, and the steps' error


def test_prompts_near_a_curve_reach_the_near_deterministic_response() -> None:
    """h(1), D and R at lambda = beta = t = 1 for starts 0.8 sin(2 pi sigma), from the linear equation (7.7) (1e-7)."""
    sources = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    exact = np.array([0.1043282, 0.1116829, 1.204543, 0.475462, 0.567015, 0.873167, 0.562887])
    found = []
    for tokens in (200, 400, 800):
        start = 0.8 * np.sin(2 * np.pi * np.arange(1, tokens + 1) / tokens)
        answer = sensitivity(Circle(tokens, 1.0, 1.0), start, 1.0, steps=20)
        picked = answer.gradient[np.rint(sources * tokens).astype(int) - 1] * tokens
        found.append(np.concatenate([[answer.end[-1], answer.gradient[-1]], picked]))
    errors = np.abs(np.array(found) - exact)
    assert (errors * [[200], [400], [800]] < 1.5).all()
    first = [2 * fine - coarse for coarse, fine in pairwise(found)]  # removes 1/N, then 1/N^2
    np.testing.assert_allclose((4 * first[1] - first[0]) / 3, exact, atol=1e-4)


def test_cluster_under_a_power_law_reaches_the_volterra_solution() -> None:
    """Values at c = 2 of the resolvent for b = (1 + 5x)^-2, from the source-profile equation (16 nodes a panel)."""
    sources, resolvent = np.array([0.2, 0.5, 0.9]), np.array([4.552607115246, 5.249394904336, 9.053172395034])
    beta = 0.1
    t = 2 / (beta * math.exp(beta))
    found = []
    for tokens in (160, 320, 640):
        system = PositionalCircle(tokens, beta, power_law)
        answer = sensitivity(system, np.zeros(tokens), t, steps=40).gradient
        found.append(answer[np.rint(sources * tokens).astype(int) - 1] * tokens * math.exp(2))
    errors = [float(np.abs(one / resolvent - 1).max()) for one in found]
    assert order(errors) == pytest.approx(1, abs=0.05)
    np.testing.assert_allclose(2 * found[2] - found[1], resolvent, rtol=2e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Circle(1, 1.0, 1.0), "tokens must be a whole number of at least 2, got 1"),
        (lambda: Circle(10, 0.0, 1.0), "beta must be in"),
        (lambda: Circle(10, -1.0, 1.0), "beta must be in"),
        (lambda: Circle(10, math.nan, 1.0), "beta must be finite, got nan"),
        (lambda: Circle(10, 1.0, -1.0), "lam must be >= 0, got -1.0"),
        (lambda: Circle(10, 1.0, math.nan), "lam must be finite, got nan"),
        (lambda: Circle(10, 1.0, (1.0, 2.0), shares=(1.0,)), "shares must have one entry per lam"),
        (lambda: Circle(10, 1.0, (1.0, 2.0), shares=(1.0, 0.0)), "shares must be > 0, got 0.0"),
        (lambda: Circle(10, 1.0, ()), "lam must be one number, or one per exponential"),
        (lambda: PositionalCircle(10, 1.0, lambda x: 1 - 2 * x), "b must be > 0 at every distance j/N, also at 0.5"),
        (lambda: PositionalCircle(10, 1.0, lambda x: x * math.nan), "b must be > 0"),
        (lambda: PositionalCircle(10, 1.0, lambda x: np.ones(3)), "b must give one value per distance"),
        (lambda: FIVE.drift(np.zeros(4)), "angles must have 5 tokens along the last axis"),
        (lambda: FIVE.drift(np.full(5, np.nan)), "angles must be finite, got nan"),
        (lambda: FIVE.pull_back(START, np.zeros((2, 5))), "cotangents must have the angles' shape"),
        (lambda: flow(FIVE, START, -1.0), "t must be >= 0, got -1.0"),
        (lambda: flow(FIVE, START, math.nan), "t must be finite, got nan"),
        (lambda: flow(FIVE, START, 1.0, steps=0), "steps must be a whole number of at least 1, got 0"),
        (lambda: flow(Circle(5, 20.0, 1.0), START, 1.0), "beta = 20, t = 1 need 9.7e.09 fixed steps, more than"),
        (lambda: rk4_steps(-1.0, 1.0), "beta must be in"),
        (lambda: trajectory(FIVE, START, [1.0, 0.5]), "times must increase"),
        (lambda: trajectory(FIVE, START, [1.0], tolerance=1e-20), "tolerance must be in"),
        (lambda: trajectory(FIVE, START, [1.0], method="euler"), "unknown method 'euler'"),  # type: ignore[arg-type]
        (lambda: sensitivity(FIVE, START, 1.0, cotangents=np.zeros((2, 5))), "cotangents must have the angles' shape"),
    ],
)
def test_what_is_out_of_range_is_refused_in_one_line(make: object, message: str) -> None:
    with pytest.raises(InvalidInput, match="^" + message.replace("(", r"\(")) as error:
        make()  # type: ignore[operator]
    assert "\n" not in str(error.value)
    assert not isinstance(error.value, MissingResource)


def test_an_unstable_step_is_refused_and_says_what_is_enough() -> None:
    system, angles = Circle(200, 4.0, 1.0), prompt(200)
    with pytest.raises(InvalidInput, match=r"steps must be at least 81 for a stable step .* got 80"):
        flow(system, angles, 1.0, steps=80)
    with pytest.raises(InvalidInput, match="steps must be at least 81"):
        trajectory(system, angles, [0.5, 1.0], method="rk4", steps=80)
    with pytest.raises(InvalidInput, match="steps must be at least 81"):
        sensitivity(system, angles, 1.0, steps=80)
    reference = trajectory(system, angles, [1.0], tolerance=1e-10)[0]
    assert np.abs(flow(system, angles, 1.0, steps=81) - reference).max() < 0.1
    assert np.abs(flow(system, angles, 1.0) - reference).max() < 1e-2


def test_without_a_folder_for_machine_code_it_compiles_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    def njit(loop: object, *, cache: bool, fastmath: object) -> object:
        if cache:
            raise RuntimeError("cannot cache function")
        return loop

    monkeypatch.setattr(numba, "njit", njit)
    compiled._compiled.cache_clear()
    try:
        np.testing.assert_allclose(FIVE.drift(START), force(START, decay_weights(5, 1.5), 2.0), atol=1e-14)
    finally:
        compiled._compiled.cache_clear()


def test_neither_torch_nor_numba_is_imported_before_use() -> None:
    code = (
        "import sys\n"
        "import catenary.kinetic.correlations.estimators, catenary.kinetic.particles.spheres\n"
        "import catenary.kinetic.particles.circle, catenary.kinetic.particles.fourier\n"
        "assert 'numba' not in sys.modules and 'torch' not in sys.modules\n"
        "import numpy as np\n"
        "catenary.kinetic.particles.circle.Circle(3, 1.0, 1.0).drift(np.zeros(3))\n"
        "assert 'numba' in sys.modules and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("beta", "t"), [(20.0, 1.0), (700.0, 1e-3), (5.0, 1e6)])
def test_runs_too_stiff_for_explicit_steps_are_refused_at_once(beta: float, t: float) -> None:
    with pytest.raises(NotApplicable, match=rf"t beta e\^beta must be at most 1,000,000 .* at beta = {beta:g}, t = "):
        trajectory(Circle(4, beta, 1.0), np.zeros((1, 4)), [t / 2, t])
