"""Loading: seeded, recorded, outer generators untouched; unsafe, dead and incomplete weights refused by name."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import InvalidInput, MissingResource, NotApplicable
from catenary.models.model import adopt
from tiny_models import TINY, token_windows, vector_windows


def save(folder: Path, family: str = "llama", seed: int = 5) -> Any:
    model = ct.load(TINY[family], seed=seed)
    model.module.save_pretrained(folder)
    return model


@pytest.mark.parametrize("family", list(TINY))
def test_same_seed_same_network_and_outer_generators_untouched(family: str) -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first, again, other = (ct.load(TINY[family], seed=seed) for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert random.getstate() == before[2]
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert not any(parameter.requires_grad for parameter in first.module.parameters())
    assert not first.module.training


def test_fingerprint_sees_one_weight() -> None:
    model = ct.load(TINY["llama"])
    changed = ct.load(TINY["llama"])
    changed.module.model.layers[1].mlp.up_proj.weight[0, 0] += 1e-6
    assert model.fingerprint != changed.fingerprint


def test_init_std_scales_what_the_family_scales() -> None:
    # GPT-2 divides the std of its output matrices by sqrt(2 layers); the given std goes through it
    plain, wide = ct.load(TINY["gpt2"]), ct.load(TINY["gpt2"], init_std=0.6)
    for name, weight in plain.module.named_parameters():
        if weight.ndim == 2:
            torch.testing.assert_close(dict(wide.module.named_parameters())[name], 3 * weight, rtol=1e-5, atol=1e-6)
    assert "initializer_range=0.6 (given)" in wide.initialisation
    assert wide.architecture is not None
    assert wide.embedding_std == pytest.approx(0.6)
    with pytest.raises(InvalidInput, match="init_std must be > 0"):
        ct.load(TINY["gpt2"], init_std=0.0)


def test_embedding_std_is_what_leaves_the_embedding_module() -> None:
    scaled = {**TINY["mistral"], "model_type": "gemma", "vocab_size": 3000}
    module = ct.load(scaled).module
    assert adopt(module).embedding_std == pytest.approx(0.2 * 16**0.5, rel=0.02)


def test_small_vocabulary_and_precision_of_weights() -> None:
    small = ct.load(TINY["qwen2"], vocabulary=16)
    assert small.embedding_weight.shape[0] == 16
    assert small.provenance()["vocabulary"] == 16
    full, half = ct.load(TINY["qwen2"]), ct.load(TINY["qwen2"], dtype="bfloat16")
    for a, b in zip(full.module.parameters(), half.module.parameters(), strict=True):
        assert torch.equal(a.bfloat16(), b)
    # frequencies of 1e-4 and below would lose 3 digits
    assert half.module.model.rotary_emb.inv_freq.dtype == torch.float32


def test_sdpa_falls_back_and_says_so() -> None:
    model = ct.load({**TINY["mistral"], "model_type": "gemma2", "sliding_window": 64})
    assert model.attention == "eager"
    assert any("refuses sdpa" in note for note in model.notes)


def test_provenance_is_json_and_rebuilds_the_network() -> None:
    model = ct.load(TINY["qwen3"], seed=7)
    record = json.loads(json.dumps(model.provenance()))
    assert ct.load(record["config"], seed=record["seed"]).fingerprint == record["fingerprint"]


def test_dead_weights_are_refused_by_name(tmp_path: Path) -> None:
    for name in ("model.embed_tokens", "model.layers.1.self_attn.v_proj", "model.layers.0.self_attn.o_proj"):
        model = save(tmp_path)
        model.module.get_submodule(name).weight.zero_()
        model.module.save_pretrained(tmp_path)
        wanted = "embedding.weight" if "embed" in name else rf"{name}\.weight"
        with pytest.raises(InvalidInput, match=wanted):
            ct.load(tmp_path, weights="pretrained")
        with pytest.raises(InvalidInput, match=wanted):
            ct.measure_jacobian(model.module, token_windows())


def test_dead_value_slice_of_a_fused_matrix_is_refused() -> None:
    module = ct.load(TINY["gpt2"]).module
    module.transformer.h[1].attn.c_attn.weight[:, 32:].zero_()
    with pytest.raises(InvalidInput, match=r"transformer\.h\.1\.attn"):
        adopt(module)


def test_one_dead_feed_forward_is_a_warning_and_norms_are_fine(tmp_path: Path) -> None:
    model = save(tmp_path)
    model.module.model.layers[1].mlp.down_proj.weight.zero_()
    model.module.model.layers[0].input_layernorm.weight.fill_(0.5)
    model.module.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match=r"layers\.1\.mlp\.down_proj\.weight is constant"):
        loaded = ct.load(tmp_path, weights="pretrained")
    assert any("dead feed-forward" in note for note in loaded.notes)


def test_pretrained_round_trip(tmp_path: Path) -> None:
    saved = save(tmp_path, seed=5)
    loaded = ct.load(tmp_path, weights="pretrained")
    assert loaded.fingerprint == saved.fingerprint
    assert (loaded.weights, loaded.seed, loaded.folder) == ("pretrained", None, tmp_path)
    assert loaded.architecture is not None
    with pytest.raises(NotApplicable, match="untrained networks"):
        ct.measure_jacobian(loaded, vector_windows())
    with pytest.raises(MissingResource, match="no tokenizer"):
        loaded.tokenizer()


def test_pickle_adapter_and_missing_weights_are_refused(tmp_path: Path) -> None:
    save(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(InvalidInput, match=r"safetensors, got 'pytorch_model\.bin'"):
        ct.load(tmp_path, weights="pretrained")
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(MissingResource, match=r"looked for model\.safetensors in"):
        ct.load(tmp_path, weights="pretrained")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(MissingResource, match="1 of 1 weight files are missing"):
        ct.load(tmp_path, weights="pretrained")
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(InvalidInput, match="adapter"):
        ct.load(tmp_path, weights="pretrained")


def test_incomplete_weights_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    save(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.layers.0.mlp.up_proj.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidInput, match=r"complete, got 1 .*layers\.0\.mlp\.up_proj"):
        ct.load(tmp_path, weights="pretrained")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dtype": "float8"}, "unknown dtype"),
        ({"attention": "flash"}, "unknown attention"),
        ({"weights": "trained"}, "unknown weights 'trained'"),
        ({"device": "cuda:99"}, "device 'cuda:99' is not available"),
        ({"seed": -1}, "seed must be an integer"),
        ({"vocabulary": 0}, "vocabulary must be >= 2"),
        ({"weights": "pretrained"}, "model must be a folder or a hub id"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        ct.load(TINY["llama"], **arguments)


def test_missing_model_is_one_line() -> None:
    with pytest.raises(MissingResource, match="no-such-owner/no-such-model") as caught:
        ct.load("no-such-owner/no-such-model", weights="pretrained")
    assert "\n" not in str(caught.value)


def test_damaged_weights_are_refused_by_file(tmp_path: Path) -> None:
    ct.load(TINY["llama"]).module.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    whole = file.read_bytes()
    for damaged in (whole[:-100], whole[:4], b"\xff" * 8 + whole[8:], whole[:8] + b"[" + whole[9:]):
        file.write_bytes(damaged)
        with pytest.raises(InvalidInput, match=r"model\.safetensors is damaged or cut off"):
            ct.load(tmp_path, weights="pretrained")
    file.write_bytes(whole)
    ct.load(tmp_path, weights="pretrained")
