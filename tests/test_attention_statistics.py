"""Sinks, diagonals and entropies equal those of whole maps, and written sizes those of the output matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from catenary.errors import InvalidInput
from catenary.measure.attention_statistics import measure_attention
from catenary.measure.feed import prepare
from catenary.models.load import load
from catenary.models.top_down import all_calls
from catenary.models.undisturbed import undisturbed
from families.tiny import TINY as CASES
from families.tiny import type_of
from tiny_models import TINY, token_windows

LENGTH = 70
"""More than one block of queries."""


@pytest.mark.parametrize("name", ["llama", "gpt2", "bloom", "mpt"])
def test_equals_whole_maps(name: str) -> None:
    config = TINY[name] if name in TINY else {"model_type": type_of(name), **CASES[name].config}
    length = 60 if name == "gpt2" else LENGTH
    model = load({**config, "vocab_size": 16})
    windows = token_windows(2, length, vocabulary=16)
    seen = measure_attention(model, windows, sinks=(0, 3))
    feed = prepare(model, windows)
    with undisturbed(model.module):
        calls = all_calls(model.anatomy, feed.vectors([1]), feed.mask([1]))
    for layer, call in enumerate(calls):
        maps = call.rows(0, length)[0].double().numpy()
        np.testing.assert_allclose(seen.sink[1, layer], maps[:, :, [0, 3]].sum(-1).mean(-1), atol=1e-6)
        np.testing.assert_allclose(seen.diagonal[1, layer], maps.diagonal(0, 1, 2).mean(-1), atol=1e-6)
        entropy = -(maps * np.log(np.where(maps > 0, maps, 1))).sum(-1).mean(-1)
        np.testing.assert_allclose(seen.entropy[1, layer], entropy, atol=1e-5)
        np.testing.assert_allclose(seen.row_sum[1, layer], 1, atol=1e-6)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_value_weighted_mass_equals_the_written_vectors(name: str) -> None:
    """||A_ij v_j W_O|| summed over all pairs, the slow way, with W_O read from the weights."""
    model = load(TINY[name], dtype="float64")
    windows = token_windows(1, 12)
    seen = measure_attention(model, windows).value_sink[0, 0]
    feed = prepare(model, windows)
    with undisturbed(model.module):
        call = all_calls(model.anatomy, feed.vectors([0]), feed.mask([0]))[0]
    layer = model.anatomy.layers[0]
    matrix = layer.self_attn.o_proj.weight.T if name == "llama" else layer.attn.c_proj.weight
    assert call.value is not None
    value = call.value.repeat_interleave(call.heads // call.value.shape[1], dim=1)[0]
    for head in range(call.heads):
        rows = matrix[head * value.shape[-1] : (head + 1) * value.shape[-1]]
        written = torch.einsum("ij,jd->ijd", call.rows(0, 12)[0, head], value[head] @ rows).norm(dim=-1)
        assert seen[head] == pytest.approx(float(written[:, 0].sum() / written.sum()), rel=1e-6)


def test_uniform_attention_has_known_statistics() -> None:
    model = load(TINY["llama"], dtype="float64")
    with torch.no_grad():
        for name, parameter in model.module.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                parameter.zero_()
    seen = measure_attention(model, token_windows(1, LENGTH), monotonicity=True)
    harmonic = 1 / np.arange(1, LENGTH + 1)
    np.testing.assert_allclose(seen.sink, harmonic.mean(), rtol=1e-12)
    np.testing.assert_allclose(seen.diagonal, harmonic.mean(), rtol=1e-12)
    np.testing.assert_allclose(seen.entropy, np.log(np.arange(1, LENGTH + 1)).mean(), rtol=1e-12)
    assert [part.rate for part in seen.violations] == [0.0, 0.0]


def test_rounding_is_no_violation() -> None:
    rates = [
        [part.rate for part in measure_attention(load(TINY["llama"], dtype=kind), token_windows(1, 40),
                                                 monotonicity=True).violations]
        for kind in ("float32", "float64")
    ]  # fmt: skip
    assert rates[0] == pytest.approx(rates[1], abs=2e-3)


def test_learned_sinks_take_their_part_of_a_row() -> None:
    model = load({"model_type": "flint", **CASES["flint"].config})
    seen = measure_attention(model, token_windows(1, 12, vocabulary=16))
    assert (seen.row_sum < 0.999).all()


def test_content_breaks_monotonicity_and_records_are_flat() -> None:
    seen = measure_attention(load(TINY["llama"]), token_windows(2, 12), monotonicity=True)
    assert len(seen.violations) == 2
    assert all(0 < part.rate < 1 for part in seen.violations)
    assert len(seen.records()) == 8
    assert seen.records()[5]["sink"] == pytest.approx(seen.sink[:, 1, 1].mean())
    assert "violations" in seen.table()


@pytest.mark.parametrize(("option", "value"), [("sinks", (12,)), ("sinks", ()), ("sinks", (1, 1)), ("sinks", (-1,))])
def test_refuses(option: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=option):
        measure_attention(load(TINY["llama"]), token_windows(1, 12), **{option: value})  # type: ignore[arg-type]
