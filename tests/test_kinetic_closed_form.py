"""Responses, profiles and masses: golden values, 50 digits over the whole domain, and the equations they solve."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catenary import kinetic
from catenary.errors import InvalidInput, NotApplicable
from oracles import kinetic as oracle

GOLDEN = json.loads((Path(__file__).parent / "golden" / "kinetic.json").read_text())
PROFILES = GOLDEN["profiles"]


def close(value: object, golden: str | mp.mpf, relative: float = 1e-12) -> bool:
    with mp.workdps(30):
        exact = mp.mpf(golden)
        return bool(abs(mp.mpf(float(value)) - exact) <= relative * abs(exact))  # type: ignore[arg-type]


def parameters(row: dict[str, str]) -> dict[str, float]:
    return {name: float(row[name]) for name in ("lam", "beta", "t", "M")}


def integral(function: Callable[[np.ndarray], np.ndarray], low: float, high: float, points: int = 40) -> np.ndarray:
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return (high - low) / 2 * (function(low + (nodes + 1) / 2 * (high - low)) @ weights)


@pytest.mark.parametrize("row", GOLDEN["primitives"]["rows"])
def test_golden_responses(row: list[str]) -> None:
    c, lam, sigma, sigma0 = (float(text) for text in row[:4])
    assert close(kinetic.response(1.0, sigma, sigma0, a=c, lam=lam), row[4], 1e-13)


def test_golden_primitives() -> None:
    for row in GOLDEN["graphon_and_distance"]["rows"]:
        lam, sigma, sigma0 = (float(text) for text in row[:3])
        assert close(kinetic.graphon(sigma, sigma0, lam=lam), row[3], 1e-15)
        assert close(kinetic.log_warp_ratio(sigma, sigma0, lam=lam), row[4], 1e-15)
    for mode, beta, value in GOLDEN["rates"]["rows"]:
        assert close(kinetic.mode_rate(float(mode), float(beta)), value, 1e-14)
    for row in GOLDEN["cluster"]["rows"]:
        lam, beta, t, sigma0 = (float(text) for text in row[:4])
        assert close(kinetic.cluster_response(t, 1.0, sigma0, beta=beta, lam=lam), row[4], 1e-14)
        assert close(kinetic.cluster_memory(t, beta=beta), row[5], 1e-14)


@pytest.mark.parametrize("row", PROFILES, ids=lambda row: "-".join(row[k] for k in ("lam", "beta", "t", "M")))
def test_golden_profiles(row: dict[str, str]) -> None:
    at = parameters(row)
    for name in (name for name in row if name.startswith("S(")):
        assert close(kinetic.retrieval_profile(float(name[2:-1]), **at), row[name], 1e-14)
    del at["lam"]
    assert close(kinetic.retrieval_mass(**at), row["mass"], 1e-14)


@pytest.mark.parametrize("lam", [0.0, 1e-10, 1e-3, 1.0, 10.0, 300.0, 1000.0])
def test_fifty_digits_over_the_whole_domain(lam: float) -> None:
    for sigma0 in (1e-12, 1e-6, 0.03, 0.5, 0.999, 1 - 1e-9, 1.0):
        for c in (1e-8, 0.3, 5.0, 50.0):
            exact = oracle.response(c, 1.0, sigma0, lam)
            value, log = (f(c, 1.0, sigma0, a=1.0, lam=lam) for f in (kinetic.response, kinetic.log_response))
            assert close(log, mp.log(exact), 1e-13) or abs(float(log) - float(mp.log(exact))) < 1e-14
            if exact > 1e-300:
                assert close(value, exact, 2e-13)
            else:
                assert value <= 1e-300


@pytest.mark.parametrize(("beta", "M"), [(0.05, 1.0), (12.0, 1.0), (12.0, 8.0), (12.0, 1e6), (3.0, 64.0)])
def test_modes_suffice_at_any_time(beta: float, M: float) -> None:
    with mp.workdps(oracle.DIGITS):
        peak = max(oracle.rate(n, beta) for n in range(1, 30))
        for c, sigma0 in ((1e-8, 1.0), (1e-8, 1e-12), (1.0, 0.2), (50.0, 1e-12)):
            t = float(c / peak)
            exact = oracle.profile(mp.mpf(sigma0), 2.0, beta, t, M)
            assert close(kinetic.retrieval_profile(sigma0, lam=2.0, beta=beta, t=t, M=M), exact, 2e-13)


def test_a_fixed_number_of_modes_would_not_do() -> None:
    """Twenty modes lose digits at beta = 8 and M = 64; the rule takes more."""
    assert kinetic.mode_count(8.0, 64) > 30
    t, n = 1e-6, np.arange(1, 21)
    twenty = (kinetic.mode_weight(n, 64) * kinetic.response(t, 1.0, 0.5, a=kinetic.mode_rate(n, 8.0), lam=1.0)).sum()
    assert abs(twenty / kinetic.retrieval_profile(0.5, lam=1.0, beta=8.0, t=t, M=64) - 1) > 1e-10


decays, rates = st.just(0.0) | st.floats(1e-3, 20), st.floats(0.01, 4)
positions = st.floats(0.02, 0.95)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(lam=decays, a=rates, t=st.floats(0.05, 2), sigma0=positions, share=st.floats(0.05, 1))
def test_solves_the_volterra_hardy_equation(lam: float, a: float, t: float, sigma0: float, share: float) -> None:
    """Integrated over time: g(t) = a int_0^t [ int k g(s) + k ] ds."""
    sigma = sigma0 + share * (1 - sigma0)
    later = kinetic.log_warp_ratio(sigma, sigma0, lam=lam)

    def right(s: np.ndarray) -> np.ndarray:
        def inner(y: np.ndarray) -> np.ndarray:
            # k(sigma, .) at distance y before sigma, over dY = k(sigma, .) d(.) / e^-y
            between = _before(sigma, y, lam)
            return np.exp(-y) * kinetic.response(s[:, None], between, np.minimum(sigma0, between), a=a, lam=lam)

        return a * (integral(inner, 0.0, float(later)) + kinetic.graphon(sigma, sigma0, lam=lam))

    solved = float(kinetic.response(t, sigma, sigma0, a=a, lam=lam))
    assert float(integral(right, 0.0, t, 16)) == pytest.approx(solved, rel=1e-10)


def _before(sigma: float, y: np.ndarray, lam: float) -> np.ndarray:
    """The position at distance y before sigma."""
    if lam == 0:
        return sigma * np.exp(-y)
    return np.log1p(np.expm1(lam * sigma) * np.exp(-y)) / lam


@settings(derandomize=True, max_examples=25, deadline=None)
@given(lam=decays, c=rates, d=rates, sigma0=positions)
def test_semigroup(lam: float, c: float, d: float, sigma0: float) -> None:
    """e^{cK} e^{dK} = e^{(c+d)K}."""

    def product(y: np.ndarray) -> np.ndarray:
        middle = np.maximum(_before(1.0, y, lam), sigma0)
        first = kinetic.response(1.0, 1.0, middle, a=c, lam=lam) / kinetic.graphon(1.0, middle, lam=lam)
        return np.exp(-y) * first * kinetic.response(1.0, middle, sigma0, a=d, lam=lam)

    apart = integral(product, 0.0, float(kinetic.log_warp_ratio(1.0, sigma0, lam=lam)))
    one, two, both = (kinetic.response(1.0, 1.0, sigma0, a=rate, lam=lam) for rate in (c, d, c + d))
    assert float(one + two + apart) == pytest.approx(float(both), 1e-10)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(lam=decays, c=st.floats(1e-6, 30), sigma0=positions)
def test_mass_rule_and_its_parts(lam: float, c: float, sigma0: float) -> None:
    """All sources: e^c - 1. Sources after sigma0: the integral of the response."""
    everything, early = (kinetic.response_mass(c, 1.0, at, a=1.0, lam=lam) for at in (1.0, sigma0))
    assert float(everything) == pytest.approx(np.expm1(c), 1e-13)

    def late(y: np.ndarray) -> np.ndarray:
        return np.exp(-y) * kinetic.psi(y, c)

    rest = float(integral(late, 0.0, float(kinetic.log_warp_ratio(1.0, sigma0, lam=lam))))
    assert float(everything - early) == pytest.approx(rest, rel=1e-11, abs=1e-13 * float(everything))


@settings(derandomize=True, max_examples=20, deadline=None)
@given(beta=st.floats(0.1, 2), t=st.floats(0.01, 1.5), lam=decays)
def test_one_cluster_keeps_its_total(beta: float, t: float, lam: float) -> None:
    """Memory and all responses sum to one: a common shift of all tokens moves them all alike."""
    rate = beta * np.exp(beta)
    responses = np.exp(-rate * t) * kinetic.response_mass(t, 1.0, 1.0, a=rate, lam=lam)
    assert float(kinetic.cluster_memory(t, beta=beta) + responses) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("sigma0", [1e-9, 0.3, 0.97, 1.0])
def test_no_decay_is_the_limit_of_little_decay(sigma0: float) -> None:
    still = float(kinetic.response(2.0, 1.0, sigma0, a=1.0, lam=0.0))
    gaps = [float(kinetic.response(2.0, 1.0, sigma0, a=1.0, lam=lam)) - still for lam in (1e-3, 1e-6)]
    assert gaps[1] / gaps[0] == pytest.approx(1e-3, rel=0.01)
    assert float(kinetic.response(2.0, 1.0, sigma0, a=1.0, lam=1e-300)) == pytest.approx(still, rel=1e-14)


def test_slopes_and_curvatures_are_derivatives() -> None:
    at = {"lam": 3.0, "beta": 2.0, "t": 0.4, "M": 8.0}
    with mp.workdps(oracle.DIGITS):
        for sigma0 in (1e-3, 0.2, 0.7, 0.99):
            def curve(s: mp.mpf) -> mp.mpf:
                return oracle.profile(s, **at, modes=30)

            for order, function in ((1, kinetic.retrieval_slope), (2, kinetic.retrieval_curvature)):
                assert close(function(sigma0, **at), mp.diff(curve, mp.mpf(sigma0), order), 1e-12)
        exact = mp.diff(lambda s: oracle.response(1.5, mp.mpf(0.8), s, 2.0), mp.mpf("0.25"), h=mp.mpf(10) ** -12)
    assert close(kinetic.response_slope(1.0, 0.8, 0.25, a=1.5, lam=2.0), exact, 1e-13)


@pytest.mark.parametrize("lam", [0.0, 1e-12, 0.5, 1.0, 30.0, 1000.0])
def test_source_at_undoes_the_distance(lam: float) -> None:
    sigma0 = np.array([1e-12, 1e-4, 0.4, 0.999, 1.0])
    distance = kinetic.log_warp_ratio(1.0, sigma0, lam=lam)
    np.testing.assert_allclose(kinetic.source_at(distance, lam=lam), sigma0, rtol=3e-13)


def test_arguments_broadcast_and_numbers_come_back_as_numbers() -> None:
    lam, t = np.array([[0.0], [2.0]]), np.array([0.5, 1.0, 2.0])[:, None, None]
    profiles = kinetic.retrieval_profile(np.linspace(0.1, 1, 7), lam=lam, beta=1, t=t, M=np.array(8))
    assert profiles.shape == (3, 2, 7)
    one = kinetic.retrieval_profile(0.4, lam=2.0, beta=1.0, t=1.0, M=8)
    assert isinstance(one, float)
    assert one == pytest.approx(profiles[1, 1, 2], rel=1e-15)
    assert kinetic.response(0.0, 1.0, 0.5, a=1.0, lam=1.0) == 0


def test_beyond_float64_is_said_and_has_a_logarithm() -> None:
    with pytest.raises(NotApplicable, match=r"must stay below 1e308, got e\^\d+; use log_response"):
        kinetic.response(1e5, 1.0, 1e-6, a=1.0, lam=0.0)
    assert float(kinetic.log_response(1e5, 1.0, 1e-6, a=1.0, lam=0.0)) == pytest.approx(
        float(mp.log(oracle.response(1e5, 1.0, 1e-6, 0.0))), rel=1e-13
    )
    with pytest.raises(NotApplicable, match="mass"):
        kinetic.response_mass(800.0, 1.0, 1.0, a=1.0, lam=0.0)
    small = kinetic.log_retrieval_profile(0.2, lam=1000.0, beta=1.0, t=1e-3, M=8)
    assert -810 < float(small) < -790
    assert kinetic.retrieval_profile(0.2, lam=1000.0, beta=1.0, t=1e-3, M=8) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": -1.0}, r"lam must be >= 0, got -1\.0"),
        ({"beta": 0.0}, r"beta must be in \(0, 700\], got 0\.0"),
        ({"beta": [1.0, -2.0]}, r"beta must be in \(0, 700\], got -2\.0"),
        ({"t": float("nan")}, "t must be finite, got nan"),
        ({"t": -0.1}, r"t must be >= 0, got -0\.1"),
        ({"M": 0}, r"M must be >= 1, got 0\.0"),
        ({"sigma0": 0.0}, r"sigma0 must be in \(0, 1\], got 0\.0; position 0 is no token"),
        ({"sigma0": [0.5, float("inf")]}, "sigma0 must be finite, got inf"),
    ],
)
def test_outside_the_domain_one_line_says_so(change: dict[str, object], message: str) -> None:
    arguments = {"sigma0": 0.5, "lam": 1.0, "beta": 1.0, "t": 1.0, "M": 8.0, **change}
    with pytest.raises(InvalidInput, match=message) as caught:
        kinetic.retrieval_profile(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_later_source_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"sigma0 must be <= sigma, got 0\.6; a later source has no influence"):
        kinetic.response(1.0, [0.7, 0.5], 0.6, a=1.0, lam=1.0)
    with pytest.raises(InvalidInput, match="t must be > 0"):
        kinetic.log_response(0.0, 1.0, 0.5, a=1.0, lam=1.0)


def test_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, catenary.kinetic as k\n"
        "assert not {'torch', 'transformers', 'numba', 'scipy'} & set(sys.modules)\n"
        "k.interior_minimum(lam=1, beta=1, t=1, M=8); k.extrema(heads=[(1, 1, 1)], t=1, M=8)\n"
        "assert not {'torch', 'transformers', 'numba'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
