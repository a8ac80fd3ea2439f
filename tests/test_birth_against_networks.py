"""The birth law against real untrained networks of published sizes: absolute values, nothing fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import catenary as ct
from catenary.comparison import Comparison
from catenary.sample import Sample
from catenary.text.windows import Windows

LENGTH = 512
pytestmark = pytest.mark.slow


def measure(model: str, windows: Windows, *, probes: int, rope: bool = True) -> Sample:
    network = ct.load(model, seed=0, rope=rope, vocabulary=16)
    return ct.measure_jacobian(network, windows, probes=probes, seed=0)


def regions(comparison: Comparison) -> dict[str, float]:
    return {region.name: region.error for region in comparison.regions}


@pytest.fixture(scope="module")
def qwen() -> ct.Profile:
    return ct.predict(ct.read_config("qwen2-0.5b"), length=LENGTH)


@pytest.mark.parametrize("rope", [True, False])
def test_qwen2_random_vectors(qwen: ct.Profile, rope: bool) -> None:
    """One network, one sequence, four probes; a fitted Cesàro law is far off at the last token."""
    seen = measure("qwen2-0.5b", ct.random_windows(LENGTH, 1, 0), probes=4, rope=rope)
    found = ct.compare(qwen, seen)
    print(f"Qwen2-0.5B rope={rope}: W1 {found.w1:.4f}, median {found.median_absolute:.4f}")
    assert found.w1 <= 0.012
    assert found.median_absolute <= 0.05
    paper = ct.fit_cesaro(seen.profile(), 24, by="w1")
    fitted = paper.profile().values / seen.profile().values
    last = np.log10(fitted[-1] / np.median(fitted))
    print(f"paper's law, best mixing {paper.mixing:.4f}: last token {last:+.2f} dex")
    assert last > 0.5


def test_qwen2_zipf_tokens_with_ids() -> None:
    windows = replace(ct.zipf_windows(LENGTH, 1, 0), vectors="gaussian")
    seen = measure("qwen2-0.5b", windows, probes=4)
    found = ct.compare(ct.predict(ct.read_config("qwen2-0.5b"), length=LENGTH, ids=windows.ids), seen)
    print(f"Qwen2-0.5B zipf: W1 {found.w1:.4f}, regions {regions(found)}")
    assert found.w1 <= 0.025
    assert all(abs(error) <= 0.06 for error in regions(found).values())


def test_gpt2_random_vectors() -> None:
    seen = measure("gpt2", ct.random_windows(LENGTH, 12, 0), probes=1)
    found = ct.compare(ct.predict(ct.read_config("gpt2"), length=LENGTH), seen)
    print(f"GPT-2: W1 {found.w1:.4f}, median {found.median_absolute:.4f}")
    assert found.w1 <= 0.012
    assert found.median_absolute <= 0.03
