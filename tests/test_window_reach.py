"""Windows reach as far in the law as in a real network, and not one token further."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import catenary as ct
from catenary.errors import InvalidInput

CONFIG: dict[str, Any] = {
    "model_type": "mistral", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 16, "max_position_embeddings": 64,
    "initializer_range": 0.2, "sliding_window": 4,
}  # fmt: skip
LENGTH = 32


def test_three_windows_of_four_reach_nine_tokens_back() -> None:
    network = ct.load(CONFIG, seed=0)
    seen = ct.measure_jacobian(network, ct.random_windows(LENGTH, 2, 0), probes=2).energy.reshape(4, LENGTH)
    reached = LENGTH - 1 - np.arange(LENGTH) <= 9
    for method in ("exact", "coarse"):
        values = ct.predict(ct.read_config(CONFIG), length=LENGTH, method=method).values
        assert ((values > 0) == reached).all()
    assert ((seen > 0) == reached).all()


def test_a_window_as_long_as_the_context_is_causal_and_none_is_no_window() -> None:
    values = [
        ct.predict(ct.read_config({**CONFIG, "sliding_window": window}), length=LENGTH).values
        for window in (LENGTH, 10 * LENGTH, None)
    ]
    np.testing.assert_allclose(values[0], values[2], rtol=1e-12)
    np.testing.assert_allclose(values[1], values[2], rtol=1e-12)


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="sliding_window"):
        ct.read_config({**CONFIG, "sliding_window": 0})
