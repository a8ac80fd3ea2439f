"""Any positional kernel: golden values, the closed form, dense attention matrices, and where recency ends."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from catenary import kinetic
from catenary.errors import InvalidInput, NotApplicable
from catenary.kinetic.positional.kernels import PositionalKernel
from oracles import kinetic as oracle
from test_kinetic_closed_form import GOLDEN

POWER, TWO = kinetic.PowerLaw(0.2, 2.0), kinetic.Exponentials([0.7, 0.3], [1.0, 20.0])
SOURCES = np.array([1e-12, 1e-6, 0.01, 0.3, 0.7, 0.99, 1.0])


def bump(x: np.ndarray) -> np.ndarray:
    """Falls at first, with a second favourite distance at 0.6."""
    return np.exp(-3 * x) + 0.5 * np.exp(-(((x - 0.6) / 0.1) ** 2))


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (POWER, "power law, length 0.2, exponent 2"),
        (kinetic.Weighting(lambda x: (1 + 5 * x) ** -2.0), "power law, length 0.2, exponent 2"),
        (TWO, "0.7 exp(-x) + 0.3 exp(-20x)"),
        (kinetic.Weighting(lambda x: 7 * np.exp(-x) + 3 * np.exp(-20 * x)), "0.7 exp(-x) + 0.3 exp(-20x)"),
    ],
)
def test_golden_values(kernel: PositionalKernel, name: str) -> None:
    golden = GOLDEN["positional"]
    values = kinetic.positional_response(golden["sigma0"], c=golden["c"], kernel=kernel)
    np.testing.assert_allclose(values, golden[name], rtol=1e-11)
    np.testing.assert_allclose(values, golden[name], rtol=2e-13)


@pytest.mark.parametrize("lam", [0.0, 0.1, 2.0, 20.0, 100.0])
@pytest.mark.parametrize("c", [1e-8, 2.0, 50.0])
def test_one_exponential_is_the_closed_form(lam: float, c: float) -> None:
    values = kinetic.positional_response(SOURCES, c=c, kernel=kinetic.Exponentials([3.0], [lam]))
    np.testing.assert_allclose(values, kinetic.response(c, 1.0, SOURCES, a=1.0, lam=lam), rtol=3e-13)


def test_profiles_sum_the_same_modes() -> None:
    at = {"beta": np.array([[1.0], [6.0]]), "t": 0.01, "M": 8}
    values = kinetic.positional_profile(SOURCES, kernel=kinetic.Exponentials([1.0], [2.0]), **at)
    np.testing.assert_allclose(values, kinetic.retrieval_profile(SOURCES, lam=2.0, **at), rtol=1e-13)


@pytest.mark.parametrize("kernel", [POWER, TWO, kinetic.Weighting(bump)])
@pytest.mark.parametrize("c", [0.5, 4.0])
def test_all_sources_together_give_the_mass_of_the_closed_form(kernel: PositionalKernel, c: float) -> None:
    """int g = e^c - 1 for every b, as its weights sum to one."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-80, 1)])
    edges = np.unique(np.concatenate([edges, np.linspace(0.05, 1, 40)]))
    sigma0 = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    values = np.asarray(kinetic.positional_response(sigma0, c=c, kernel=kernel))
    assert values @ (np.diff(edges)[:, None] * weights / 2).ravel() == pytest.approx(math.expm1(c), rel=1e-11)


@pytest.mark.parametrize(
    ("kernel", "b"),
    [
        (kinetic.Exponentials([1.0], [0.0]), lambda x: 1.0),
        (TWO, lambda x: 0.7 * math.exp(-x) + 0.3 * math.exp(-20 * x)),
        (POWER, lambda x: (1 + 5 * x) ** -2),
        (kinetic.Weighting(bump), lambda x: float(bump(np.array(x)))),
    ],
)
def test_finite_prompts_against_a_dense_exponential(kernel: PositionalKernel, b: Callable[[float], float]) -> None:
    tokens = 60
    dense = tokens * (expm(3.0 * oracle.attention(tokens, b)) - np.eye(tokens))[-1]
    np.testing.assert_allclose(
        kinetic.linear_response(tokens, c=3.0, kernel=kernel), dense, rtol=1e-12, atol=1e-14 * dense.max()
    )


