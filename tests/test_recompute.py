"""Recomputing layers changes no bit of a gradient, lowers what autograd keeps, and leaves the network as it was."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

import catenary as ct
from catenary.errors import NotApplicable
from catenary.measure.kept import keeping
from catenary.models.anatomy import pilot_vectors
from catenary.models.recompute import recomputing
from catenary.models.undisturbed import undisturbed
from families.tiny import TINY as DESCRIBED
from families.tiny import type_of
from tiny_models import TINY, token_windows

SEVERAL = ["falcon", "bloom", "gpt_neox", "gemma2", "gpt_oss", "mixtral", "deepseek_v3", "opt"]


def kept_bytes(model: ct.Model, length: int, *, recompute: bool) -> int:
    vectors = pilot_vectors(model.anatomy.embedding, length).requires_grad_(True)
    mask = torch.ones((1, length), dtype=torch.long)
    again = recomputing(model.anatomy) if recompute else nullcontext()
    with undisturbed(model.module), keeping(model.module) as kept, again:
        model.anatomy.stream(vectors.clone(), mask)
    return kept.bytes


@pytest.mark.parametrize("family", list(TINY))
def test_recomputed_gradients_are_the_same_bits(family: str) -> None:
    model = ct.load(TINY[family])
    plain = ct.measure_jacobian(model, token_windows(), probes=3, batch_size=2)
    again = ct.measure_jacobian(model, token_windows(), probes=3, batch_size=2, recompute=True)
    assert (plain.energy == again.energy).all()


@pytest.mark.parametrize("name", [name for name in DESCRIBED if name in SEVERAL])
@pytest.mark.filterwarnings("ignore:.*constant")
def test_other_kinds_of_layer_are_recomputed_too(name: str) -> None:
    config = {**DESCRIBED[name].config, "model_type": type_of(name)}
    model = ct.load(config, vocabulary=16)
    windows = ct.random_windows(16, 1, 0)
    plain = ct.measure_jacobian(model, windows, probes=2)
    assert (plain.energy == ct.measure_jacobian(model, windows, probes=2, recompute=True).energy).all()


def test_what_is_kept_is_the_input_of_each_layer() -> None:
    """4 d bytes per token and layer, and a part that does not grow with depth: no activations of any layer."""
    deep, shallow = (
        ct.load({**TINY["llama"], "num_hidden_layers": depth, "hidden_size": 64, "intermediate_size": 256})
        for depth in (10, 4)
    )
    grown = kept_bytes(deep, 96, recompute=True) - kept_bytes(shallow, 96, recompute=True)
    assert grown == 6 * 4 * 64 * 96
    assert kept_bytes(deep, 96, recompute=True) < 0.1 * kept_bytes(deep, 96, recompute=False)


def test_checkpointing_of_transformers_saves_nothing_in_eval() -> None:
    model = ct.load(TINY["llama"])
    before = kept_bytes(model, 32, recompute=False)
    model.module.activation_checkpointing_enable()
    assert kept_bytes(model, 32, recompute=False) == before


def test_layers_run_once_more_per_backward_pass() -> None:
    model = ct.load(TINY["gpt2"])
    runs: list[int] = []
    handle = model.anatomy.layers[0].ln_1.register_forward_hook(lambda *_: runs.append(1))  # type: ignore[union-attr]
    ct.measure_jacobian(model, token_windows(1), probes=5, recompute=True)
    handle.remove()
    assert len(runs) == 1 + 5


def test_every_forward_is_put_back() -> None:
    model = ct.load(TINY["llama"])
    first, second = model.anatomy.layers

    def wrapped(*arguments: Any, **named: Any) -> Any:  # what accelerate puts on a dispatched module
        return type(first).forward(first, *arguments, **named)

    first.forward = wrapped
    with pytest.raises(RuntimeError, match="in between"), recomputing(model.anatomy):
        raise RuntimeError("in between")
    assert first.forward is wrapped
    assert "forward" not in vars(second)


def test_a_layer_that_changes_when_it_runs_again_is_refused() -> None:
    model = ct.load(TINY["llama"])
    layer, runs = model.anatomy.layers[0], [0]
    plain = layer.forward

    def moody(*arguments: Any, **named: Any) -> Any:
        runs[0] += 1
        result = plain(*arguments, **named)
        return result * torch.ones(16).sin() if runs[0] % 2 else result

    layer.forward = moody
    with pytest.raises(NotApplicable, match="recompute does not hold for LlamaModel: a layer gives other"):
        ct.measure_jacobian(model, token_windows(1), probes=1, recompute=True)


def test_a_layer_that_is_not_run_as_a_module_is_refused() -> None:
    model = ct.load(TINY["llama"])
    with pytest.raises(NotApplicable, match="layer 0 is not run as a module"), recomputing(model.anatomy):
        pass
