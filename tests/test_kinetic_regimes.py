"""U, hump and primacy: exact thresholds, minima against golden values, several heads, and the theorem on one mode."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catenary import kinetic
from catenary.errors import InvalidInput, NotApplicable
from oracles import kinetic as oracle
from test_kinetic_closed_form import GOLDEN, PROFILES, close, parameters

# beta this small and M = 1 leave one mode: the second has 1e-14 of its weight.
ONE_MODE = {"beta": 1e-6, "M": 1.0}


@pytest.mark.parametrize("row", PROFILES, ids=lambda row: "-".join(row[k] for k in ("lam", "beta", "t", "M")))
def test_golden_minima_and_thresholds(row: dict[str, str]) -> None:
    at = parameters(row)
    found = kinetic.interior_minimum(**at)
    assert close(kinetic.t_crit(at["lam"], at["beta"], at["M"]), row["t_crit"], 1e-14)
    assert close(kinetic.t_sufficient(at["lam"], at["beta"], at["M"]), row["t_suff"], 1e-14)
    if "sigma_star" not in row:
        assert found.regime == "primacy"
        assert np.isnan([found.sigma, found.value, found.curvature, found.depth]).all()
        return
    assert found.regime == "U"
    assert close(found.sigma, row["sigma_star"], 1e-14)
    assert close(found.value, row["S_star"], 1e-14)
    assert close(found.curvature, row["S_pp"], 1e-13)
    assert close(found.depth, row["depth S(1)-S*"], 1e-12)
    assert close(kinetic.log_warp_ratio(1.0, found.sigma, lam=at["lam"]), row["y_star"], 1e-14)


@pytest.mark.parametrize("case", GOLDEN["extrema"], ids=["hump 5", "hump 3", "W"])
def test_golden_extrema(case: dict[str, object]) -> None:
    heads = [tuple(float(number) for number in head) for head in case["heads"]]  # type: ignore[attr-defined]
    t, M = float(case["t"]), float(case["M"])  # type: ignore[arg-type]
    found = kinetic.extrema(heads=heads, t=t, M=M)  # type: ignore[arg-type]
    assert [one.kind for one in found] == [row[0] for row in case["rows"]]  # type: ignore[attr-defined]
    for one, (_, sigma, value) in zip(found, case["rows"], strict=True):  # type: ignore[call-overload]
        assert close(one.sigma, sigma, 1e-6 if len(sigma) < 12 else 1e-13)
        assert close(one.value, value, 1e-13)
        assert (one.curvature > 0) == (one.kind == "minimum")
    assert close(kinetic.heads_profile(1.0, heads=heads, t=t, M=M), case["end"], 1e-14)  # type: ignore[arg-type]
    if len(heads) == 1:
        lam, beta = heads[0][1:]
        lowest = kinetic.interior_minimum(lam=lam, beta=beta, t=t, M=M)
        assert lowest.regime == "hump"
        assert float(lowest.sigma) == pytest.approx(found[0].sigma, rel=1e-14)


def test_negative_weights_give_a_double_well() -> None:
    """Four heads with two negative weights; the two wells were made equally deep."""
    heads = [(1.0, 3.0, 0.2), (-27.5193, 0.25, 0.2), (-1.5515, 0.25, 0.5), (3.926e-6, 2.0, 3.0)]
    first, barrier, second = kinetic.extrema(heads=heads, t=1.5, M=8)
    assert (first.kind, barrier.kind, second.kind) == ("minimum", "maximum", "minimum")
    assert first.value == pytest.approx(second.value, rel=1e-5)
    sigma = np.linspace(0.02, 0.98, 4001)
    curve = np.asarray(kinetic.heads_profile(sigma, heads=heads, t=1.5, M=8))
    assert sigma[curve[:2000].argmin()] == pytest.approx(first.sigma, abs=3e-4)
    assert curve.min() == pytest.approx(min(first.value, second.value), rel=1e-6)


@settings(derandomize=True, max_examples=5, deadline=None)
@given(order=st.permutations(range(3)), t=st.floats(0.3, 1.5))
def test_the_order_of_heads_does_not_matter(order: list[int], t: float) -> None:
    heads = [(1.0, 15.0, 0.5), (1e-3, 15.0, 3.0), (-0.2, 2.0, 1.0)]
    one, other = (kinetic.extrema(heads=some, t=t, M=8) for some in (heads, [heads[i] for i in order]))
    assert [found.kind for found in one] == [found.kind for found in other]
    assert [found.sigma for found in one] == pytest.approx([found.sigma for found in other], rel=1e-12)


def test_recency_ends_at_t_crit_exactly() -> None:
    lam, beta, M = np.array([[0.01], [1.0], [30.0]]), np.array([0.2, 1.0, 5.0]), 8
    critical = kinetic.t_crit(lam, beta, M)
    for factor, sign in ((1 - 1e-9, 1), (1 + 1e-9, -1)):
        slope = kinetic.retrieval_slope(1.0, lam=lam, beta=beta, t=factor * critical, M=M)
        assert (np.sign(slope) == sign).all()


def test_proved_times_lie_below_exact_ones() -> None:
    rng = np.random.default_rng(0)
    lam, beta, M = 10 ** rng.uniform(-3, 3, 2000), rng.uniform(0.01, 12, 2000), rng.integers(1, 100, 2000)
    proved, exact = kinetic.t_sufficient(lam, beta, M), kinetic.t_crit(lam, beta, M)
    assert (proved <= exact * (1 + 1e-14)).all()
    assert (kinetic.t_monotone(lam[:200], beta[:200], M[:200]) >= exact[:200]).all()


def test_one_interior_minimum_below_t_crit_for_beta_up_to_10() -> None:
    """Evidence for the conjecture: the sign of the slope changes once, on a grid in y, in 400 random cases."""
    rng = np.random.default_rng(1)
    n = 400
    lam, beta, M = 10 ** rng.uniform(-2, 2.3, n), rng.uniform(0.05, 10, n), 10 ** rng.uniform(0, 2, n)
    t = rng.uniform(0.05, 0.999, n) * kinetic.t_crit(lam, beta, M)
    found = kinetic.interior_minimum(lam=lam, beta=beta, t=t, M=M)
    assert (found.regime == "U").all()
    assert (found.curvature > 0).all()
    assert (found.depth > 0).all()
    y = np.concatenate([np.geomspace(1e-6, 1, 60, endpoint=False), np.linspace(1, 1.2, 40), np.linspace(1.2, 60, 300)])
    sigma = np.asarray(kinetic.source_at(y * np.maximum(1, (lam[:, None] + 40) / 60), lam=lam[:, None]))
    slope = kinetic.retrieval_slope(sigma, lam=lam[:, None], beta=beta[:, None], t=t[:, None], M=M[:, None])
    rising = np.asarray(slope) > 0
    assert (np.diff(rising.astype(int), axis=1) != 0).sum(axis=1).max() == 1
    assert rising[:, 0].all()


def test_small_times_put_the_minimum_near_the_start() -> None:
    r"""sigma* -> log(1 + c/2)/lambda with c = 2 (1 - e^-lambda) t/t_crit; the error falls in proportion to t."""
    t = np.array([1e-2, 1e-3, 1e-4])
    found = kinetic.interior_minimum(lam=1.0, beta=1.0, t=t, M=8)
    c = -2 * np.expm1(-1.0) * t / kinetic.t_crit(1.0, 1.0, 8)
    errors = np.abs(np.log1p(c / 2) / np.asarray(found.sigma) - 1)
    assert float(found.sigma[0]) == pytest.approx(0.0025628, abs=5e-8)
    assert (errors < 0.01).all()
    assert errors[2] < errors[1] < errors[0]


@pytest.mark.parametrize("lam", [0.01, 0.5, 1.3, 1.38])
def test_one_mode_below_log_4_has_no_hump(lam: float) -> None:
    critical = float(kinetic.t_crit(lam, **ONE_MODE))
    rate = float(kinetic.mode_rate(1.0, ONE_MODE["beta"]))
    assert critical * rate == pytest.approx(-2 * math.expm1(-lam), rel=1e-12)
    assert float(kinetic.t_monotone(lam, **ONE_MODE)) == pytest.approx(critical, rel=1e-14)
    words = kinetic.regime(lam=lam, t=critical * np.array([0.5, 0.99, 0.9999, 1.0001, 1.5, 20]), **ONE_MODE)
    assert words.tolist() == ["U", "U", "U", "primacy", "primacy", "primacy"]


def test_one_mode_above_log_4_has_one() -> None:
    assert float(kinetic.hump_onset(**ONE_MODE)) == pytest.approx(math.log(4), rel=1e-12)
    lam = np.array([1.39, 1.5, 2.0, 3.0])
    window = kinetic.t_monotone(lam, **ONE_MODE) / kinetic.t_crit(lam, **ONE_MODE) - 1
    np.testing.assert_allclose(window, [2.4e-6, 2.2e-3, 5.0e-2, 0.258], rtol=0.02)


@pytest.mark.parametrize(("lam", "beta"), [(2.0, 1.0), (5.0, 1.0), (20.0, 5.0), (1.6, 0.1)])
def test_the_hump_ends_at_t_monotone(lam: float, beta: float) -> None:
    """An independent look: turns of the curve itself just before and just after."""
    end = float(kinetic.t_monotone(lam, beta, 8))
    y = np.linspace(0, lam + 3, 20001)
    sigma = kinetic.source_at(y, lam=lam)
    for factor, turns in ((1 - 1e-5, 2), (1 + 1e-5, 0)):
        curve = kinetic.log_retrieval_profile(sigma, lam=lam, beta=beta, t=factor * end, M=8)
        assert oracle.slope_changes(np.asarray(curve)) == turns
        found = kinetic.extrema(heads=[(1.0, lam, beta)], t=factor * end, M=8)
        assert len(found) == turns
        assert kinetic.regime(lam=lam, beta=beta, t=factor * end, M=8) == ("hump" if turns else "primacy")


def test_golden_ends_of_the_hump() -> None:
    """Scans gave these; all digits but the last of 2.0 -> 3.47609 hold (tests/test_kinetic_regimes.py, above)."""
    np.testing.assert_allclose(
        kinetic.t_monotone([1.0, 3.0, 5.0, 8.0, 20.0], 1.0, 8), [2.45749, 4.47083, 6.83969, 11.0651, 30.4706], rtol=5e-6
    )
    assert float(kinetic.t_monotone(20.0, 5.0, 8)) == pytest.approx(0.185292, rel=3e-6)
    onsets = kinetic.hump_onset([0.1, 0.5, 1, 2, 3, 5, 8], 8)
    np.testing.assert_allclose(onsets, [1.4930, 1.5640, 1.4723, 1.5325, 1.5529, 1.5684, 1.6143], atol=5e-5)


@pytest.mark.parametrize("beta", [0.1, 1.0, 8.0])
def test_the_hump_begins_at_its_onset(beta: float) -> None:
    onset = float(kinetic.hump_onset(beta, 8))
    lam = onset + np.array([-1e-3, 1e-3])
    window = kinetic.t_monotone(lam, beta, 8) / kinetic.t_crit(lam, beta, 8) - 1
    assert abs(window[0]) < 1e-13
    assert window[1] > 1e-10


@settings(derandomize=True, max_examples=15, deadline=None)
@given(
    weights=st.lists(st.floats(1e-4, 1), min_size=2, max_size=4),
    rates=st.lists(st.floats(0.01, 10), min_size=4, max_size=4),
    y=st.floats(1e-3, 30),
)
def test_the_ratio_falls_with_time_whatever_the_weights(weights: list[float], rates: list[float], y: float) -> None:
    """The lemma behind t_monotone (docs/kinetic.md)."""
    used = rates[: len(weights)]
    with mp.workdps(oracle.DIGITS):
        ratios = [oracle.falling_ratio(weights, [t * a for a in used], y) for t in (0.1, 0.5, 1.0, 1.01, 3.0)]
    assert all(later < earlier for earlier, later in itertools.pairwise(ratios))


@pytest.mark.parametrize(
    ("lam", "beta", "M", "part"),
    [(30.0, 30.0, 3, 0.985), (12.0, 60.0, 4, 0.98), (100.0, 100.0, 5, 0.96), (5.0, 12.0, 2.5, 0.999)],
)
def test_one_head_may_have_two_minima_below_t_crit(lam: float, beta: float, M: float, part: float) -> None:
    """Counterexamples to "U below t_crit", with 50 digits: the curve rises on both sides of either minimum."""
    t = part * float(kinetic.t_crit(lam, beta, M))
    found = kinetic.extrema(heads=[(1.0, lam, beta)], t=t, M=M)
    assert [one.kind for one in found] == ["minimum", "maximum", "minimum"]
    with mp.workdps(oracle.DIGITS):
        low, top, right = (oracle.profile(mp.mpf(one.sigma), lam, beta, t, M) for one in found)
        middle = [(mp.mpf(found[i].sigma) + mp.mpf(found[i + 1].sigma)) / 2 for i in range(2)]
        between = [oracle.profile(sigma, lam, beta, t, M) for sigma in middle]
        assert low < between[0] < top > between[1] > right
        assert right < oracle.profile(mp.mpf(1), lam, beta, t, M)
    lowest = kinetic.interior_minimum(lam=lam, beta=beta, t=t, M=M)
    assert lowest.regime == "W"
    best = min((one for one in found if one.kind == "minimum"), key=lambda one: one.value)
    assert float(lowest.sigma) == pytest.approx(best.sigma, rel=1e-12)


def test_regimes_agree_with_the_extrema_found_one_by_one() -> None:
    rng = np.random.default_rng(5)
    n = 60
    lam, beta, M = 10 ** rng.uniform(-1, 2.3, n), 10 ** rng.uniform(-1, 1.8, n), rng.integers(1, 20, n)
    t = np.asarray(kinetic.t_crit(lam, beta, M)) * rng.uniform(0.3, 1.6, n)
    words = kinetic.regime(lam=lam, beta=beta, t=t, M=M)
    counts = {"U": 1, "W": 3, "hump": 2, "primacy": 0}
    for i in range(n):
        found = kinetic.extrema(heads=[(1.0, lam[i], beta[i])], t=t[i], M=M[i])
        assert len(found) == counts[str(words[i])]
    assert {"U", "hump", "primacy"} <= set(words.tolist())


def test_profiles_with_more_turns() -> None:
    """Two humps at once, four extrema; and two valleys of the balance of which neither reaches 0."""
    for lam, beta, M, part, word, count in (
        (123.10021291155115, 230.51889980061665, 1.8666071580360768, 1.0041, "hump", 4),
        (162.88341120977375, 9.597533489047729, 1.3027762421958944, 0.4125872356232339, "U", 1),
        (118.60232797814064, 176.1441930179848, 1.79308620224411, 0.9332381037479205, "W", 3),
    ):
        t = part * float(kinetic.t_crit(lam, beta, M))
        found = kinetic.interior_minimum(lam=lam, beta=beta, t=t, M=M)
        each = kinetic.extrema(heads=[(1.0, lam, beta)], t=t, M=M)
        assert (found.regime, len(each)) == (word, count)
        lowest = min((one for one in each if one.kind == "minimum"), key=lambda one: one.value)
        assert float(found.sigma) == pytest.approx(lowest.sigma, rel=1e-12)


def test_two_positive_heads_may_turn_three_times_below_their_threshold() -> None:
    """Uniqueness rests on how rates and read-out weights belong together, not on positive weights alone."""
    found = kinetic.extrema(heads=[(1.0, 15.0, 0.5), (1e-3, 15.0, 3.0)], t=1.0, M=8)
    assert len(found) == 3


def test_shapes_broadcast_and_regimes_are_words() -> None:
    found = kinetic.interior_minimum(lam=np.array([[0.0], [1.0], [5.0]]), beta=1.0, t=[1.0, 2.6, 5.0, 7.0], M=8)
    assert found.regime.tolist() == [["primacy"] * 4, ["U"] + ["primacy"] * 3, ["U", "U", "hump", "primacy"]]
    assert found.sigma.shape == found.value.shape == found.curvature.shape == found.depth.shape == (3, 4)
    assert (np.isnan(found.sigma) == (found.regime == "primacy")).all()
    one = kinetic.interior_minimum(lam=5, beta=1, t=5, M=8)
    assert one.regime in kinetic.REGIMES
    assert isinstance(one.sigma, float)
    assert one.sigma == pytest.approx(found.sigma[2, 2], rel=1e-14)


def test_the_whole_domain_has_an_answer() -> None:
    lam = np.array([0.0, 1e-10, 1e-3, 1.0, 30.0, 1000.0])[:, None]
    for beta, M in ((1e-3, 1.0), (1.0, 8.0), (12.0, 100.0)):
        t = np.array([1e-8, 1e-2, 1.0, 50.0]) / np.asarray(kinetic.mode_rate(np.arange(1.0, 40), beta)).max()
        found = kinetic.interior_minimum(lam=lam, beta=beta, t=t, M=M)
        inside = found.regime != "primacy"
        assert ((found.sigma > 0) & (found.sigma < 1))[inside].all()
        assert np.isnan(found.sigma[~inside]).all()
        assert (found.regime[0] == "primacy").all()
        assert (found.regime[-1, :3] == "U").all()


def test_phase_diagram() -> None:
    diagram = kinetic.phase_diagram(lam=[0.5, 2.0, 8.0], t=np.linspace(0.2, 12, 30), beta=1.0, M=8)
    t = diagram.t
    expected = np.where(
        t < diagram.t_crit[:, None], "U", np.where(t < diagram.t_monotone[:, None], "hump", "primacy")
    )
    assert (diagram.regime == expected).all()
    assert (diagram.t_sufficient < diagram.t_crit).all()
    assert diagram.sigma.shape == (3, 30)
    with pytest.raises(InvalidInput, match="t must be a list"):
        kinetic.phase_diagram(lam=[1.0], t=2.0, beta=1.0, M=8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": -1.0}, r"lam must be >= 0, got -1\.0"),
        ({"beta": 0.0}, r"beta must be in \(0, 700\], got 0\.0"),
        ({"t": [1.0, float("nan")]}, "t must be finite, got nan"),
        ({"t": 0.0}, r"t must be > 0, got 0\.0"),
        ({"M": 0.5}, r"M must be >= 1, got 0\.5"),
    ],
)
def test_outside_the_domain(change: dict[str, object], message: str) -> None:
    arguments = {"lam": 1.0, "beta": 1.0, "t": 1.0, "M": 8.0, **change}
    with pytest.raises(InvalidInput, match=message):
        kinetic.interior_minimum(**arguments)  # type: ignore[arg-type]


def test_heads_are_checked() -> None:
    for heads, message in (
        ([], "heads must be one or more"),
        ([(1.0, 2.0)], "heads must be one or more"),
        ([(0.0, 1.0, 1.0)], "weight must not be 0"),
        ([(1.0, -1.0, 1.0)], "lam must be >= 0"),
        ([(1.0, 1.0, 0.0)], "beta must be in"),
    ):
        with pytest.raises(InvalidInput, match=message):
            kinetic.extrema(heads=heads, t=1.0, M=8)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="t must be > 0"):
        kinetic.extrema(heads=[(1.0, 1.0, 1.0)], t=0.0, M=8)


def test_extrema_close_together_are_told_apart() -> None:
    """Next to the end of the hump the maximum and the minimum merge; 1e-9 before it they are still found."""
    end = float(kinetic.t_monotone(5.0, 1.0, 8))
    found = kinetic.extrema(heads=[(1.0, 5.0, 1.0)], t=end * (1 - 1e-9), M=8)
    assert len(found) == 2
    assert found[1].sigma - found[0].sigma < 1e-3


def test_no_onset_is_said() -> None:
    with pytest.raises(NotApplicable, match="m_1 m_3"):
        kinetic.hump_onset(700.0, 2.9)


@pytest.mark.parametrize("t", [1e-200, 1e-160, 1e-91])
def test_shapes_at_times_too_small_for_float64_are_refused(t: float) -> None:
    with pytest.raises(NotApplicable, match=r"rate times t must be at least 1e-90, got .*; use a larger t or beta"):
        kinetic.interior_minimum(lam=1.0, beta=1.0, t=t, M=8)
    with pytest.raises(NotApplicable, match="rate times t must be at least 1e-90"):
        kinetic.extrema(heads=[(1.0, 1.0, 1.0)], t=t, M=8)


def test_shapes_at_the_smallest_rates_are_those_of_the_first_order() -> None:
    r"""At small c: \(\psi_c \approx c\), so \(P \approx c k (1 + cY/2)\), least where \(\sigma_0 = c/(2\lambda)\)."""
    rate = 0.5651591039924851  # I_1(1)
    found = kinetic.interior_minimum(lam=1.0, beta=1.0, t=2e-90, M=1)  # weight of mode 2 against mode 1: e^-14.8
    (seen,) = kinetic.extrema(heads=[(1.0, 1.0, 1.0)], t=2e-90, M=1)
    assert found.sigma == pytest.approx(rate * 2e-90 / 2, rel=1e-6)
    assert seen.sigma == pytest.approx(float(found.sigma), rel=1e-9)
    assert kinetic.t_monotone(1e-300, 1.0, 8) == pytest.approx(float(kinetic.t_crit(1e-300, 1.0, 8)), rel=1e-14)


def test_decays_and_concentrations_have_an_end() -> None:
    for lam in (1e9, 1e300):
        with pytest.raises(InvalidInput, match="lam must be at most 100000, got"):
            kinetic.extrema(heads=[(1.0, lam, 1.0)], t=1.0, M=8)
        with pytest.raises(InvalidInput, match="lam must be at most 100000, got"):
            kinetic.interior_minimum(lam=lam, beta=1.0, t=1.0, M=8)
    for beta in (1e-300, 1e-320):
        with pytest.raises(InvalidInput, match="beta must be at least 1e-100, got"):
            kinetic.t_crit(1.0, beta, 8)
        with pytest.raises(InvalidInput, match="beta must be at least 1e-100, got"):
            kinetic.t_sufficient(1.0, beta, 8)
    (steep,) = kinetic.extrema(heads=[(1.0, 1e4, 1.0)], t=1.0, M=8)
    assert steep.sigma == pytest.approx(float(kinetic.interior_minimum(lam=1e4, beta=1.0, t=1.0, M=8).sigma), rel=1e-9)
