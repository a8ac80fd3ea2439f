"""The rollout of a real network equals the product of its dense maps, and theory's where attention is uniform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import InvalidInput, NotApplicable
from catenary.measure.feed import prepare
from catenary.measure.rollout import adjoint, measure_rollout
from catenary.measure.strengths import measure_strengths
from catenary.models.load import load
from catenary.models.model import Model, adopt
from catenary.models.top_down import all_calls, calls_top_down, pilot_calls
from catenary.models.undisturbed import undisturbed
from catenary.text.windows import Windows
from families.tiny import TINY as CASES
from families.tiny import type_of
from tiny_models import TINY, token_windows

FLOAT64 = ("llama", "gpt2", "mistral")
OTHERS = ("bloom", "mpt", "gpt_neo", "flint", "gemma2", "deepseek_v3", "opt", "xlm", "laguna")
LENGTH = 20


def dense(model: Model, windows: Windows, index: int, strengths: Any, shares: Any = None) -> np.ndarray:
    """P from whole maps, in float64."""
    feed = prepare(model, windows)
    with undisturbed(model.module):
        calls = all_calls(model.anatomy, feed.vectors([index]), feed.mask([index]))
    product = np.eye(windows.ids.shape[1])
    for number, (call, strength) in enumerate(zip(calls, strengths, strict=True)):
        weights = np.full(call.heads, 1 / call.heads) if shares is None else shares[number]
        maps = call.rows(0, call.length)[0].double().numpy()
        mean = np.einsum("h,hij->ij", weights, maps)
        product = ((1 - strength) * np.eye(len(mean)) + strength * mean) @ product
    return product


def rows(sample: ct.Sample) -> np.ndarray:
    return np.sqrt(sample.energy[0, 0, 0, :, 0])


@pytest.mark.parametrize("name", FLOAT64)
def test_equals_the_product_of_dense_maps(name: str) -> None:
    model = load(TINY[name], dtype="float64")
    windows = token_windows(2, LENGTH)
    strengths = [0.7, 0.2]
    for query in (LENGTH - 1, 9):
        measured = rows(measure_rollout(model, windows, schedule=strengths, query=query))
        for index in range(2):
            np.testing.assert_allclose(measured[index], dense(model, windows, index, strengths)[query], atol=1e-10)


@pytest.mark.parametrize("name", OTHERS)
def test_equals_the_product_of_dense_maps_in_any_type(name: str) -> None:
    model = load({"model_type": type_of(name), **CASES[name].config})
    windows = token_windows(2, LENGTH, vocabulary=16)
    strengths = [0.9, 0.1, 0.5, 0.3]
    measured = rows(measure_rollout(model, windows, schedule=strengths))
    np.testing.assert_allclose(measured[1], dense(model, windows, 1, strengths)[-1], atol=1e-7)
    if name != "flint":
        np.testing.assert_allclose(measured.sum(axis=1), 1, atol=1e-6)
    else:
        assert (measured.sum(axis=1) < 0.98).all()


def test_weights_of_heads_and_batches() -> None:
    model = load(TINY["llama"], dtype="float64")
    windows = token_windows(3, LENGTH)
    shares = np.array([[1, 0, 0, 3], [1, 1, 1, 1.0]])
    measured = rows(measure_rollout(model, windows, schedule=0.5, head_weights=shares, batch_size=2))
    expected = dense(model, windows, 2, [0.5, 0.5], shares / shares.sum(1, keepdims=True))
    np.testing.assert_allclose(measured[2], expected[-1], atol=1e-10)
    part = rows(measure_rollout(model, windows, schedule=0.5, head_weights=shares, sequences=[2]))
    np.testing.assert_allclose(part[0], measured[2], atol=1e-12)


def test_measured_strengths_are_those_of_the_network() -> None:
    model = load(TINY["llama"], dtype="float64")
    windows = token_windows(3, LENGTH)
    sample = measure_rollout(model, windows)
    strengths = measure_strengths(model, windows).values()
    assert sample.provenance["rollout"]["schedule"] == list(strengths)
    np.testing.assert_allclose(rows(sample)[0], dense(model, windows, 0, strengths)[-1], atol=1e-10)


@pytest.mark.parametrize(("name", "schedule"), [("llama", "power:0.8:1"), ("llama", 1.0), ("gpt2", 0.3)])
def test_with_queries_and_keys_at_zero_it_is_the_theory(name: str, schedule: str | float) -> None:
    model = load(TINY[name], dtype="float64")
    with torch.no_grad():
        for part, parameter in model.module.named_parameters():
            if "q_proj" in part or "k_proj" in part:
                parameter.zero_()
            elif "c_attn" in part:
                parameter[..., : 2 * parameter.shape[-1] // 3] = 0
    measured = rows(measure_rollout(model, token_windows(1, LENGTH), schedule=schedule))[0]
    theory = ct.predict(ct.read_config(TINY[name]), length=LENGTH, theory="rollout", schedule=schedule)
    np.testing.assert_allclose(measured, theory.values, atol=1e-12)


def test_padding_is_not_in_the_row() -> None:
    model = load(TINY["gpt2"], dtype="float64")
    ids = token_windows(1, LENGTH).ids
    padded = np.concatenate([np.zeros((1, 5), dtype=ids.dtype), ids], axis=1)
    mask = np.ones_like(padded)
    mask[:, :5] = 0
    plain = rows(measure_rollout(model, ids, schedule=0.4, query=12))
    np.testing.assert_allclose(
        rows(measure_rollout(model, padded, schedule=0.4, query=12, attention_mask=mask)), plain, atol=1e-10
    )


def test_a_users_network_is_left_as_it_was() -> None:
    module = load(TINY["llama"]).module.train().requires_grad_(True)
    measure_rollout(adopt(module), token_windows(1, LENGTH))
    assert module.training
    assert all(parameter.requires_grad for parameter in module.parameters())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


@pytest.mark.parametrize("name", ["llama", "gpt2", "bloom"])
def test_top_down_gives_the_same_maps_as_one_pass(name: str) -> None:
    model = load({"model_type": type_of(name), **CASES[name].config})
    feed = prepare(model, token_windows(2, LENGTH, vocabulary=16))
    given = feed.vectors([0, 1]), feed.mask([0, 1])
    with undisturbed(model.module):
        whole = all_calls(model.anatomy, *given)[::-1]
        again = list(calls_top_down(model.anatomy, *given))
    assert [call.layer for call in again] == [3, 2, 1, 0]
    for a, b in zip(whole, again, strict=True):
        torch.testing.assert_close(a.rows(0, LENGTH), b.rows(0, LENGTH), atol=1e-6, rtol=0)


def test_refusals_name_the_layers() -> None:
    for name, words in (("minimax", r"0 \(MiniMaxLightningAttention\)"), ("diffllama", "several attentions each")):
        model = load({"model_type": type_of(name), **CASES[name].config})
        with pytest.raises(NotApplicable, match=words):
            measure_rollout(model, token_windows(1, LENGTH, vocabulary=16), schedule=0.5)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("schedule", 1.2), ("schedule", [0.5]), ("query", LENGTH), ("head_weights", [1, -1, 1, 1]),
     ("head_weights", [1, 1]), ("compat", "nothing"), ("batch_size", 0)],
)
def test_refuses(argument: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=argument):
        measure_rollout(load(TINY["llama"]), token_windows(1, LENGTH), **{argument: value})


def test_strengths_outside_are_cut_only_when_asked() -> None:
    model, windows = load(TINY["llama"]), token_windows(1, LENGTH)
    cut = measure_rollout(model, windows, schedule=[1.2, 0.5], compat="clipped-strengths")
    np.testing.assert_array_equal(rows(cut), rows(measure_rollout(model, windows, schedule=[1.0, 0.5])))


def test_rows_below_the_smallest_float32_are_kept() -> None:
    model = load(TINY["llama"])
    with undisturbed(model.module):
        call = pilot_calls(model.anatomy)[0]
    row, shares = torch.rand(1, 6, dtype=torch.float64), torch.full((4,), 0.25, dtype=torch.float64)
    torch.testing.assert_close(adjoint(call, 1e-60 * row, shares) * 1e60, adjoint(call, row, shares))
