"""The rollout at one strength for all layers: dense powers, two tokens by hand, and an eigenvalue."""

from __future__ import annotations

import numpy as np
import pytest

from catenary.reproduce.studies import rollout_published


@pytest.mark.parametrize("strength", [0.2, 0.9])
def test_constant_strengths_collapse_as_the_second_eigenvalue(strength: float) -> None:
    settings = {"short": 4, "depths": [80, 120, 160], "constant": strength}
    left, kept = rollout_published.at_constant(settings)
    averaging = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    layer = (1 - strength) * np.eye(4) + strength * averaging
    shares = [np.linalg.matrix_power(layer, depth)[-1, 1:].sum() for depth in (80, 160)]
    assert left.value == pytest.approx(shares[0], rel=1e-10)
    assert kept.value == pytest.approx((shares[1] / shares[0]) ** (1 / 80), rel=1e-10)
    second = np.sort(np.linalg.eigvals(layer).real)[-2]
    assert kept.value == pytest.approx(second, rel=1e-3)


def test_two_tokens_by_hand() -> None:
    left, kept = rollout_published.at_constant({"short": 2, "depths": [5, 7, 9], "constant": 0.2})
    assert left.value == pytest.approx(0.9**5, rel=1e-13)
    assert kept.value == pytest.approx(0.9, rel=1e-13)
