"""Cost estimates: what they count is counted again another way."""

from __future__ import annotations

import pytest
import torch

import catenary as ct
from catenary.errors import InvalidInput
from catenary.measure import cost
from catenary.measure.cost import RUNTIME_BYTES, Cost, estimate, forward_operations, kept_floats, layer_parameters
from tiny_models import TINY, token_windows


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2"])
def test_parameters_are_those_of_the_network(family: str) -> None:
    model = ct.load(TINY[family])
    assert model.architecture is not None
    matrices = sum(w.numel() for layer in model.anatomy.layers for w in layer.parameters() if w.ndim == 2)
    assert layer_parameters(model.architecture) == matrices


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_operations_are_those_torch_counts(family: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = ct.load(TINY[family], attention="eager")
    assert model.architecture is not None
    vectors = torch.zeros((1, 32, 16)) + torch.arange(16)
    with FlopCounterMode(display=False) as counter:
        model.anatomy.stream(vectors, torch.ones((1, 32), dtype=torch.long))
    # torch also counts the outer product of positions and rotary frequencies
    assert counter.get_total_flops() == pytest.approx(forward_operations(model.architecture, 32), rel=0.01)


@pytest.mark.parametrize("family", ["qwen2", "gpt2"])
def test_memory_from_sizes_agrees_with_what_autograd_keeps(family: str) -> None:
    wide = {"qwen2": {"hidden_size": 224, "intermediate_size": 1216, "num_attention_heads": 14}}
    wide["gpt2"] = {"n_embd": 192, "n_head": 3}
    model = ct.load({**TINY[family], **wide[family]})
    assert model.architecture is not None
    counted = estimate(model, 64, 1, 1).bytes - RUNTIME_BYTES
    weights = 4 * sum(parameter.numel() for parameter in model.module.parameters())
    assert 4 * kept_floats(model.architecture, 64) == pytest.approx(counted - weights, rel=0.35)


def test_time_from_a_pilot_is_its_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a machine whose passes take .01 s and .02 s a token: windows x (forward + K backward), also beyond it."""
    steady = staticmethod(lambda model, length: cost._Pilot(length, 0.01 * length, 0.02 * length, 0.0))
    monkeypatch.setattr(cost._Pilot, "run", steady)
    model = ct.load(TINY["llama"])
    for length in (64, 1000):
        assert estimate(model, length, 4, 6).seconds == pytest.approx(4 * length * (0.01 + 6 * 0.02))


def test_a_real_pilot_gives_times_above_zero() -> None:
    assert estimate(ct.load(TINY["llama"]), 64, 4, 6).seconds > 0


def test_cost_grows_with_the_work_and_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_product_speed", lambda *_: 1e11)  # the machine's own speed varies from call to call
    architecture = ct.read_config("gpt2")
    one, many = estimate(architecture, 512, 1, 8), estimate(architecture, 512, 24, 8)
    assert many.seconds > 5 * one.seconds
    assert many.bytes == one.bytes
    assert estimate(architecture, 512, 24, 8, batch_size=4).bytes > many.bytes
    assert (Cost(1.0, 5) + Cost(2.0, 3)) == Cost(3.0, 5)
    assert "about 3 min, 2.0 GiB" in Cost(180.0, 2**31).words
    with pytest.raises(InvalidInput, match="windows must be >= 1"):
        estimate(architecture, 512, 0, 8)
    with pytest.raises(InvalidInput, match="dtype must be one of"):
        estimate(architecture, 512, 1, 8, "int4")


def test_estimate_leaves_the_network_as_it_was() -> None:
    model = ct.load(TINY["gpt2"])
    before = ct.measure_jacobian(model, token_windows(), probes=1).energy
    model.module.train()
    estimate(model, 256, 1, 1)  # longer than the 64 positions: the pilot stays within them
    assert model.module.training
    assert (ct.measure_jacobian(model, token_windows(), probes=1).energy == before).all()
