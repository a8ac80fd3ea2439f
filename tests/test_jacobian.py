"""The measurement: exact against autograd, unbiased, independent of batching, safe on a user's own network."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import InvalidInput
from catenary.measure.feed import prepare
from catenary.measure.methods import METHODS
from catenary.measure.precision import effective_rank, probe_error
from catenary.models.model import adopt
from oracles.jacobian import dense_jacobian
from tiny_models import QWEN2_LIKE, TINY, token_windows, vector_windows

NORMS = {"llama": "norm", "gpt2": "ln_f", "qwen3": "norm"}


@pytest.mark.parametrize("family", list(NORMS))
def test_exact_equals_the_dense_jacobian(family: str) -> None:
    model = ct.load(TINY[family], dtype="float64")
    windows = token_windows(2)
    sample = ct.measure_jacobian(model, windows, method="exact")
    assert sample.exact
    assert sample.energy.shape == (1, 1, 1, 2, 1, 12)
    for index, ids in enumerate(windows.ids):
        dense = dense_jacobian(model.module, NORMS[family], model.embedding_weight.numpy()[ids])
        np.testing.assert_allclose(sample.energy[0, 0, 0, index, 0], (dense**2).sum((1, 2)), rtol=1e-10)


def test_scalar_is_the_gradient_of_the_norm_and_has_its_own_quantity() -> None:
    model = ct.load(TINY["llama"], dtype="float64")
    windows = token_windows(1)
    sample = ct.measure_jacobian(model, windows, method="scalar")
    assert sample.quantity.name == "scalar-gradient"
    vectors = model.embedding_weight.numpy()[windows.ids[0]]
    ones = torch.ones((1, 12), dtype=torch.long)
    last = model.anatomy.stream(torch.from_numpy(vectors)[None], ones)[0, -1].numpy()
    gradient = np.einsum("joi,o->ji", dense_jacobian(model.module, "norm", vectors), last / np.linalg.norm(last))
    # transformers computes its norms in float32, whatever the network's type
    np.testing.assert_allclose(sample.energy[0, 0, 0, 0, 0], (gradient**2).sum(1), rtol=1e-6)


def test_probes_are_unbiased() -> None:
    model, windows = ct.load(TINY["llama"], dtype="float64"), token_windows(1)
    exact = ct.measure_jacobian(model, windows, method="exact").energy[0, 0, 0, 0, 0]
    energy = ct.measure_jacobian(model, windows, probes=600).energy[0, 0, 0, 0]
    error = energy.std(0, ddof=1) / math.sqrt(600)
    z = (energy.mean(0) - exact) / error
    assert abs(z).max() < 3.5  # 12 correlated positions
    assert (error / exact).max() < 0.05  # the test can see 20 %


def test_batch_order_and_number_of_probes_change_nothing() -> None:
    model, windows = ct.load(TINY["qwen3"], seed=2, dtype="float64"), token_windows(5)
    whole = ct.measure_jacobian(model, windows, probes=4, seed=9).energy[0, 0, 0]
    np.testing.assert_allclose(
        ct.measure_jacobian(model, windows, probes=4, seed=9, batch_size=2).energy[0, 0, 0], whole, rtol=1e-9
    )
    np.testing.assert_array_equal(ct.measure_jacobian(model, windows, probes=2, seed=9).energy[0, 0, 0], whole[:, :2])
    part = ct.measure_jacobian(model, windows, probes=4, seed=9, sequences=[3, 1])
    np.testing.assert_array_equal(part.energy[0, 0, 0], whole[[3, 1]])
    assert not np.isclose(ct.measure_jacobian(model, windows, probes=4, seed=8).energy[0, 0, 0], whole).any()


def test_gaussian_vectors_do_not_depend_on_the_batch_and_repeat_with_the_ids() -> None:
    model = ct.load(TINY["llama"], dtype="float64")
    windows = vector_windows(3)
    whole = ct.measure_jacobian(model, windows, probes=2).energy[0, 0, 0]
    batched = ct.measure_jacobian(model, windows, probes=2, batch_size=3).energy[0, 0, 0]
    np.testing.assert_allclose(batched, whole, rtol=1e-9)
    ids = np.array([[9, 4, 9, 7, 4]])
    feed = prepare(model, ct.Windows(ids, "zipf", "gaussian", 1))
    vectors = feed.vectors([0])[0].numpy()
    # vectors follow first occurrence, so that renaming the tokens changes nothing
    renamed = prepare(model, ct.Windows(np.array([[1, 2, 1, 0, 2]]), "zipf", "gaussian", 1))
    np.testing.assert_array_equal(renamed.vectors([0])[0].numpy(), vectors)
    assert np.array_equal(vectors[0], vectors[2])
    assert np.array_equal(vectors[1], vectors[4])
    assert not np.isclose(vectors[0], vectors[1]).any()
    long = prepare(ct.load(TINY["llama"]), vector_windows(1, 2000)).vectors([0])
    assert float(long.std()) == pytest.approx(0.2, rel=0.02)


def test_sdpa_equals_eager() -> None:
    windows = token_windows(2, 20)
    sdpa, eager = (ct.load(TINY["llama"], attention=name) for name in ("sdpa", "eager"))
    assert (sdpa.attention, eager.attention) == ("sdpa", "eager")
    np.testing.assert_allclose(
        ct.measure_jacobian(sdpa, windows).energy, ct.measure_jacobian(eager, windows).energy, rtol=1e-5
    )


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("pads", [1, 7])
def test_left_and_right_padding_leave_the_profile(family: str, pads: int) -> None:
    model, windows = ct.load(TINY[family], dtype="float64"), token_windows(2)
    plain = ct.measure_jacobian(model, windows, probes=2).energy
    fill, keep = np.full((2, pads), 3), np.ones((2, 12), dtype=int)
    for ids, mask in (
        (np.hstack([fill, windows.ids]), np.hstack([0 * fill, keep])),
        (np.hstack([windows.ids, fill]), np.hstack([keep, 0 * fill])),
        # one row padded left, the other right
        (
            np.vstack([np.r_[fill[0], windows.ids[0]], np.r_[windows.ids[1], fill[1]]]),
            np.vstack([np.r_[0 * fill[0], keep[0]], np.r_[keep[1], 0 * fill[1]]]),
        ),
    ):
        padded = ct.measure_jacobian(model, ids, probes=2, attention_mask=mask, batch_size=2)
        assert padded.length == 12
        np.testing.assert_allclose(padded.energy, plain, rtol=1e-5)
    if family == "gpt2":  # without the mask the pads are tokens, and the profile is another one
        shifted = ct.measure_jacobian(model, np.hstack([fill, windows.ids]), probes=2).energy[..., pads:]
        assert abs(np.sqrt(shifted / plain) - 1).max() > 0.01


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (np.ones((2, 11), int), "shape of the ids"),
        (np.full((2, 12), 2), "0 and 1 only"),
        (np.array([[1] * 12, [0] + [1] * 11]), "same number of tokens"),
        (np.array([[1, 0] + [1] * 10] * 2), "one run of tokens"),
        (np.eye(2, 12, dtype=int), "at least 2 tokens"),
    ],
)
def test_bad_masks(mask: np.ndarray, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ct.measure_jacobian(ct.load(TINY["llama"]), token_windows(2), attention_mask=mask)


def users_own(dtype: torch.dtype = torch.float32) -> Any:
    """A network as a user would hold it: in training mode, with dropout and gradients on."""
    module = ct.load({**TINY["gpt2"], "resid_pdrop": 0.5, "embd_pdrop": 0.5}).module.to(dtype)
    return module.train().requires_grad_(True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_users_network_is_left_as_found(dtype: torch.dtype) -> None:
    module = users_own(dtype)
    module.transformer.h[0].eval()
    module.transformer.wte.weight.requires_grad_(False)
    modes = [part.training for part in module.modules()]
    flags = [parameter.requires_grad for parameter in module.parameters()]
    values = adopt(module).fingerprint
    generator = torch.get_rng_state()
    sample = ct.measure_jacobian(module, token_windows(), probes=2)
    assert [part.training for part in module.modules()] == modes
    assert [parameter.requires_grad for parameter in module.parameters()] == flags
    assert {parameter.dtype for parameter in module.parameters()} == {dtype}
    assert all(parameter.grad is None for parameter in module.parameters())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    assert torch.equal(torch.get_rng_state(), generator)
    assert adopt(module).fingerprint == values
    loaded = ct.load(TINY["gpt2"])
    reference = ct.measure_jacobian(loaded, token_windows(), probes=2)
    tolerance = 1e-6 if dtype == torch.float32 else 0.1
    np.testing.assert_allclose(sample.energy, reference.energy, rtol=tolerance)


def test_restored_after_an_error() -> None:
    module = users_own()
    module.transformer.h[1].mlp.c_fc.weight.data[0, 0] = float("nan")
    with pytest.raises(InvalidInput, match="NaN"):
        ct.measure_jacobian(module, token_windows())
    assert all(part.training for part in module.modules())
    assert all(parameter.requires_grad for parameter in module.parameters())


def test_measuring_inside_no_grad_and_inference_mode() -> None:
    model, windows = ct.load(TINY["llama"]), token_windows()
    expected = ct.measure_jacobian(model, windows, probes=1).energy
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:
            np.testing.assert_array_equal(ct.measure_jacobian(model, windows, probes=1).energy, expected)


def test_a_network_that_writes_into_its_input() -> None:
    config = {
        "model_type": "ctrl", "n_embd": 16, "n_layer": 2, "n_head": 2, "dff": 24, "vocab_size": 50, "n_positions": 64,
        "initializer_range": 0.2,
    }
    sample = ct.measure_jacobian(ct.load(config), token_windows(1), probes=1)
    assert (sample.energy > 0).all()


def test_checkpointing_changes_nothing() -> None:
    module = ct.load(TINY["llama"]).module
    before = ct.measure_jacobian(module, token_windows(), probes=2).energy
    getattr(module, "activation_checkpointing_enable", module.gradient_checkpointing_enable)()
    np.testing.assert_array_equal(ct.measure_jacobian(module, token_windows(), probes=2).energy, before)


def test_refusals() -> None:
    model, own = ct.load(TINY["llama"]), ct.load(TINY["llama"]).module
    gpt2 = ct.load(TINY["gpt2"])
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (model, token_windows(vocabulary=60), {}, r"ids must be < 50"),
        (gpt2, token_windows(1, 65), {}, r"window length must be <= 64"),
        (own, vector_windows(), {}, "adopt"),
        (own, token_windows(), {"target_error": 0.05}, "untrained networks"),
        (model, token_windows(), {"method": "exactly"}, "Did you mean 'exact'"),
        (model, token_windows(), {"probes": 0}, "probes must be an integer >= 1"),
        (model, token_windows(), {"batch_size": True}, "batch_size must be an integer"),
        (model, token_windows(), {"seed": -1}, "seed must be"),
        (model, token_windows(), {"sequences": [0, 0]}, "distinct window indices"),
        (model, token_windows(), {"target_error": 0.01}, "width 16"),
        (model, token_windows(), {"target_error": 0.1, "method": "exact"}, "applies to method 'probes'"),
    ]
    for network, windows, options, words in cases:
        with pytest.raises(InvalidInput, match=words):
            ct.measure_jacobian(network, windows, **options)
    # rotary positions have no end while the weights are untrained
    assert ct.measure_jacobian(model, token_windows(1, 130), probes=1).length == 130
    adopted = adopt(own, weights="untrained")
    assert ct.measure_jacobian(adopted, vector_windows(), probes=1).length == 12


def test_nan_in_one_window_is_refused_with_its_index() -> None:
    module = ct.load(TINY["llama"]).module

    def spoil(_: torch.nn.Module, __: Any, output: torch.Tensor) -> torch.Tensor:
        return torch.where((output == module.model.embed_tokens.weight[7]).all(-1, keepdim=True), torch.nan, output)

    model = adopt(module)
    module.model.embed_tokens.register_forward_hook(spoil)
    windows = ct.Windows(np.array([[1, 2, 3], [4, 7, 5]]))
    with pytest.raises(InvalidInput, match="in window 1, got 'NaN or inf'"):
        ct.measure_jacobian(model, windows)


def test_target_error_sets_the_number_of_probes() -> None:
    model = ct.load({**TINY["llama"], "hidden_size": 128}, seed=0)
    sample = ct.measure_jacobian(model, vector_windows(1, 24), target_error=0.06)
    pilot = ct.measure_jacobian(model, vector_windows(1, 24), probes=4).energy[0, 0, 0]
    rank = effective_rank(pilot)
    assert rank is not None
    assert probe_error(sample.probes, rank) <= 0.06 < probe_error(sample.probes - 1, rank)
    assert sample.provenance["measurement"]["target_error"] == 0.06


def test_progress_and_cost_in_passes() -> None:
    seen: list[tuple[int, int]] = []
    model = ct.load(TINY["llama"])
    ct.measure_jacobian(model, token_windows(3), probes=2, progress=lambda *step: seen.append(step), batch_size=2)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    # one forward pass each: exact costs >= 20 times as much as 8 probes from width 179 on
    assert (1 + METHODS["exact"].passes(256, 8)) / (1 + METHODS["probes"].passes(256, 8)) >= 20


def test_provenance_is_json_and_complete() -> None:
    sample = ct.measure_jacobian(ct.load(TINY["llama"]), token_windows(), probes=2)
    record = json.loads(json.dumps(sample.provenance))
    assert set(record) == {"model", "windows", "measurement"}
    assert record["measurement"]["precision"]["words"].startswith("2 probes")
    assert sample.conditions == ("given",)
    one = ct.measure_jacobian(ct.load(TINY["llama"]), token_windows(), probes=1)
    assert "unknown" in one.provenance["measurement"]["precision"]["words"]


@pytest.mark.slow
def test_probe_error_follows_its_law() -> None:
    """Width 256, 12 layers: rms error over 200 sets of K probes drawn from 320, against 1/sqrt(2Kr) with the true r."""
    model, windows = ct.load(QWEN2_LIKE, seed=0), vector_windows(1, 32)
    vectors = prepare(model, windows).vectors([0])[0].numpy()
    jacobian = dense_jacobian(model.module, "norm", vectors)
    gram = np.einsum("joi,jpi->jop", jacobian, jacobian)
    exact = np.trace(gram, axis1=1, axis2=2)
    true_rank = 1 / np.mean((gram**2).sum((1, 2)) / exact**2)
    energy = ct.measure_jacobian(model, windows, probes=320).energy[0, 0, 0, 0]
    assert effective_rank(energy) == pytest.approx(true_rank, rel=0.15)
    rng = np.random.default_rng(0)
    sizes, errors = (1, 2, 4, 8, 16), []
    for probes in sizes:
        means = np.array([energy[rng.choice(len(energy), probes, replace=False)].mean(0) for _ in range(200)])
        errors.append(math.sqrt(((np.sqrt(means / exact) - 1) ** 2).mean()))
        assert errors[-1] <= 1.15 * probe_error(probes, true_rank)
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)
