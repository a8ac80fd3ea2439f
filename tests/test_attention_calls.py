"""Attention as it is caught in a run equals what an eager twin reports, and catching it changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy, dissect, pilot_vectors
from catenary.models.attention_call import AttentionCall, GivenCall, ScoredCall
from catenary.models.attention_calls import attention_calls, frozen_weights
from catenary.models.initialise import build_config, draw
from catenary.models.stream import run
from families.tiny import TINY as CASES
from families.tiny import type_of

TOKENS = 12

FUSED = ("llama", "gpt2", "falcon", "mistral", "deepseek_v3", "opt", "gemma3_text", "phi3", "gpt_neox", "qwen3")
OWN = ("bloom", "mpt", "gpt_neo", "gpt_oss", "gemma2", "xlm", "openai-gpt", "flint", "gpt_neox_japanese", "big_bird")

SINGLE = ("deepseek_v3", "gpt_oss", "flint")
"""Their experts' kernel takes no float64."""


def net(name: str, attention: str = "sdpa") -> tuple[torch.nn.Module, Anatomy]:
    config = build_config({"model_type": type_of(name), **CASES[name].config}, init_std=None, vocabulary=None)
    module = draw(config, 0, attention)[0].eval()
    if name not in SINGLE:
        module = module.double()
    return module, dissect(module)


def fed(anatomy: Anatomy) -> tuple[torch.Tensor, torch.Tensor]:
    vectors = pilot_vectors(anatomy.embedding, TOKENS)
    return torch.cat([vectors, vectors.flip(1)]), torch.ones(2, TOKENS, dtype=torch.long)


def caught(anatomy: Anatomy) -> tuple[list[AttentionCall], torch.Tensor]:
    calls: list[AttentionCall] = []
    vectors, mask = fed(anatomy)
    with torch.no_grad(), attention_calls(anatomy, (2, TOKENS), calls.append):
        return calls, run(anatomy.backbone, vectors, mask)


def reported(name: str) -> list[torch.Tensor]:
    _, anatomy = net(name, "eager")
    vectors, mask = fed(anatomy)
    with torch.no_grad():
        output: Any = anatomy.backbone(
            inputs_embeds=vectors, attention_mask=mask, output_attentions=True, use_cache=False
        )
    return [part for part in output.attentions if part is not None]


@pytest.mark.parametrize("name", FUSED + OWN)
def test_maps_equal_those_of_an_eager_twin(name: str) -> None:
    module, anatomy = net(name)
    implementation = module.config._attn_implementation
    calls, _ = caught(anatomy)
    assert module.config._attn_implementation == implementation
    assert {type(call) for call in calls} == {ScoredCall if name in FUSED else GivenCall}
    assert [call.layer for call in calls] == list(range(len(anatomy.layers)))
    for call, twin in zip(calls, reported(name), strict=True):
        whole = torch.cat([call.rows(start, start + rows.shape[2]) for start, rows in call.blocks(5)], dim=2)
        assert whole.shape == twin.shape
        torch.testing.assert_close(whole, twin.to(whole), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", FUSED + OWN)
def test_catching_or_freezing_leaves_the_output_as_it_is(name: str) -> None:
    _, anatomy = net(name)
    vectors, mask = fed(anatomy)
    with torch.no_grad():
        plain = run(anatomy.backbone, vectors, mask)
    assert torch.equal(caught(anatomy)[1], plain)
    with frozen_weights(anatomy, (2, TOKENS)):
        assert torch.equal(run(anatomy.backbone, vectors, mask), plain)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in anatomy.backbone.modules())


@pytest.mark.parametrize("name", ["llama", "mistral", "gpt2", "bloom", "xlm"])
def test_rows_sum_to_one(name: str) -> None:
    for call in caught(net(name)[1])[0]:
        sums = call.rows(0, TOKENS).sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-6, rtol=0)


def test_a_sink_takes_its_part_of_every_row() -> None:
    for call in caught(net("gpt_oss")[1])[0]:
        sums = call.rows(0, TOKENS).sum(-1)
        assert (sums < 0.999).all()
        assert (sums > 0).all()


def test_rows_under_padding() -> None:
    """Rows of real tokens do not see padding, in the fused kernel as in the eager twin."""
    maps = []
    for attention in ("sdpa", "eager"):
        _, anatomy = net("llama", attention)
        vectors, mask = fed(anatomy)
        mask[:, :3] = 0
        calls: list[AttentionCall] = []
        with torch.no_grad(), attention_calls(anatomy, (2, TOKENS), calls.append):
            run(anatomy.backbone, vectors, mask, (mask.cumsum(-1) - 1).clamp(min=0))
        maps.append(calls[0].rows(3, TOKENS))
    assert float(maps[0][..., :3].abs().max()) == 0
    torch.testing.assert_close(*maps, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["llama", "deepseek_v3", "bloom", "gpt_oss"])
