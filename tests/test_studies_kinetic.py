"""Studies of the kinetic paper at small sizes: their numbers by other routes, and that wrong mathematics shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from catenary import kinetic
from catenary.errors import InvalidInput
from catenary.reproduce.experiment import read_experiments
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.rates import power_law
from catenary.reproduce.studies import closed_form, spheres, u_shape
from catenary.study.observer import Silent


def run(name: str, experiment: str, **changes: Any) -> Finding:
    settings = {**read_experiments("2605.09213")[experiment].settings, **changes}
    return STUDIES[name](settings, Silent())


def test_a_power_law_and_its_interval() -> None:
    x = np.array([10.0, 20.0, 40.0, 80.0])
    exact = power_law(x, 3 * x**-1.5)
    assert exact.exponent == pytest.approx(-1.5, rel=1e-12)
    assert exact.high - exact.low < 1e-9
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        noisy = x**-1.0 * (1 + 0.05 * rng.standard_normal(4))
        rate = power_law(x, noisy, 0.05 * noisy)
        hits += rate.low <= -1 <= rate.high
    assert hits / 400 == pytest.approx(0.97, abs=0.03)
    with pytest.raises(InvalidInput, match="three or more"):
        power_law(x[:2], x[:2])


def test_a_wrong_closed_form_leaves_a_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"lam": [1.0], "times": [1.0], "sources": [0.3], "nodes": 30}
    right = run("closed-form", "closed_form", **small)
    assert right["equation residual"].value < 1e-11
    assert right["mass gap"].value < 1e-12

    def wrong(t: Any, sigma: Any, source: Any, *, a: float, lam: float) -> Any:
        return kinetic.response(t, sigma, source, a=1.01 * a, lam=lam)

    monkeypatch.setattr(closed_form, "response", wrong)
    assert run("closed-form", "closed_form", **small)["equation residual"].value > 1e-3


def test_the_theorems_condition_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.special import iv

    for lam, beta in ((0.5, 1.0), (5.0, 3.0)):
        largest = max(n**2 * iv(n, beta) for n in range(1, 40))
        bound = min(3 - math.sqrt(3), 2 * (1 - math.exp(-lam))) / largest
        assert u_shape._condition(lam, beta) == pytest.approx(bound, rel=1e-12)
    seen = run("u-shape", "u_shape", cases=12, grid=100)
    assert seen["share of U under the condition"].value == 1
    assert seen["rises past the exact time"].value == 0
    assert 1 <= seen["smallest room"].value <= seen["largest room"].value
    monkeypatch.setattr(u_shape, "_condition", lambda lam, beta: 3 * float(kinetic.t_crit(lam, beta, 8)))
    assert run("u-shape", "u_shape", cases=12, grid=100)["share of U under the condition"].value < 0.9


def test_gaps_shrink_with_more_tokens() -> None:
    seen = run("correlation-rate", "correlation_rate", tokens=[16, 32, 64], samples=[3000, 2000, 1500])
    assert seen["exponent"].value == pytest.approx(-1, abs=0.4)
    plain = run("mean-field-rate", "mean_field_rate", tokens=[16, 64, 256], samples=[600, 400, 200])
    assert plain["exponent of the spread"].value == pytest.approx(-0.5, abs=0.12)
    blind = run("source-blind", "source_blind", tokens=[32, 64, 128], samples=[1500, 1000, 800])
    assert blind["exponent of the dependence"].value == pytest.approx(-1, abs=0.4)
    edges = [float(kinetic.retrieval_profile(s, lam=1.0, beta=1.0, t=1.0, M=8)) for s in (0.2, 0.5)]
    assert 128 * blind["dependence at the largest N"].value == pytest.approx(2 * (edges[0] - edges[1]), rel=0.35)


def test_recency_follows_the_kernels_slope() -> None:
    seen = run("positional-slope", "positional_slope", slopes=[-0.5, 0.0], bends=[0.0, 0.4])
    assert seen["recency where b falls"].value == 1
    assert seen["recency where b does not fall"].value == 0
    late = run("positional-slope", "positional_slope", slopes=[-0.5, 0.0], bends=[0.0, 0.4], part=1.01)
    assert late["recency where b falls"].value == 0


def test_a_kernel_with_a_bump_turns_more_than_once() -> None:
    seen = run("positional-turns", "positional_turns", heights=[0.0, 1.0], points=150)
    assert seen["turning points without"].value == 1
    assert seen["turning points with the bump"].value == 3  # falls at first, rises at the end: odd
    assert -1 < seen["slope of the bumped kernel"].value < -0.99
    t = float(kinetic.t_crit(1.0, 1.0, 8)) / 2
    plain = [(x, value) for height, _, x, value in seen.rows if height == 0]
    closed = [float(kinetic.retrieval_profile(x, lam=1.0, beta=1.0, t=t, M=8)) for x, _ in plain]
    np.testing.assert_allclose([value for _, value in plain], closed, rtol=1e-6)


def test_responses_of_near_deterministic_prompts() -> None:
    seen = run("near-one-curve", "near_one_curve", tokens=[100, 200, 400])
    assert seen["exponent"].value == pytest.approx(-1, abs=0.25)
    assert seen["cluster gap"].value < 1e-8


def test_the_sphere_keeps_its_sources_apart() -> None:
    seen = run("spheres", "spheres", tokens=16, samples=200, sources=[0.0625, 0.25, 0.5, 0.9375])
    assert seen["last over the lowest"].low is not None
    assert seen["last over the lowest"].value > seen["last over the lowest"].low
    assert len(seen.rows) == 4


def test_a_second_valley_is_a_step_against_the_first() -> None:
    rng = np.random.default_rng(0)

    def reading(*means: float) -> tuple[float, float, float]:
        found = spheres.one_valley(np.array(means) + 0.05 * rng.standard_normal((4000, len(means))))
        assert found.low is not None
        assert found.high is not None
        return found.low, found.value, found.high

    assert reading(3.0, 2.0, 1.0, 1.5, 2.5)[2] < 0
    low, value, high = reading(3.0, 1.0, 2.0, 1.5, 2.5)  # falls by .5 behind the lowest
    assert low < 0.5 < high
    assert value == pytest.approx(0.5, abs=0.01)
    assert reading(2.0, 2.4, 1.0, 1.5, 2.5)[1] == pytest.approx(0.4, abs=0.01)  # rises by .4 before it
    assert reading(2.0, 2.2, 2.4, 1.0, 2.5)[1] == pytest.approx(0.4, abs=0.01)  # in two steps
    hits = sum(reading(1.0, 1.0, 1.0, 1.0)[0] <= 0 for _ in range(200))
    assert hits >= 190  # flat: no step is surely there