@pytest.mark.parametrize("kernel", [POWER, TWO, kinetic.Weighting(bump)])
def test_finite_prompts_tend_to_the_continuum_as_one_over_n(kernel: PositionalKernel) -> None:
    sigma0 = np.array([0.25, 0.5, 0.75])
    limit = kinetic.positional_response(sigma0, c=2.0, kernel=kernel)
    errors = []
    for tokens in (512, 2048, 8192):
        row = kinetic.linear_response(tokens, c=2.0, kernel=kernel)
        errors.append(np.abs(row[(sigma0 * tokens).astype(int) - 1] - limit).max())
    rates = -np.diff(np.log(errors)) / math.log(4)
    assert rates == pytest.approx([1.0, 1.0], abs=0.03)


def test_coefficients_of_one_over_n() -> None:
    """N times the relative error at lambda = 2, c = 3, N = 1024, from matrix exponentials."""
    tokens = 1024
    sigma0 = np.array([1 / 8, 1 / 4, 1 / 2, 3 / 4, 15 / 16])
    row = kinetic.linear_response(tokens, c=3.0, kernel=kinetic.Exponentials([1.0], [2.0]))
    exact = kinetic.response(3.0, 1.0, sigma0, a=1.0, lam=2.0)
    scaled = tokens * (row[(sigma0 * tokens).astype(int) - 1] / exact - 1)
    np.testing.assert_allclose(scaled, [1.337, 0.321, -0.605, -1.321, -1.920], atol=6e-4)


def test_scans_and_transforms_agree() -> None:
    def b(x: np.ndarray) -> np.ndarray:
        return 0.7 * np.exp(-x) + 0.3 * np.exp(-20 * x)

    scans, transforms = (kinetic.linear_response(3000, c=2.0, kernel=k) for k in (TWO, kinetic.Weighting(b)))
    np.testing.assert_allclose(transforms, scans, atol=1e-13 * scans.max())
    assert kinetic.linear_response(3000, c=0.0, kernel=TWO).max() == 0


@settings(derandomize=True, max_examples=8, deadline=None)
@given(lam=st.floats(0.01, 40), c=st.floats(0.05, 4))
def test_order_of_exponentials_and_their_scale_do_not_matter(lam: float, c: float) -> None:
    one, other = kinetic.Exponentials([1.0, 2.0], [lam, 3.0]), kinetic.Exponentials([20.0, 10.0], [3.0, lam])
    values = [np.asarray(kinetic.positional_response(SOURCES[2:], c=c, kernel=kernel)) for kernel in (one, other)]
    np.testing.assert_allclose(*values, rtol=1e-12)


def test_recency_ends_at_the_critical_rate() -> None:
    assert kinetic.critical_rate(POWER) == pytest.approx(10 / 3, rel=1e-14)
    assert kinetic.critical_rate(kinetic.Exponentials([2.0], [3.0])) == pytest.approx(-2 * math.expm1(-3), rel=1e-14)
    for kernel in (POWER, TWO, kinetic.Weighting(bump, slope_at_0=-3 + 60 * math.exp(-36))):
        critical, step = kinetic.critical_rate(kernel), 1e-6
        slopes = [
            float(np.diff(kinetic.positional_response([1 - step, 1.0], c=part * critical, kernel=kernel))[0]) / step
            for part in (0.999, 1.001)
        ]
        assert slopes[0] > 0 > slopes[1]
        start, end = float(kernel.weight(np.float64(0.0))), float(kernel.mass(np.float64(1.0)))
        c = 0.999 * critical
        assert slopes[0] == pytest.approx(-c * kernel.slope / end - (c * start / end) ** 2 / 2, rel=2e-2)
    power = kinetic.positional_response([1 - 1e-6, 1.0], c=0.999 * 10 / 3, kernel=POWER)
    assert float(np.diff(power)[0]) * 1e6 == pytest.approx(0.1998, abs=2e-4)


