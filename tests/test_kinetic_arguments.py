"""Arguments of the kinetic functions that make no sense: one line that names them, no warning, no bare exception."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from catenary import kinetic
from catenary.errors import InvalidInput
from catenary.kinetic.arguments import whole

FOUR, EIGHT = kinetic.Circle(4, 1.0, 1.0), kinetic.gaussian_readout(8)
TWO, THREE = [0.4, 0.5], [0.1, 0.2, 0.3]

MISFITS: dict[str, Callable[[], object]] = {
    "sigma0 .2,., lam .3,.": lambda: kinetic.retrieval_profile(TWO, lam=THREE, beta=1.0, t=1.0, M=8),
    "beta .2,., .*M .3,.": lambda: kinetic.retrieval_slope(0.5, lam=1.0, beta=TWO, t=1.0, M=[1, 2, 3]),
    "t .2,., M .3,.": lambda: kinetic.retrieval_mass(beta=1.0, t=TWO, M=[1, 2, 3]),
    "lam .2,., .*t .3,.": lambda: kinetic.interior_minimum(lam=TWO, beta=1.0, t=THREE, M=8),
    "lam .2,., .*beta .3,.": lambda: kinetic.regime(lam=TWO, beta=THREE, t=1.0, M=8),
    "lam .2,., beta .3,., M ..": lambda: kinetic.t_crit(TWO, THREE, 8),
    "lam .2,., beta .3,., M": lambda: kinetic.t_sufficient(TWO, THREE, 8),
    "lam .2,., beta .3,": lambda: kinetic.t_monotone(TWO, THREE, 8),
    "beta .2,., M .3,.": lambda: kinetic.hump_onset(TWO, [1, 2, 3]),
    "y .2,., c .3,.": lambda: kinetic.psi(TWO, THREE),
    "t .2,., .*sigma0 .3,.": lambda: kinetic.response(TWO, 1.0, THREE, a=1.0, lam=1.0),
    "sigma0 .3,., sigma .2,.": lambda: kinetic.graphon(TWO, THREE, lam=1.0),
    "t .2,., .*lam .3,.": lambda: kinetic.response_mass(TWO, 1.0, 0.5, a=1.0, lam=THREE),
    "t .2,., beta .3,.": lambda: kinetic.cluster_memory(TWO, beta=THREE),
    "sigma0 .2,., lam .3,": lambda: kinetic.log_warp_ratio(1.0, TWO, lam=THREE),
    "distance .2,., lam .3,.": lambda: kinetic.source_at(TWO, lam=THREE),
    "mode .2,., beta .3,.": lambda: kinetic.mode_rate(TWO, THREE),
    "mode .2,., M .3,.": lambda: kinetic.mode_weight(TWO, [1, 2, 3]),
    "sigma .2,., lam .3,.": lambda: kinetic.warp(TWO, lam=THREE),
    "sigma0 .2,., .*c .3,.": lambda: kinetic.positional_response(TWO, c=THREE, kernel=kinetic.PowerLaw(0.2, 2.0)),
    "sigma0 .2,., .*t .3,.": lambda: kinetic.positional_profile(
        TWO, kernel=kinetic.PowerLaw(0.2, 2.0), beta=1.0, t=THREE, M=8
    ),
    "sigma0 .2,., c .3,.": lambda: kinetic.stack_response(TWO, c=THREE, lam=1.0, layers=4),
}


@pytest.mark.parametrize(("shapes", "call"), MISFITS.items(), ids=MISFITS.keys())
def test_shapes_that_do_not_broadcast_are_named(shapes: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput, match=f"^arguments must have shapes that broadcast, got .*{shapes}"):
        call()


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: kinetic.extrema(heads=None, t=1.0, M=8), "heads must be one or more of"),  # type: ignore[arg-type]
    (lambda: kinetic.extrema(heads=[("a", 1, 1)], t=1.0, M=8), "heads must be one or more of"),  # type: ignore[list-item]
    (lambda: kinetic.extrema(heads=[(1, 1, TWO)], t=1.0, M=8), "heads must be one or more of"),  # type: ignore[list-item]
    (lambda: kinetic.heads_profile(0.5, heads=[(1, 1, 1)], t=TWO, M=8), "t must be one number"),  # type: ignore[arg-type]
    (lambda: kinetic.heads_profile(0.5, heads=[(1e308, 1, 1)] * 2, t=2.0, M=8), "the profile must stay below 1e308"),
    (lambda: kinetic.phase_diagram(lam=TWO, t=TWO, beta=TWO, M=8), "beta must be one number"),  # type: ignore[arg-type]
    (lambda: kinetic.interior_minimum(lam=1e5, beta=1.0, t=1e5, M=8), "values must .* regime has the shape without"),
    (lambda: kinetic.psi(1e300, 1e300), "values must stay below 1e308"),
    (lambda: kinetic.response(1e300, 1.0, 0.5, a=1e300, lam=1.0), "values must stay below 1e308"),
    (lambda: kinetic.response_mass(1e300, 1.0, 0.5, a=1e300, lam=1.0), "the mass e"),
    (lambda: kinetic.cluster_response(1e300, 1.0, 0.5, beta=700.0, lam=1.0), "values must stay below 1e308"),
    (lambda: kinetic.retrieval_profile(0.5, lam=1.0, beta=1.0, t=1e300, M=8), "the rates a_n t must stay below"),
    (lambda: kinetic.retrieval_mass(beta=1.0, t=1e308, M=8), "the rates a_n t must stay below"),
    (lambda: kinetic.retrieval_curvature(0.5, lam=1e200, beta=1.0, t=1.0, M=8), "values must stay below 1e308"),
    (lambda: kinetic.interior_minimum(lam=1.0, beta=1.0, t=1e300, M=8), "the rates a_n t must stay below"),
    (lambda: kinetic.correlate(FOUR, t=1.0, readout=EIGHT, samples=4, seed="a"), "seed must be a whole number"),  # type: ignore[arg-type]
    (lambda: kinetic.correlate(FOUR, t=1.0, readout=EIGHT, samples=4, seed=-1), "seed must be a whole number"),
    (lambda: kinetic.correlate(FOUR, t=1.0, readout="x", samples=4, seed=0), "readout must be a Readout"),  # type: ignore[arg-type]
    (lambda: kinetic.correlate("c", t=1.0, readout=EIGHT, samples=4, seed=0), "system must be Circle"),  # type: ignore[arg-type]
    (lambda: kinetic.correlate(FOUR, t=1.0, readout=EIGHT, samples=4, seed=0, estimator=3), "estimator must be"),  # type: ignore[arg-type]
    (lambda: kinetic.positional_response(0.5, c=1.0, kernel=np.exp), "kernel must be Exponentials"),  # type: ignore[arg-type]
    (lambda: kinetic.critical_rate(np.exp), "kernel must be Exponentials"),  # type: ignore[arg-type]
    (lambda: kinetic.linear_response(8, c=1.0, kernel=np.exp), "kernel must be Exponentials"),  # type: ignore[arg-type]
    (lambda: kinetic.PowerLaw(TWO, 1.0), "length must be one number"),  # type: ignore[arg-type]
    (lambda: kinetic.depth_coefficient(0.5, c=1e300, lam=1.0, stack="convex"), "the coefficient is known up to"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_makes_no_sense_is_refused_in_one_line(call: Callable[[], object], message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match="^" + message) as error:
            call()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


def test_whole_numbers_are_python_s_or_numpy_s() -> None:
    assert whole("n", np.int64(3), 2) == whole("n", 3, 2, 3) == 3
    for value in (True, 2.0, "3", 1, None):
        with pytest.raises(InvalidInput, match=r"^n must be a whole number of at least 2, got "):
            whole("n", value, 2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"^n must be a whole number in 2..5, got 6; why"):
        whole("n", 6, 2, 5, "why")


def test_numpy_s_whole_numbers_count_everywhere() -> None:
    four = np.int64(4)
    kernel = kinetic.PowerLaw(0.2, 2.0)
    np.testing.assert_array_equal(
        kinetic.linear_response(four, c=1.0, kernel=kernel), kinetic.linear_response(4, c=1.0, kernel=kernel)  # type: ignore[arg-type]
    )
    assert kinetic.Spheres(four, np.int64(2), 1.0, 1.0) == kinetic.Spheres(4, 2, 1.0, 1.0)  # type: ignore[arg-type]
    found = [
        kinetic.correlate(FOUR, t=1.0, readout=EIGHT, samples=2, seed=0, sigma0=0.5, estimator=kinetic.Conditional(m))  # type: ignore[arg-type]
        for m in (12, np.int64(12))
    ]
    np.testing.assert_array_equal(found[0].draws, found[1].draws)


def test_a_system_takes_a_positional_kernel_or_its_weight() -> None:
    angles = np.linspace(0.0, 5.0, 9)
    for kernel in (kinetic.PowerLaw(0.2, 2.0), kinetic.Weighting(lambda x: 1 / (1 + x))):
        whole_kernel = kinetic.PositionalCircle(9, 1.0, kernel)
        np.testing.assert_array_equal(
            whole_kernel.drift(angles), kinetic.PositionalCircle(9, 1.0, kernel.weight).drift(angles)
        )
    exponential = kinetic.PositionalCircle(9, 1.0, kinetic.Exponentials([0.7, 0.3], [1.0, 20.0]))
    circle = kinetic.Circle(9, 1.0, (1.0, 20.0), shares=(0.7, 0.3))
    np.testing.assert_allclose(exponential.drift(angles), circle.drift(angles), atol=1e-13)


def test_systems_given_lists_have_a_hash() -> None:
    given = kinetic.Circle(4, 1.0, [1.0, 2.0], shares=[0.5, 0.5])  # type: ignore[arg-type]
    assert given == kinetic.Circle(4, 1.0, (1.0, 2.0), shares=(0.5, 0.5))
    assert len({given, kinetic.Circle(4, 1.0, np.array([1.0, 2.0]), shares=(0.5, 0.5))}) == 1  # type: ignore[arg-type]
