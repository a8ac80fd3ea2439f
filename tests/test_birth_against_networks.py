"""The birth law against real untrained networks of published sizes: absolute values, nothing fitted.

One window scatters: at L = 512 and 4 probes each, the eight windows of network 0 gave a Wasserstein distance from the
law of .0036 to .0241 (.0042 to .0205 without RoPE), all eight pooled .0029 (.0026). Windows are therefore pooled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import catenary as ct
from catenary.sample import Sample
from catenary.text.windows import Windows

LENGTH = 512
pytestmark = pytest.mark.slow


def measure(model: str, windows: Windows, *, probes: int, rope: bool = True, dtype: str = "float32") -> Sample:
    network = ct.load(model, seed=0, rope=rope, vocabulary=16, dtype=dtype)
    return ct.measure_jacobian(network, windows, probes=probes, seed=0)


@pytest.mark.parametrize("rope", [True, False])
def test_qwen2_random_vectors(rope: bool) -> None:
    """Six windows of one network; the paper's law with its best mixing is far off at the last token."""
    seen = measure("qwen2-0.5b", ct.random_windows(LENGTH, 6, 0), probes=1, rope=rope)
    found = ct.compare(ct.predict(ct.read_config("qwen2-0.5b"), length=LENGTH), seen)
    print(f"Qwen2-0.5B rope={rope}: W1 {found.w1:.4f}, median {found.median_absolute:.4f}")
    assert found.w1 <= 0.012
    assert found.median_absolute <= 0.05
    paper = ct.fit_cesaro(seen.profile(), 24, by="w1")
    ratio = np.log10(paper.profile().values / seen.profile().values)
    print(f"the paper's law, best mixing {paper.mixing:.4f}: last token {ratio[-1] - np.median(ratio):+.2f} dex")
    assert ratio[-1] - np.median(ratio) > 0.5


def test_qwen2_zipf_tokens_with_ids() -> None:
    windows = replace(ct.zipf_windows(LENGTH, 2, 0), vectors="gaussian")
    seen = measure("qwen2-0.5b", windows, probes=1)
    found = ct.compare(ct.predict(ct.read_config("qwen2-0.5b"), length=LENGTH, ids=windows.ids), seen)
    print(f"Qwen2-0.5B zipf: W1 {found.w1:.4f}", *(f"{r.name} {r.value:+.3f}" for r in found.regions))
    assert found.w1 <= 0.025
    assert all(abs(region.value) <= 0.06 for region in found.regions)


def test_gpt2_random_vectors() -> None:
    seen = measure("gpt2", ct.random_windows(LENGTH, 12, 0), probes=1)
    found = ct.compare(ct.predict(ct.read_config("gpt2"), length=LENGTH), seen)
    print(f"GPT-2: W1 {found.w1:.4f}, median {found.median_absolute:.4f}")
    assert found.w1 <= 0.012
    assert found.median_absolute <= 0.03
