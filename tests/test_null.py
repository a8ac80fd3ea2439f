"""The trivial null: its shape, and that the fitted one is the least-squares one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from builders import qwen2_like
from catenary.errors import InvalidInput
from catenary.profile import Profile
from catenary.protocols import TokenLaw
from catenary.quantity import SCALAR_GRADIENT
from catenary.theory.null import NULL, fit_null, null_row


def test_row() -> None:
    by_hand = np.array([12, 6, 4, 3, 24]) / 49
    np.testing.assert_allclose(null_row(5, spike=2.0), by_hand, rtol=1e-15)
    assert null_row(300)[0] == null_row(300)[-1]
    assert null_row(300).sum() == pytest.approx(1, rel=1e-14)


def test_a_null_fits_itself() -> None:
    values = 7.5 / np.arange(1.0, 101.0)
    values[-1] = 40.0
    fitted = fit_null(Profile(values, SCALAR_GRADIENT))
    np.testing.assert_allclose(fitted.values, values, rtol=1e-14)
    assert fitted.quantity is SCALAR_GRADIENT
    assert fitted.provenance["fitted"] == {"scale": pytest.approx(7.5, rel=1e-13), "last": 40.0}


def test_the_scale_is_the_best_one_in_log10() -> None:
    rng = np.random.default_rng(0)
    profile = Profile(np.exp(rng.normal(size=60)), label="noise")
    fitted = fit_null(profile)

    def square_error(log_scale: float) -> float:
        null = 10**log_scale / np.arange(1, 60)
        return float(np.sum(np.log10(null / profile.values[:-1]) ** 2))

    best = minimize_scalar(square_error, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10})
    assert math.log10(fitted.values[0]) == pytest.approx(best.x, abs=1e-6)
    assert fitted.values[-1] == profile.values[-1]
    assert "fitted" in fitted.label
    assert fitted.provenance["fitted_to"] == "noise"


def test_a_factor_on_the_profile_is_a_factor_on_the_null() -> None:
    values = np.random.default_rng(1).uniform(1, 2, 30)
    np.testing.assert_allclose(fit_null(Profile(1e-5 * values)).values, 1e-5 * fit_null(Profile(values)).values)


def test_positions_out_of_reach_do_not_count() -> None:
    values = np.array([0.0, 0.0, 2.0, 1.5, 9.0])
    fitted = fit_null(Profile(values))
    np.testing.assert_allclose(fitted.values, [6, 3, 2, 1.5, 9], rtol=1e-14)
    assert fitted.provenance["positions"] == 2
    with pytest.raises(InvalidInput, match="profile must be > 0 somewhere before the last position"):
        fit_null(Profile(np.array([0.0, 0.0, 1.0])))


def test_theory() -> None:
    profile = NULL.predict(qwen2_like(), 64, TokenLaw(), {"spike": 3.0})
    np.testing.assert_array_equal(profile.values, null_row(64, 3.0))
    assert profile.values[-1] / profile.values[0] == pytest.approx(3, rel=1e-15)
    np.testing.assert_array_equal(NULL.predict(qwen2_like(), 64, TokenLaw(), {}).values, null_row(64, 1.0))


@pytest.mark.parametrize("spike", [0.0, -1.0, math.nan, math.inf, "high"])
def test_refuses_a_spike_that_is_none(spike: object) -> None:
    with pytest.raises(InvalidInput, match="spike must be a finite number > 0"):
        null_row(8, spike)  # type: ignore[arg-type]


def test_refuses_a_single_position() -> None:
    with pytest.raises(InvalidInput, match="length must be a whole number >= 2, got 1"):
        null_row(1)
