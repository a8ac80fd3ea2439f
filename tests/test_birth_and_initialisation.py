"""The prediction follows the initialisation: same config, two stds, many networks, nothing fitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import catenary as ct
from catenary.sample import Sample

LENGTH = 64
CONFIG = {
    "model_type": "llama", "hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 352, "vocab_size": 16, "initializer_range": 0.02,
    "max_position_embeddings": 128,
}  # fmt: skip


def measured(std: float, nets: int = 8) -> Sample:
    windows = ct.random_windows(LENGTH, 4, 0)
    parts = [
        ct.measure_jacobian(ct.load(CONFIG, seed=seed, init_std=std), windows, probes=2).energy for seed in range(nets)
    ]
    one = ct.measure_jacobian(ct.load(CONFIG, init_std=std), windows, probes=2)
    return replace(one, energy=np.concatenate(parts, 2))


@pytest.mark.parametrize("std", [0.02, 0.06])
def test_each_initialisation_has_its_own_prediction(std: float) -> None:
    """Median within .03 dex (the floor of 32 network-window pairs with 2 probes each is about .02)."""
    own = ct.compare(ct.predict(ct.read_config(CONFIG, init_std=std), length=LENGTH), measured(std))
    other = ct.compare(ct.predict(ct.read_config(CONFIG, init_std=0.08 - std), length=LENGTH), measured(std))
    assert own.median_absolute < 0.03
    assert other.median_absolute > 0.3
    assert abs(own.regions[-1].value) < 0.03


def test_networks_spread_around_it() -> None:
    profiles = [np.log10(measured(0.06, nets=1).energy[0, 0, 0].mean((0, 1)))]
    profiles += [
        np.log10(ct.measure_jacobian(ct.load(CONFIG, seed=seed, init_std=0.06), ct.random_windows(LENGTH, 4, 0)).energy)
        .mean((0, 1, 2, 3, 4))
        for seed in range(1, 5)
    ]
    assert 0.005 < np.std(profiles, axis=0).mean() < 0.3
