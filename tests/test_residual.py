"""What branches add to the stream, found by arithmetic, against hooks on modules that are known by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import InvalidInput, NotApplicable
from catenary.measure.feed import prepare
from catenary.measure.strengths import measure_strengths
from catenary.models.residual import Addition, additions
from catenary.models.undisturbed import undisturbed
from families.tiny import TINY, type_of

L = 12

# Type: modules whose outputs are added to the stream, with their factors; inputs of ``first`` are the stream.
NAMED: dict[str, tuple[str, str, float]] = {
    "llama": ("self_attn", "mlp", 1.0),
    "gemma2": ("post_attention_layernorm", "post_feedforward_layernorm", 1.0),
    "olmo2": ("post_attention_layernorm", "post_feedforward_layernorm", 1.0),
    "granite": ("self_attn", "mlp", TINY["granite"].config["residual_multiplier"]),
    "gpt2": ("attn", "mlp", 1.0),
    "bloom": ("self_attention.dense", "mlp.dense_4h_to_h", 1.0),
    "opt": ("self_attn", "fc2", 1.0),
    "gpt_neox": ("attention", "mlp", 1.0),
    "falcon": ("self_attention", "mlp", 1.0),
    "cohere": ("self_attn", "mlp", 1.0),
    "bert": ("attention.output.dense", "output.dense", 1.0),
}
PARALLEL = {"gpt_neox", "cohere"}


def loaded(name: str, **options: Any) -> ct.Model:
    return ct.load({"model_type": type_of(name), **TINY[name].config}, **options)


def found(model: ct.Model, windows: ct.Windows) -> list[Addition]:
    seen: list[Addition] = []
    feed, rows = prepare(model, windows), list(range(len(windows)))
    vectors = feed.vectors(rows)
    with undisturbed(model.module), torch.no_grad(), additions(model.anatomy, windows.ids.shape, seen.append):
        model.anatomy.stream(vectors, feed.mask(rows))
    return seen


@contextmanager
def outputs(model: ct.Model, names: tuple[str, str]) -> Iterator[list[torch.Tensor]]:
    """Copies of each layer's input, and of its named modules' outputs, in the order of the layers."""
    kept: list[torch.Tensor] = []
    handles = []

    def keep(value: Any) -> None:
        value = value[0] if isinstance(value, tuple) else value
        kept.append(value.clone().reshape(2, L, -1))

    for layer in model.anatomy.layers:
        handles.append(layer.register_forward_pre_hook(lambda _, given: keep(given)))
        for name in names:
            part = layer.get_submodule(name)
            handles.append(part.register_forward_hook(lambda _, __, output: keep(output)))
    try:
        yield kept
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", NAMED)
def test_against_named_modules(name: str, attention: str) -> None:
    first, second, factor = NAMED[name]
    model = loaded(name, attention=attention)
    windows = ct.random_windows(L, 2, 0)
    with outputs(model, (first, second)) as kept:
        seen = found(model, windows)
    assert [(a.layer, a.branch) for a in seen[:3]] == [(0, "attention"), (0, "feed-forward"), (1, "attention")]
    assert len(seen) == 2 * len(model.anatomy.layers)
    for layer, (attended, fed) in enumerate(zip(seen[::2], seen[1::2], strict=True)):
        stream, a, f = kept[3 * layer : 3 * layer + 3]
        if name in PARALLEL or name == "falcon":
            a, f = sorted((a, f), key=lambda part: float((rms(part) - attended.added).abs().max()))
        close(attended.stream, rms(stream))
        close(attended.added, factor * rms(a))
        close(fed.added, factor * rms(f))
        middle = stream + factor * a
        if name == "bert":
            middle = torch.nn.functional.layer_norm(middle, middle.shape[-1:], eps=1e-12)
        close(fed.stream, rms(stream if seen_parallel(name, model) else middle))


def seen_parallel(name: str, model: ct.Model) -> bool:
    return name in PARALLEL or bool(getattr(model.module.config, "parallel_attn", False))


def rms(part: torch.Tensor) -> torch.Tensor:
    return part.pow(2).mean(-1).sqrt()


def close(value: torch.Tensor, known: torch.Tensor) -> None:
    np.testing.assert_allclose(value.numpy(), known.numpy(), rtol=2e-5)


def test_means_errors_and_batches() -> None:
    model = loaded("llama")
    windows = ct.random_windows(L, 4, 1)
    seen = found(model, windows)
    measured = measure_strengths(model, windows)
    assert (measured.label, measured.length) == (f"{model.label}, random", L)
    for row, addition in zip(measured.rows, seen, strict=True):
        a, x = addition.added.double().numpy(), addition.stream.double().numpy()
        ratio = a / (a + x)
        assert (row.layer, row.branch) == (addition.layer, addition.branch)
        assert row.strength == pytest.approx(ratio.mean(), rel=1e-5)
        assert row.energy == pytest.approx((a**2 / (a**2 + x**2)).mean(), rel=1e-5)
        assert row.token_sd == pytest.approx(ratio.std(), rel=1e-4)
        assert row.standard_error == pytest.approx(ratio.mean(1).std(ddof=1) / 2, rel=1e-3)
        assert (row.added, row.stream) == pytest.approx(((a**2).mean() ** 0.5, (x**2).mean() ** 0.5), rel=1e-5)
    sums = sum(a.added / (a.added + a.stream) for a in seen[::2]).double().numpy().mean(1)
    assert measured.total() == pytest.approx(sums.mean(), rel=1e-5)
    assert measured.sum_errors["attention"] == pytest.approx(sums.std(ddof=1) / 2, rel=1e-3)
    batched = measure_strengths(model, windows, batch_size=3)
    assert batched.values() == pytest.approx(measured.values(), rel=1e-5)
    alone = measure_strengths(model, ct.random_windows(L, 1, 1))
    assert alone.rows[0].standard_error is None
    assert not alone.sum_errors


def test_padding_is_left_out() -> None:
    model = loaded("llama")
    ids = np.random.default_rng(0).integers(0, 16, (2, L))
    plain = measure_strengths(model, ct.Windows(ids))
    padded = np.pad(ids, ((0, 0), (0, 3)))
    mask = np.pad(np.ones_like(ids), ((0, 0), (0, 3)))
    assert measure_strengths(model, ct.Windows(padded), attention_mask=mask).values() == pytest.approx(
        plain.values(), rel=1e-5
    )


def test_the_network_is_left_as_it_was() -> None:
    model = loaded("gemma2")
    windows = ct.random_windows(L, 2, 0)
    hooks = sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.module.modules())
    vectors = prepare(model, windows).vectors([0])
    mask = torch.ones(1, L, dtype=torch.long)
    before = model.anatomy.stream(vectors, mask)
    measure_strengths(model, windows)
    assert torch.equal(model.anatomy.stream(vectors, mask), before)
    assert hooks == sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.module.modules())


def test_layers_without_attention_are_left_out() -> None:
    measured = measure_strengths(loaded("lfm2"), ct.random_windows(L, 1, 0))
    kinds = loaded("lfm2").module.config.layer_types
    attended = [index for index, kind in enumerate(kinds) if kind == "full_attention"]
    assert sorted({row.layer for row in measured.rows}) == attended
    assert "Layers without softmax attention are left out" in measured.statements[0]


def test_refusals() -> None:
    model = loaded("llama")
    with pytest.raises(InvalidInput, match="batch_size must be a whole number >= 1, got 0"):
        measure_strengths(model, ct.random_windows(L, 1, 0), batch_size=0)

    def squared(_: Any, __: Any, output: Any) -> Any:
        return output**2 if isinstance(output, torch.Tensor) else (output[0] ** 2, *output[1:])

    handle = model.anatomy.layers[1].register_forward_hook(squared, prepend=True)
    with pytest.raises(NotApplicable, match="LlamaDecoderLayer: layer 1 is not its stream plus branches"):
        measure_strengths(model, ct.random_windows(L, 1, 0))
    handle.remove()
