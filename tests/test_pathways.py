"""Five terms per layer: against dense matrices of the numpy network, and summing to the measured Jacobian."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import InvalidInput, NotApplicable
from catenary.measure.feed import prepare
from catenary.measure.pathways import measure_paths, measure_pathways
from catenary.measure.pathways_result import NAMES, Pathways
from catenary.models.toy_weights import copy_toy
from families.tiny import TINY as FAMILIES
from families.tiny import type_of
from oracles.pathways import dense_terms
from tiny_models import TINY, token_windows, vector_windows


@pytest.fixture(scope="module")
def twin() -> tuple[Any, Any, list[list[np.ndarray]]]:
    """A three-layer Llama in float64, one window of 6 tokens, and its terms as dense matrices."""
    model = ct.load({**TINY["llama"], "num_hidden_layers": 3, "rms_norm_eps": 1e-6}, dtype="float64")
    windows = token_windows(1, 6)
    assert model.architecture is not None
    toy = copy_toy(model.architecture, model.module.state_dict())
    vectors = prepare(model, windows).vectors([0])[0].numpy()
    return model, windows, dense_terms(toy, vectors)


def test_terms_equal_dense_matrices(twin: tuple[Any, Any, list[list[np.ndarray]]]) -> None:
    model, windows, dense = twin
    own = measure_pathways(model, windows, method="exact", source="layer")
    down = measure_pathways(model, windows, method="exact", source="embeddings")
    layers = [sum(parts) for parts in dense]
    for number, parts in enumerate(dense):
        above, below = np.eye(96)[-16:], np.eye(96)
        for layer in reversed(layers[number + 1 :]):
            above = above @ layer
        for layer in layers[:number]:
            below = layer @ below
        for result, after in ((own, np.eye(96)), (down, below)):
            columns = np.array([(above @ part @ after).reshape(16, 6, 16) for part in parts])
            expected = np.einsum("aojd,bojd->abj", columns, columns)
            # transformers computes its norms in float32, whatever the network's type
            np.testing.assert_allclose(
                result.products[number, 0, 0], expected, rtol=1e-5, atol=1e-6 * expected.max()
            )


def test_whole_profiles_equal_dense_products(twin: tuple[Any, Any, list[list[np.ndarray]]]) -> None:
    model, windows, dense = twin
    sample = measure_paths(model, windows, method="exact")
    one = np.eye(96)
    kept = {
        "everything": lambda i, v, s, f, both: i + v + s + f + both,
        "value": lambda i, v, s, f, both: (i + f) @ (i + v),
        "score": lambda i, v, s, f, both: (i + f) @ (i + s),
        "no-ffn": lambda i, v, s, f, both: i + v + s,
        "value-no-ffn": lambda i, v, s, f, both: i + v,
    }
    assert sample.conditions == tuple(kept)
    for index, combine in enumerate(kept.values()):
        product = one[-16:]
        for parts in reversed(dense):
            product = product @ combine(*parts)
        expected = (product.reshape(16, 6, 16) ** 2).sum((0, 2))
        np.testing.assert_allclose(sample.energy[index, 0, 0, 0, 0], expected, rtol=1e-5)
    assert sample.quantity.name == "pathway-norm"


KINDS = ("llama", "gpt2", "gptj", "phi", "gpt_neox", "gemma2", "olmo2", "bloom", "mixtral")
"""Sequential, parallel, with norms on both sides of and behind the branches, ALiBi, experts."""


@pytest.mark.parametrize("name", KINDS)
def test_the_five_reassemble_the_gradient(name: str) -> None:
    model = ct.load({"model_type": type_of(name), **FAMILIES[name].config})
    windows = ct.Windows(np.random.default_rng(0).integers(0, 16, (2, 24)))
    expected = ct.measure_jacobian(model, windows, probes=2, seed=3).energy[0, 0, 0]
    result = measure_pathways(model, windows, probes=2, seed=3)
    for layer in range(len(result.layers)):
        np.testing.assert_allclose(result.total[layer], expected, rtol=1e-5)
    attention = result.energy[..., 1, :] + result.energy[..., 2, :]
    assert (attention.sum(-1) > 0).all()
    both = result.energy[..., 4, :].sum()
    parallel = name in ("gptj", "phi", "gpt_neox")
    assert (both < 1e-8 * attention.sum()) == parallel


def test_terms_live_at_the_layer_or_at_the_embeddings() -> None:
    """In the first layer of a network that feeds embeddings as they are the two are the same."""
    model, windows = ct.load(TINY["llama"]), token_windows(2)
    own = measure_pathways(model, windows, source="layer")
    down = measure_pathways(model, windows)
    np.testing.assert_allclose(own.products[0], down.products[0], rtol=1e-4, atol=1e-6)
    assert not np.allclose(own.products[1], down.products[1], rtol=0.1)
    last = own.energy[1, ..., 0, :]  # the identity of the last layer holds the probe at the last position, alone
    assert (last[..., :-1] == 0).all()
    some = measure_pathways(model, windows, layers=[1], sequences=[1])
    np.testing.assert_allclose(some.products[0, 0], down.products[1, 1], rtol=1e-5, atol=1e-7)
    assert some.layers == (1,)


def test_eager_equals_sdpa_and_padding_changes_nothing() -> None:
    windows = token_windows(1)
    sdpa, eager = (ct.load(TINY["llama"], attention=name) for name in ("sdpa", "eager"))
    expected = measure_pathways(sdpa, windows, probes=2).products
    np.testing.assert_allclose(measure_pathways(eager, windows, probes=2).products, expected, rtol=1e-3, atol=1e-5)
    ids, mask = np.hstack([np.full((1, 3), 7), windows.ids]), np.array([[0] * 3 + [1] * 12])
    padded = measure_pathways(sdpa, ids, probes=2, attention_mask=mask).products
    np.testing.assert_allclose(padded, expected, rtol=1e-3, atol=1e-5)


def test_without_queries_and_keys_there_is_no_score_path() -> None:
    model = ct.load(TINY["llama"])
    for layer in model.anatomy.layers:
        layer.self_attn.q_proj.weight.data.zero_()
        layer.self_attn.k_proj.weight.data.zero_()
    result = measure_pathways(model, token_windows(2), probes=2)
    assert result.energy[..., 2, :].max() < 1e-10
    assert result.score_share().value < 1e-10
    sample = measure_paths(model, token_windows(1), parts=("everything", "value", "score"), probes=2)
    np.testing.assert_allclose(sample.energy[0], sample.energy[1], rtol=1e-5)
    assert (sample.energy[2, ..., :-1] < 1e-10).all()  # nothing else brings another position in


def test_score_energy_follows_the_logit_variance() -> None:
    """To lowest order score vectors are linear in the logits' gradient, so energy goes as the logit variance."""
    variances = np.array([0.001, 0.004, 0.016])
    shares = []
    for variance in variances:
        config = {**TINY["llama"], "hidden_size": 64, "num_key_value_heads": 4, "initializer_range": 0.1}
        model = ct.load(config, seed=1)
        factor = (variance / (64 * 0.1**2) ** 2) ** 0.25  # logits have variance (d std^2)^2
        for layer in model.anatomy.layers:
            layer.self_attn.q_proj.weight.data *= factor
            layer.self_attn.k_proj.weight.data *= factor
        result = measure_pathways(model, vector_windows(2, 24), source="layer", probes=4)
        shares.append(result.energy[:, ..., 2, :].sum() / result.energy[:, ..., 1, :].sum())
    assert np.polyfit(np.log(variances), np.log(shares), 1)[0] == pytest.approx(1, abs=0.05)