def test_recency_of_profiles_under_any_kernel() -> None:
    lam, beta, M = 2.0, np.array([0.5, 1.0, 4.0]), 8
    times = kinetic.positional_t_crit(kinetic.Exponentials([5.0], [lam]), beta=beta, M=M)
    np.testing.assert_allclose(times, kinetic.t_crit(lam, beta, M), 1e-13)
    assert kinetic.positional_t_crit(kinetic.Exponentials([1.0], [0.0]), beta=1.0, M=8) == 0
    assert kinetic.critical_rate(kinetic.Weighting(lambda x: 1 + x, slope_at_0=1.0)) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kinetic.Weighting(lambda x: 1 - x), r"b must be > 0 on \[0, 1\], also at x = 1, got 0\.0"),
        (lambda: kinetic.Weighting(lambda x: np.cos(4 * x)), r"b must be > 0 on \[0, 1\], also at x = 0\.393"),
        (lambda: kinetic.Weighting(lambda x: x * np.nan), r"b must be > 0 on \[0, 1\], also at x = 0, got nan"),
        (lambda: kinetic.Weighting(lambda x: np.ones(3)), "b must give one value per distance"),
        (lambda: kinetic.Weighting(lambda x: 1 + (x > 0.3)), "b must be smooth"),
        (lambda: kinetic.Weighting(lambda x: (x - 0.33337) ** 2), r"b must be > 0 on \[0, 1\], also at x = 0\.33337"),
        (lambda: kinetic.Weighting(lambda x: (x - 0.33337) ** 2 - 1e-9), r"b must be > 0 .*at x = 0\.333"),
        (lambda: kinetic.Exponentials(1.0, 2.0), "shares must be a list as long as decays"),
        (lambda: kinetic.Exponentials([1.0], [-1.0]), r"decays must be >= 0, got -1\.0"),
        (lambda: kinetic.Exponentials([1.0, 0.0], [1.0, 2.0]), r"shares must be > 0, got 0\.0"),
        (lambda: kinetic.Exponentials([1.0], [1.0, 2.0]), "shares must be a list as long as decays"),
        (lambda: kinetic.PowerLaw(0.0, 2.0), r"length must be > 0, got 0\.0"),
        (lambda: kinetic.critical_rate(kinetic.Weighting(lambda x: 1 + x)), "give it as slope_at_0"),
        (lambda: kinetic.positional_response(0.5, c=-1.0, kernel=POWER), r"c must be >= 0, got -1\.0"),
        (lambda: kinetic.positional_response(0.0, c=1.0, kernel=POWER), r"sigma0 must be in \(0, 1\]"),
        (lambda: kinetic.linear_response(1, c=1.0, kernel=POWER), "tokens must be a whole number of at least 2, got 1"),
        (lambda: kinetic.positional_response(1e-12, c=1.0, kernel=kinetic.Exponentials([1.0], [1e5])), "256 panels"),
    ],
)
def test_outside_the_domain_one_line_says_so(make: Callable[[], object], message: str) -> None:
    with pytest.raises((InvalidInput, NotApplicable), match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_deep_minimum_is_no_zero() -> None:
    for gap in (1e-8, 1e-6, 1e-3):
        assert kinetic.Weighting(lambda x, gap=gap: gap + (x - 0.33337) ** 2).mass(np.float64(1.0)) > 0
    assert kinetic.Weighting(lambda x: np.ones_like(x)).mass(np.float64(1.0)) == pytest.approx(1.0, rel=1e-14)


def test_shapes() -> None:
    values = kinetic.positional_response(np.array([0.2, 0.9]), c=np.array([[1.0], [2.0], [0.0]]), kernel=POWER)
    assert values.shape == (3, 2)
    assert (values[2] == 0).all()
    assert isinstance(kinetic.positional_response(0.2, c=1.0, kernel=POWER), float)
    assert kinetic.positional_response(np.zeros(0), c=1.0, kernel=POWER).shape == (0,)