def test_values_and_weights_give_the_output_of_attention(name: str) -> None:
    """Weights times values, through the output matrix, is what the attention module returns."""
    _, anatomy = net(name)
    mixer = getattr(anatomy.layers[0], "self_attn", None) or anatomy.layers[0].self_attention
    last = [part for part in mixer.modules() if isinstance(part, torch.nn.Linear)][-1]
    seen: list[torch.Tensor] = []
    last.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    call = caught(anatomy)[0][0]
    assert call.value is not None
    value = call.value.repeat_interleave(call.heads // call.value.shape[1], dim=1)
    mixed = call.rows(0, TOKENS).to(value) @ value
    torch.testing.assert_close(mixed.transpose(1, 2).reshape(2, TOKENS, -1), seen[0].view(2, TOKENS, -1),
                               atol=1e-5, rtol=1e-5)


def gradient(anatomy: Anatomy, frozen: bool) -> torch.Tensor:
    vectors, mask = fed(anatomy)
    leaf = vectors.requires_grad_(True)
    if frozen:
        with frozen_weights(anatomy, (2, TOKENS)):
            last = run(anatomy.backbone, leaf.clone(), mask)
    else:
        last = run(anatomy.backbone, leaf.clone(), mask)
    return torch.autograd.grad(last[:, -1].sum(), leaf)[0]


def test_frozen_weights_equal_in_both_implementations_and_differ_from_the_whole() -> None:
    fused, own = (gradient(net("llama", attention)[1], frozen=True) for attention in ("sdpa", "eager"))
    assert float((own - fused).norm() / fused.norm()) < 1e-6  # eager code takes its softmax in float32
    whole = gradient(net("llama")[1], frozen=False)
    assert float((whole - fused).norm() / whole.norm()) > 0.05


@pytest.mark.parametrize("name", ["llama", "bloom"])
def test_with_queries_at_zero_freezing_changes_no_gradient(name: str) -> None:
    """Uniform weights do not depend on the input where both queries and keys are 0."""
    module, anatomy = net(name)
    with torch.no_grad():
        for part, parameter in module.named_parameters():
            if "q_proj" in part or "k_proj" in part:
                parameter.zero_()
            elif "query_key_value" in part:  # heads of (query, key, value) rows
                parameter.view(-1, 3, parameter.shape[0] // 3 // module.config.n_head, *parameter.shape[1:])[:, :2] = 0
    torch.testing.assert_close(gradient(anatomy, True), gradient(anatomy, False), atol=1e-9, rtol=1e-6)


def test_eager_falcon_of_transformers_adds_alibi_twice() -> None:
    """The map is of what the implementation in use computes: under sdpa, ALiBi once."""
    fused, own = (caught(net("falcon-alibi", attention)[1])[0][0] for attention in ("sdpa", "eager"))
    assert isinstance(fused, ScoredCall)
    assert fused.bias is not None
    alibi = fused.bias[:, :, -1:].clone()  # the last query sees every key: the bias alone
    logits = fused.logits(0, TOKENS)
    torch.testing.assert_close(torch.softmax(logits + alibi, -1), own.rows(0, TOKENS), atol=1e-6, rtol=0)
    assert float((fused.rows(0, TOKENS) - own.rows(0, TOKENS)).abs().max()) > 0.01


def test_layers_without_softmax_are_named() -> None:
    config = build_config(
        {"model_type": "rwkv", "hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 20, "attention_hidden_size": 16,
         "intermediate_size": 24}, init_std=None, vocabulary=None)
    anatomy = dissect(draw(config, 0, "eager")[0].eval())
    vectors, mask = fed(anatomy)
    with torch.no_grad(), attention_calls(anatomy, (2, TOKENS), lambda call: None) as seen:
        run(anatomy.backbone, vectors, mask)
    assert seen.without == {0: "RwkvSelfAttention", 1: "RwkvSelfAttention"}


def test_an_attention_that_was_not_seen_is_an_error_by_name() -> None:
    _, anatomy = net("llama")
    vectors, mask = fed(anatomy)
    with (
        pytest.raises(NotApplicable, match=r"layer 0 \(LlamaDecoderLayer\) has an attention, LlamaAttention"),
        torch.no_grad(),
        attention_calls(anatomy, (2, TOKENS + 1), lambda call: None),  # maps of another size are not this run's
    ):
        run(anatomy.backbone, vectors, mask)


def test_a_router_is_no_attention() -> None:
    """Experts as many as tokens: the router's softmax has the shape of a map."""
    fields = {"model_type": "mixtral", **CASES["mixtral"].config, "num_local_experts": TOKENS}
    anatomy = dissect(draw(build_config(fields, init_std=None, vocabulary=None), 0, "eager")[0].eval())
    assert [call.module for call in caught(anatomy)[0]] == ["self_attn"] * len(anatomy.layers)
