"""A layer replayed alone gives what it gave in the pass, and layer by layer the vjp is that of the whole network."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

import catenary as ct
from catenary.errors import NotApplicable
from catenary.measure.feed import prepare
from catenary.models.model import Model, adopt
from catenary.models.replay import Replay, check_replayable, pull_back, record_layers
from catenary.models.undisturbed import undisturbed
from tiny_models import TINY, token_windows

OTHERS: dict[str, dict[str, Any]] = {
    # a projection in and out, norms after the branches
    "opt": {
        "model_type": "opt", "hidden_size": 16, "word_embed_proj_dim": 12, "num_hidden_layers": 2, "ffn_dim": 24,
        "num_attention_heads": 2, "vocab_size": 50, "init_std": 0.2, "max_position_embeddings": 64,
        "do_layer_norm_before": False,
    },
    # an embedding norm, ALiBi, the layer's residual passed as an argument of its branches
    "bloom": {
        "model_type": "bloom", "hidden_size": 16, "n_layer": 2, "n_head": 2, "vocab_size": 50, "initializer_range": 0.2,
    },
    # writes into its input
    "ctrl": {
        "model_type": "ctrl", "n_embd": 16, "n_layer": 2, "n_head": 2, "dff": 24, "vocab_size": 50, "n_positions": 64,
        "initializer_range": 0.2,
    },
    "mamba": {
        "model_type": "mamba", "hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 50, "initializer_range": 0.2,
    },
}
NETWORKS = {**{name: TINY[name] for name in ("llama", "gpt2", "mistral")}, **OTHERS}


def recorded(model: Model, count: int = 2) -> tuple[Replay, torch.Tensor]:
    feed, rows = prepare(model, token_windows(count)), list(range(count))
    vectors = feed.vectors(rows)
    return record_layers(model.anatomy, vectors, feed.mask(rows), feed.positions(rows)), vectors


@pytest.mark.parametrize("name", list(NETWORKS))
def test_layer_by_layer_equals_the_whole(name: str) -> None:
    model = ct.load(NETWORKS[name])
    with undisturbed(model.module):
        replay, vectors = recorded(model)
        leaf = vectors.clone().requires_grad_(True)
        stream = model.anatomy.stream(leaf.clone(), replay.mask)
        torch.testing.assert_close(replay.stream, stream.detach(), rtol=0, atol=0)
        cotangent = torch.randn(stream.shape, generator=torch.Generator().manual_seed(1))
        (whole,) = torch.autograd.grad(stream, leaf, cotangent)
        assert replay.exits_plainly
        moving = pull_back(replay.exit, replay.input(2), cotangent)
        for layer in (1, 0):
            x = replay.input(layer)
            torch.testing.assert_close(replay.layer(layer, x), replay.input(layer + 1), rtol=0, atol=0)
            moving = pull_back(partial(replay.layer, layer), x, moving)
        torch.testing.assert_close(pull_back(replay.entry, vectors, moving), whole, rtol=1e-5, atol=1e-7)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.module.modules())


def test_what_stands_between_the_layers_and_the_final_norm() -> None:
    module = ct.load(TINY["llama"]).module
    between = torch.nn.Linear(16, 16, bias=False)
    torch.nn.init.orthogonal_(between.weight, generator=torch.Generator().manual_seed(0))
    module.model.norm = torch.nn.Sequential(between, module.model.norm)
    model = adopt(module)
    with undisturbed(module):
        replay, _ = recorded(model)
        assert not replay.exits_plainly
        cotangent = torch.ones_like(replay.stream)
        torch.testing.assert_close(replay.exit(replay.last), replay.stream)
        torch.testing.assert_close(pull_back(replay.exit, replay.last, cotangent), cotangent @ between.weight)


@pytest.mark.parametrize("name", ["llama", "bloom"])
def test_each_sequence_of_a_batch_has_its_own_stream(name: str) -> None:
    """Bloom's layers return tuples and Llama's a bare tensor: taking ``out[0]`` of both gives one sequence of two."""
    model = ct.load(NETWORKS[name])
    with undisturbed(model.module):
        both, _ = recorded(model, 2)
        one, _ = recorded(model, 1)
        out = both.layer(1, both.input(1))
        assert out.shape == (2, 12, 16)
        torch.testing.assert_close(out[:1], one.layer(1, one.input(1)), rtol=1e-5, atol=1e-6)
        assert not torch.allclose(out[0], out[1])


def test_recording_leaves_dropout_and_flags() -> None:
    module = ct.load({**TINY["gpt2"], "resid_pdrop": 0.5}).module.train().requires_grad_(True)
    model = adopt(module)
    with undisturbed(module):
        replay, _ = recorded(model)
        assert torch.equal(replay.layer(0, replay.input(0)), replay.input(1))
        assert not replay.input(1).requires_grad
    assert module.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in module.parameters())


SHARED: dict[str, tuple[dict[str, Any], str]] = {
    "gemma3n_text": (
        {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 50, "laurel_rank": 4,
         "num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention"] * 2,
         "activation_sparsity_pattern": [0.0] * 4},
        "per_layer_input of layer 0",
    ),
    "zamba2": (
        {"attention_head_dim": 16, "mamba_expand": 2, "n_mamba_heads": 4, "mamba_d_state": 8, "mamba_headdim": 16,
         "mamba_ngroups": 1, "hybrid_layer_ids": [1, 3], "layers_block_type": ["mamba", "hybrid"] * 2,
         "num_mem_blocks": 1},
        "original_hidden_states of layer 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SHARED))
def test_another_way_for_the_embeddings_is_refused_by_name(name: str) -> None:
    fields, words = SHARED[name]
    model = ct.load({
        "model_type": name, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 8,
        "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 50, "initializer_range": 0.1,
        "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0, **fields,
    })  # fmt: skip
    with undisturbed(model.module), pytest.raises(NotApplicable, match=words):
        check_replayable(model.anatomy)


def test_a_way_outside_the_arguments_is_refused() -> None:
    """Layer 1 adds what layer 0 left in a cell: no argument shows it, the gradient does."""
    model, cell = ct.load(TINY["llama"]), {}
    first, second = model.anatomy.layers
    first.register_forward_hook(lambda _, __, out: cell.update(kept=out))
    second.register_forward_hook(lambda _, __, out: out + 0.1 * cell["kept"])
    with undisturbed(model.module), pytest.raises(NotApplicable, match="share more than the stream"):
        check_replayable(model.anatomy)


def test_something_between_the_layers_is_refused() -> None:
    model = ct.load(TINY["llama"])
    model.anatomy.layers[1].register_forward_pre_hook(lambda _, inputs: (2 * inputs[0], *inputs[1:]))
    with undisturbed(model.module), pytest.raises(NotApplicable, match="input of layer 1 is not the output of layer 0"):
        check_replayable(model.anatomy)


def test_a_layer_that_writes_into_its_input() -> None:
    model = ct.load(TINY["llama"])

    def write(_: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        inputs[0].mul_(1.5)

    model.anatomy.layers[1].input_layernorm.register_forward_pre_hook(write)
    with undisturbed(model.module):
        replay, _ = recorded(model)
        for _ in range(2):
            assert torch.equal(replay.layer(1, replay.input(1)), replay.last)
