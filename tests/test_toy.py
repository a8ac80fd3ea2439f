"""The numpy network gives what transformers gives on the same weights, and what the architecture says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import NotApplicable
from catenary.models.toy_weights import copy_toy, draw_toy
from tiny_models import TINY, token_windows

ROUNDING = 2e-6
"""transformers computes norms and rotary angles in float32 inside a float64 network."""


def perturbed(family: str, rope: bool) -> Any:
    """A float64 network whose norms and biases are not at their trivial initial values."""
    model = ct.load(TINY[family], seed=1, dtype="float64", rope=rope)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.module.parameters():
        if parameter.ndim == 1:
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


@pytest.mark.parametrize(("family", "rope"), [*((f, True) for f in TINY), ("llama", False), ("qwen3", False)])
def test_stream_and_jacobian_agree_with_transformers(family: str, rope: bool) -> None:
    model = perturbed(family, rope)
    toy = copy_toy(model.architecture, model.module.state_dict(), rope=rope)
    windows = token_windows(2, 9)
    vectors = model.embedding_weight.numpy()[windows.ids]
    ones = torch.ones(windows.ids.shape, dtype=torch.long)
    theirs = model.anatomy.stream(torch.from_numpy(vectors), ones).numpy()
    np.testing.assert_allclose(toy.stream(vectors), theirs, rtol=0, atol=ROUNDING * abs(theirs).max())
    ours = np.array([(toy.jacobian(window) ** 2).sum((1, 2)) for window in vectors])
    measured = ct.measure_jacobian(model, windows, method="exact", batch_size=2)
    np.testing.assert_allclose(measured.energy[0, 0, 0, :, 0], ours, rtol=ROUNDING)


def test_rotary_coding_matters_here() -> None:
    """Otherwise the comparison above could not see it."""
    model = perturbed("llama", True)
    vectors = model.embedding_weight.numpy()[token_windows(1, 9).ids[0]]
    state = model.module.state_dict()
    on, off = (copy_toy(model.architecture, state, rope=rope).stream(vectors) for rope in (True, False))
    assert abs(on - off).max() > 1e-3


def test_complex_step_equals_finite_differences() -> None:
    toy = draw_toy(ct.read_config(TINY["qwen2"]), length=5, seed=0)
    x = np.random.default_rng(0).standard_normal((5, 16))
    bump = np.zeros_like(x)
    bump[1, 3] = 1e-5
    difference = (toy.stream(x + bump) - toy.stream(x - bump))[-1] / 2e-5
    np.testing.assert_allclose(toy.jacobian(x)[1, :, 3], difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("family", ["qwen2", "gpt2"])
def test_drawn_weights_have_the_stds_of_the_architecture(family: str) -> None:
    architecture = ct.read_config(TINY[family])
    blocks = draw_toy(architecture, length=8, seed=0).blocks
    for name, std in (
        ("query", architecture.layers[0].attention.query_key_std),
        ("output", architecture.layers[0].attention.output_std),
        ("down", architecture.layers[0].feed_forward.output_std),
    ):
        drawn = np.concatenate([getattr(block, name).weight.ravel() for block in blocks])
        assert drawn.std() == pytest.approx(std, rel=4 / np.sqrt(2 * drawn.size))


def test_unknown_tensors_are_refused() -> None:
    with pytest.raises(NotApplicable, match="llama, mistral"):
        copy_toy(ct.read_config(TINY["llama"]), {"transformer.blocks.0.weight": np.ones(2)})
