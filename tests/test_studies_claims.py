"""Numbers that decide claims about the birth paper's own law and its appendix, each by a second route."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
import catenary.reproduce.studies
from catenary.profile import Profile
from catenary.reproduce.experiment import read_experiments
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.studies.context_scaling import peak_over_trough
from catenary.reproduce.studies.continuous_limit import law_shape
from catenary.reproduce.studies.proof_steps import layer_gap, layer_terms
from catenary.study.observer import Silent


def run(study: str, settings: Mapping[str, Any]) -> Finding:
    return STUDIES[study](settings, Silent())


def cesaro(length: int) -> Any:
    return np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]


def test_the_papers_law_is_named_as_networks_are_and_falls() -> None:
    u, primacy, step = law_shape(300, 6, [0.1, 0.3])
    assert (u.value, primacy.value) == (0, 1)
    assert "primacy + last-token spike" in u.meaning
    rows = [np.linalg.matrix_power((1 - a) * np.eye(300) + a * cesaro(300), 6)[-1] for a in (0.1, 0.3)]
    assert step.value == pytest.approx(max((np.diff(row[:-1]) / row[:-2]).max() for row in rows), rel=1e-6)
    assert step.value < 0
    words = [ct.describe(Profile(row)).verdict.words for row in rows]
    assert words == ["primacy + last-token spike"] * 2
    # Without residuals there is no spike, and a share counts the mixings one by one.
    assert [reading.value for reading in law_shape(300, 6, [0.3, 1.0])][:2] == [0, 0.5]


def test_the_middle_alone_falls_with_no_factorial() -> None:
    depths = [2, 4, 8, 16]
    found = run("dead-zone", {"depths": depths, "mixing": [0.3], "network_depths": [2, 3], "width": 32, "length": 20,
                              "nets": 2, "windows": 1, "probes": 1, "variance": 0.1})  # fmt: skip
    # The density as the derivative of the Poisson-like distribution: quadrature of one layer after the other.
    middle = [_composed(math.log(2), depth, 0.3) for depth in depths]
    logs = np.log([math.factorial(depth - 1) for depth in depths])
    assert found["law alone, alpha = 0.3"].value == pytest.approx(np.polyfit(logs, np.log(middle), 1)[0], abs=1e-4)


def _composed(t: float, depth: int, mixing: float, nodes: int = 4000) -> float:
    """Density at x = e^-t by the trapezoid rule: one layer adds mixing times the integral over what came before."""
    grid = np.linspace(0, t, nodes)
    density, spike = np.zeros(nodes), 1.0
    for _ in range(depth):
        running = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)]) * (grid[1] - grid[0])
        density, spike = (1 - mixing) * density + mixing * (spike + running), (1 - mixing) * spike
    return float(density[-1])


def test_peak_over_trough_by_hand_on_every_definition() -> None:
    values = ct.predict(ct.read_config("gpt2"), length=40, method="exact").values
    found = {reading.name: reading.value for reading in peak_over_trough("law", values)}
    middle = math.exp(np.log(values[18:22]).mean())
    assert found["law, first over middle"] == pytest.approx(values[0] / middle)
    assert found["law, last over middle"] == pytest.approx(values[39] / middle)
    assert found["law, last over second last"] == pytest.approx(values[39] / values[38])
    assert found["law, highest over lowest"] == pytest.approx(max(values) / min(values))
    assert found["law, body, highest over lowest"] == pytest.approx(values[1] / values[38])
    shape = ct.describe(ct.predict(ct.read_config("gpt2"), length=40, method="exact"))
    assert found["law, blocks"] == pytest.approx(shape["peak/trough"].value)


def test_a_layers_jacobian_by_automatic_differentiation() -> None:
    rng = np.random.default_rng(3)
    stream = rng.standard_normal((4, 5))
    query, key, value = (rng.standard_normal((5, 2)) for _ in range(3))
    out = rng.standard_normal((2, 5))

    def layer(h: torch.Tensor) -> torch.Tensor:
        q, k, v = (h @ torch.from_numpy(w) for w in (query, key, value))
        mixed = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        return h + mixed @ torch.from_numpy(out)

    seen = torch.func.jacrev(layer)(torch.from_numpy(stream)).numpy()
    terms = layer_terms(stream, query, key, value, out)
    assert np.einsum("jaib->ibja", sum(terms)) == pytest.approx(seen, abs=1e-12)
    assert np.abs(terms[2]).max() > 0.1  # the identity is not one without the score path
    assert layer_gap(4) < 1e-13


def test_every_claim_of_these_studies_has_its_reading_and_every_meaning_its_noun() -> None:
    """At the size of the configs for the cheap ones: no claim asks for a number that the study does not give."""
    experiments = read_experiments("2603.10123")
    for name in ("continuous_limit", "pure_causal", "proof_steps"):
        experiment = experiments[name]
        found = run(experiment.study, experiment.settings)
        names = {reading.name for reading in found.readings}
        assert {claim.reading for claim in experiment.claims} <= names
        for reading in found.readings:
            assert not reading.meaning.startswith(("of ", "from ", "in ", "at ", "the same")), reading.name
