"""Any output position, layer, logits or answer: each against a dense Jacobian taken another way."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import InvalidInput, NotApplicable
from catenary.measure.aim import Aim
from catenary.measure.ends import check_aim
from catenary.measure.feed import prepare
from catenary.measure.jacobian import measure_positions
from catenary.measure.kept import keeping
from catenary.models.recompute import recomputing
from catenary.models.toy_weights import copy_toy
from catenary.models.undisturbed import undisturbed
from oracles.pathways import dense_terms
from tiny_models import TINY, token_windows, vector_windows


def dense_logits(model: Any, ids: np.ndarray, position: int) -> np.ndarray:
    """(L, M, d): the derivative of all logits at one position, of the whole network at once."""
    vectors = model.embedding_weight[torch.from_numpy(ids.copy())].detach()

    def logits(x: torch.Tensor) -> torch.Tensor:
        return model.module(inputs_embeds=x[None], use_cache=False).logits[0, position]

    return torch.autograd.functional.jacobian(logits, vectors).double().numpy().transpose(1, 0, 2)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_position_is_the_last_of_its_prefix(family: str) -> None:
    model, windows = ct.load(TINY[family], dtype="float64"), token_windows(2)
    samples = measure_positions(model, windows, [3, -1, 0, 7], probes=2, batch_size=2)
    for position, sample in zip((3, 11, 0, 7), samples, strict=True):
        prefix = ct.Windows(np.hstack([windows.ids[:, : position + 1], windows.ids[:, :1]]))
        alone = ct.measure_jacobian(model, prefix, probes=2, position=position)
        assert sample.length == position + 1
        assert sample.quantity == alone.quantity
        np.testing.assert_allclose(sample.energy, alone.energy, rtol=1e-6)
        np.testing.assert_allclose(
            ct.measure_jacobian(model, windows, probes=2, position=position).energy, sample.energy, rtol=1e-10
        )
        assert sample.provenance["measurement"]["position"] == position
    assert samples[0].label.endswith(", position 3")
    assert samples[1].label == model.label


def test_positions_count_tokens_not_pads() -> None:
    model, windows = ct.load(TINY["gpt2"]), token_windows(2)
    plain = measure_positions(model, windows, [2, 9], probes=1)
    fill, keep = np.full((2, 3), 5), np.ones((2, 12), int)
    ids, mask = np.hstack([fill, windows.ids]), np.hstack([0 * fill, keep])
    for a, b in zip(plain, measure_positions(model, ids, [2, 9], probes=1, attention_mask=mask), strict=True):
        np.testing.assert_allclose(a.energy, b.energy, rtol=1e-4)


@pytest.mark.parametrize("position", [-1, 4])
def test_logits_and_answers_equal_dense_jacobians(position: int) -> None:
    model, windows = ct.load(TINY["llama"], dtype="float64"), token_windows(2)
    exact = ct.measure_jacobian(model, windows, output="logits", method="exact", position=position, batch_size=2)
    assert exact.quantity.name == "logit-jacobian-norm"
    answers = [7, 31]
    answered = ct.measure_jacobian(model, windows, output=answers, position=position, batch_size=2)
    assert (answered.quantity.name, answered.exact) == ("answer-gradient", True)
    one = ct.measure_jacobian(model, windows, output=7, position=position)
    np.testing.assert_allclose(one.energy[..., 0, :, :], answered.energy[..., 0, :, :], rtol=1e-10)
    stop = exact.length
    for row, ids in enumerate(windows.ids):
        dense = dense_logits(model, ids, position)[:stop]
        np.testing.assert_allclose(exact.energy[0, 0, 0, row, 0], (dense**2).sum((1, 2)), rtol=1e-9)
        logits = model.module(torch.from_numpy(ids[None].copy())).logits[0, position].detach().numpy()
        share = np.exp(logits - logits.max())
        share /= share.sum()
        gradient = dense[:, answers[row]] - np.einsum("m,jmd->jd", share, dense)
        np.testing.assert_allclose(answered.energy[0, 0, 0, row, 0], (gradient**2).sum(1), rtol=1e-6)


def test_probes_of_logits_are_unbiased() -> None:
    model, windows = ct.load(TINY["llama"]), token_windows(1)
    exact = ct.measure_jacobian(model, windows, output="logits", method="exact").energy[0, 0, 0, 0, 0]
    energy = ct.measure_jacobian(model, windows, output="logits", probes=400).energy[0, 0, 0, 0]
    z = (energy.mean(0) - exact) / (energy.std(0, ddof=1) / 20)
    assert abs(z).max() < 3.5


def test_streams_between_layers_equal_dense_products() -> None:
    model = ct.load({**TINY["llama"], "num_hidden_layers": 3, "rms_norm_eps": 1e-6}, dtype="float64")
    windows = token_windows(1, 6)
    vectors = prepare(model, windows).vectors([0])[0].numpy()
    layers = [sum(parts) for parts in dense_terms(copy_toy(model.architecture, model.module.state_dict()), vectors)]
    for source, target in ((None, 1), (None, 3), (0, 2), (1, 2), (1, None), (2, 3)):
        product = np.eye(96)
        for layer in layers[source or 0 : 3 if target is None else target]:
            product = layer @ product
        for position in (-1, 2):
            row = range(6)[position]
            sample = ct.measure_jacobian(
                model, windows, method="exact", source_layer=source, target_layer=target, position=position
            )
            block = product[16 * row : 16 * (row + 1)].reshape(16, 6, 16)
            np.testing.assert_allclose(sample.energy[0, 0, 0, 0, 0], (block**2).sum((0, 2))[: row + 1], rtol=1e-5)
            assert sample.quantity.name == "stream-jacobian-norm"
    through = ct.measure_jacobian(model, windows, method="exact", output="logits", source_layer=0)
    whole = ct.measure_jacobian(model, windows, method="exact", output="logits")
    np.testing.assert_allclose(through.energy, whole.energy, rtol=1e-9)


def test_a_source_layer_takes_what_the_embedding_adds() -> None:
    """GPT-2 adds positions in front of its layers: their stream is another, its derivative is the same."""
    model, windows = ct.load(TINY["gpt2"]), token_windows(2)
    through = ct.measure_jacobian(model, windows, probes=2, source_layer=0)
    np.testing.assert_allclose(through.energy, ct.measure_jacobian(model, windows, probes=2).energy, rtol=1e-5)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.module.modules())


def test_relative_norms_are_in_units_of_the_input() -> None:
    model = ct.load(TINY["gpt2"])
    plain = ct.measure_jacobian(model, vector_windows(), probes=1)
    relative = ct.measure_jacobian(model, vector_windows(), probes=1, relative=True)
    np.testing.assert_allclose(relative.energy, model.embedding_std**2 * plain.energy)
    assert relative.quantity.name == "relative-jacobian-norm"
    with pytest.raises(InvalidInput):
        ct.compare(plain.profile(), relative.profile())
    adopted = ct.measure_jacobian(model.module, token_windows(1), probes=1, relative=True)
    square = float(model.embedding_weight.double().square().mean())
    np.testing.assert_allclose(
        adopted.energy, square * ct.measure_jacobian(model.module, token_windows(1), probes=1).energy, rtol=1e-6
    )
    # inside, each window has its own size
    windows = token_windows(2)
    options: dict[str, Any] = {"probes": 1, "source_layer": 1}
    seen: list[torch.Tensor] = []
    handle = model.anatomy.layers[1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        model.module(torch.from_numpy(windows.ids.copy()))
    handle.remove()
    ratio = (
        ct.measure_jacobian(model, windows, relative=True, **options).energy
        / ct.measure_jacobian(model, windows, **options).energy
    )[0, 0, 0, :, 0, 0]
    np.testing.assert_allclose(ratio, seen[0].square().mean((1, 2)), rtol=1e-5)
    assert ratio[0] != pytest.approx(ratio[1], rel=1e-3)


def test_recomputing_a_position_of_the_logits_gives_the_same_bits() -> None:
    model, windows = ct.load(TINY["llama"]), token_windows(1)
    options: dict[str, Any] = {"probes": 2, "output": "logits", "position": 5}
    np.testing.assert_array_equal(
        ct.measure_jacobian(model, windows, recompute=True, **options).energy,
        ct.measure_jacobian(model, windows, **options).energy,
    )


@pytest.mark.parametrize("target", [1, 2])
def test_recomputing_up_to_a_layer_gives_the_same_bits_and_keeps_less(target: int) -> None:
    """Layers behind the target do not run, and need not."""
    model = ct.load({**TINY["llama"], "num_hidden_layers": 2})
    windows = token_windows(1)
    options: dict[str, Any] = {"probes": 2, "target_layer": target}
    np.testing.assert_array_equal(
        ct.measure_jacobian(model, windows, recompute=True, **options).energy,
        ct.measure_jacobian(model, windows, **options).energy,
    )
    feed = prepare(model, windows)
    ends = check_aim(feed, Aim(target_layer=target))
    kept = []
    for again in (nullcontext(), recomputing(model.anatomy, target)):
        with undisturbed(model.module), again, keeping(model.module) as held:
            ends.forward(feed, [0], np.array([[11]]))
        kept.append(held.bytes)
    assert kept[1] < 0.5 * kept[0]


def test_refusals() -> None:
    model, windows = ct.load(TINY["llama"]), token_windows(2)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"position": 12}, r"position must be an integer in -12\.\.11"),
        ({"position": True}, "position must be"),
        ({"output": "logit"}, "Did you mean 'logits'"),
        ({"output": 50}, r"token ids in 0\.\.49"),
        ({"output": [1, 2, 3]}, "one for each of the 2 windows"),
        ({"source_layer": 2}, r"source_layer must be in 0\.\.1 for 2 layers"),
        ({"target_layer": 0}, r"target_layer must be in 1\.\.2"),
        ({"source_layer": 1, "target_layer": 1}, "must lie behind source_layer 1"),
        ({"output": "logits", "target_layer": 1}, "is for output 'stream'"),
        ({"method": "scalar", "output": "logits"}, "must be 'probes' or 'exact'"),
    ]
    for options, words in cases:
        with pytest.raises(InvalidInput, match=words):
            ct.measure_jacobian(model, windows, **options)
    with pytest.raises(InvalidInput, match="positions must be distinct"):
        measure_positions(model, windows, [1, -11])
    with pytest.raises(NotApplicable, match="no logits over a vocabulary"):
        ct.measure_jacobian(model.module.model, windows, output="logits")
