"""Cost estimates: what they count is counted again another way."""

from __future__ import annotations

import pytest
import torch

import catenary as ct
from catenary.errors import InvalidInput
from catenary.measure import cost, pilot
from catenary.measure.cost import RUNTIME_BYTES, Cost, estimate, forward_operations, kept_floats, layer_parameters
from catenary.measure.pilot import Passes
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
    counted = pilot.run_pilot(model, 64).kept
    assert 4 * kept_floats(model.architecture, 64) == pytest.approx(counted, rel=0.35)
    weights = 4 * sum(parameter.numel() for parameter in model.module.parameters())
    whole = RUNTIME_BYTES + weights + counted * (1 + cost.WORKING / 2)  # two layers: one has half
    assert estimate(model, 64, 1, 1).bytes == pytest.approx(whole, abs=1)


def test_time_from_a_pilot_is_its_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine whose passes take a L + b L^2: windows x (forward + K backward), also beyond the pilot's lengths."""

    def steady(model: object, length: int) -> Passes:
        grown = 0.01 * length + 1e-5 * length**2
        return Passes(length, grown, 2 * grown, 8.0 * length)

    monkeypatch.setattr(pilot, "run_pilot", steady)
    model = ct.load({**TINY["llama"], "max_position_embeddings": 9000})
    for length in (64, 1000, 8000):
        one = 0.01 * length + 1e-5 * length**2
        assert estimate(model, length, 4, 6).seconds == pytest.approx(4 * one * (1 + 6 * 2))
        assert estimate(model, length, 4, 6, recompute=True).seconds == pytest.approx(4 * one * (1 + 6 * 3))


def test_two_points_are_carried_on_without_negative_parts() -> None:
    assert pilot.carried(10, 1.0, 40, 4.0, 80) == pytest.approx(8.0)
    assert pilot.carried(10, 1.0, 40, 16.0, 80) == pytest.approx(64.0)
    assert pilot.carried(10, 3.0, 40, 4.0, 80) == pytest.approx(8.0)  # an overhead: proportional to the last
    assert pilot.carried(10, 0.1, 40, 16.0, 80) == pytest.approx(64.0)  # steeper than a parabola: through the last


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


def test_recomputation_is_told_in_memory_and_time() -> None:
    model = ct.load({**TINY["llama"], "num_hidden_layers": 12, "hidden_size": 64, "intermediate_size": 256})
    plain, again = (estimate(model, 128, 2, 3, recompute=recompute).bytes for recompute in (False, True))
    assert again < plain
    architecture = ct.read_config("gpt2")
    plain, again = (estimate(architecture, 2048, 1, 4, recompute=recompute).bytes for recompute in (False, True))
    assert 4 * kept_floats(architecture, 2048) * 0.7 < plain - again < 4 * kept_floats(architecture, 2048)
