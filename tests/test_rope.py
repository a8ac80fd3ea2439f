"""Rotary coding off: it works, it is checked on the network, and it comes back bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import NotApplicable
from catenary.models.rope import is_rotary_off, position_dependence, rotary_buffers, rotary_off, rotary_tables
from tiny_models import TINY, token_windows

TABLED = {
    name: {**TINY["gpt2"], "model_type": name, "n_head": 4, "rotary_dim": 4} for name in ("gptj", "codegen")
}


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mistral", "gptj", "codegen"])
def test_positions_stop_mattering_and_come_back(family: str) -> None:
    model = ct.load({**TINY, **TABLED}[family])
    ids = torch.tensor(token_windows().ids)
    before = model.module(input_ids=ids).logits
    assert position_dependence(model.module, model.anatomy) > 1e-3
    with rotary_off(model.module):
        assert is_rotary_off(model.module)
        assert position_dependence(model.module, model.anatomy) < 1e-6
        off = model.module(input_ids=ids).logits
    assert (off - before).abs().max() > 1e-4
    assert torch.equal(model.module(input_ids=ids).logits, before)


@pytest.mark.parametrize("family", ["gptj", "codegen"])
def test_a_table_at_rest_is_what_position_0_everywhere_gives(family: str) -> None:
    """Another way to no rotation: the network as it is, fed 0 as the position of every token."""
    on, off = ct.load(TABLED[family]), ct.load(TABLED[family], rope=False)
    ids = torch.tensor(token_windows().ids)
    still = on.module(input_ids=ids, position_ids=torch.zeros_like(ids)).logits
    assert torch.allclose(off.module(input_ids=ids).logits, still, atol=1e-6)
    assert not torch.allclose(on.module(input_ids=ids).logits, still, atol=1e-4)
    assert np.isfinite(ct.measure_jacobian(off, token_windows(1), probes=1).energy).all()
    assert off.provenance()["rope"] is False


def test_a_table_of_other_vectors_is_no_rotary_one() -> None:
    module = torch.nn.Module()
    module.register_buffer("embed_positions", torch.randn(8, 4))
    assert rotary_tables(module) == {}


def test_restored_after_an_error_inside() -> None:
    model = ct.load(TINY["llama"])
    saved = {name: buffer.clone() for name, buffer in rotary_buffers(model.module).items()}
    with pytest.raises(RuntimeError, match="inside"), rotary_off(model.module):
        raise RuntimeError("inside")
    assert saved
    assert all(torch.equal(rotary_buffers(model.module)[name], value) for name, value in saved.items())


def test_load_without_rope_keeps_the_weights() -> None:
    on, off = ct.load(TINY["qwen2"]), ct.load(TINY["qwen2"], rope=False)
    assert on.fingerprint == off.fingerprint
    windows = token_windows()
    with rotary_off(on.module):
        inside = ct.measure_jacobian(on, windows, probes=2).energy
    assert np.array_equal(inside, ct.measure_jacobian(off, windows, probes=2).energy)
    assert not np.allclose(inside, ct.measure_jacobian(on, windows, probes=2).energy, rtol=1e-3)
    assert off.provenance()["rope"] is False
    assert "no RoPE" in off.label


def test_learned_positions_are_refused_in_words() -> None:
    with pytest.raises(NotApplicable, match=r"GPT2LMHeadModel.*learned vectors \(wpe\)"):
        ct.load(TINY["gpt2"], rope=False)


def test_a_type_that_sets_its_frequencies_again_is_noticed() -> None:
    model = ct.load(TINY["llama"], rope=False)
    rotary = model.module.model.rotary_emb
    rotary.register_forward_pre_hook(lambda module, _: module.inv_freq.fill_(0.5))
    with pytest.raises(NotApplicable, match="sets its rotary frequencies again"):
        ct.measure_jacobian(model, token_windows())


def test_what_does_not_become_position_free_is_left_unchanged() -> None:
    module = ct.load(TINY["llama"]).module
    handle = module.model.rotary_emb.register_forward_pre_hook(lambda part, _: part.inv_freq.fill_(0.5))
    with pytest.raises(NotApplicable, match="still changes by"), rotary_off(module):
        pass
    handle.remove()
    assert not is_rotary_off(module)