def test_figures_and_records() -> None:
    result = measure_pathways(ct.load(TINY["llama"]), token_windows(3), probes=2, source="layer")
    energy, total = result.energy, result.total
    share = result.share(1, "value")
    assert share.value == pytest.approx(energy[1, ..., 1, :].sum() / total[1].sum())
    per_sequence = energy[1, ..., 1, :].sum((1, 2)), total[1].sum((1, 2))
    left = [(per_sequence[0].sum() - a) / (per_sequence[1].sum() - b) for a, b in zip(*per_sequence, strict=True)]
    assert share.error == pytest.approx(np.sqrt(2 / 3 * ((left - np.mean(left)) ** 2).sum()))
    body = result.share(1, "identity", last=False)
    assert body.value == 0 < result.share(1, "identity").value
    products = result.products[1].sum(-1).mean((0, 1))
    assert result.cosine(1, "value", "both").value == pytest.approx(
        products[1, 4] / np.sqrt(products[1, 1] * products[4, 4])
    )
    whole = sum(result.share(0, name).value for name in NAMES)
    crossed = (result.products[0].sum((2, 3)) - energy[0].sum(2)).sum() / total[0].sum()
    assert whole + crossed == pytest.approx(1)
    assert len(result.table().splitlines()) == 3
    assert result.csv().startswith("layer,identity,identity_error,value")
    record = json.loads(json.dumps(result.to_dict()))
    assert record["records"][1]["value"] == share.value
    assert set(record["provenance"]) == {"model", "windows", "measurement"}
    with pytest.raises(InvalidInput, match="term must be one of"):
        result.share(0, "scores")
    with pytest.raises(InvalidInput, match="layer must be one of"):
        result.share(5, "score")


def test_refusals() -> None:
    model, windows = ct.load(TINY["llama"]), token_windows()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"source": "middle"}, "unknown source 'middle'"),
        ({"method": "scalar"}, "unknown method 'scalar'"),
        ({"layers": [2]}, r"layers must be distinct layers in 0\.\.1"),
        ({"probes": 0}, "probes must be an integer >= 1"),
        ({"sequences": [9]}, "distinct window indices"),
    ]
    for options, words in cases:
        with pytest.raises(InvalidInput, match=words):
            measure_pathways(model, windows, **options)
    with pytest.raises(InvalidInput, match="unknown part 'values'"):
        measure_paths(model, windows, parts=("values",))
    post = ct.load({"model_type": "opt", **FAMILIES["opt-post-norm"].config})
    with pytest.raises(NotApplicable, match="no identity"):
        measure_pathways(post, ct.Windows(np.zeros((1, 8), int)))


def test_a_users_network_is_left_as_found() -> None:
    module = ct.load({**TINY["gpt2"], "resid_pdrop": 0.5}).module.train().requires_grad_(True)
    generator = torch.get_rng_state()
    result = measure_pathways(module, token_windows(1), probes=1)
    assert isinstance(result, Pathways)
    assert module.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in module.parameters())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    assert torch.equal(torch.get_rng_state(), generator)


def test_one_layers_graph_is_held_at_a_time() -> None:
    """What autograd keeps does not grow with depth: peak bytes of saved tensors alive at once."""
    peaks = []
    for depth in (2, 6):
        model = ct.load({**TINY["llama"], "num_hidden_layers": depth})
        alive = [0, 0]

        class Kept:
            def __init__(self, tensor: torch.Tensor, alive: list[int] = alive) -> None:
                self.tensor, self.alive = tensor.detach(), alive  # with its graph it would hold itself
                alive[0] += tensor.nbytes
                alive[1] = max(alive)

            def __del__(self) -> None:
                self.alive[0] -= self.tensor.nbytes

        with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
            measure_pathways(model, vector_windows(1, 128), probes=1, source="layer")
        peaks.append(alive[1])
    assert peaks[1] == pytest.approx(peaks[0], rel=0.05)
