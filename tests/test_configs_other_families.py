"""Families beyond Llama's kin: slopes, stds, patterns and refusals against the installed transformers' own classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from catenary.architecture import Alibi, Causal, Chunk, FeedForward, Window
from catenary.configs.alibi import bloom_heads, mpt_heads
from catenary.configs.modernbert_decoder import truncated_std
from catenary.configs.read import read_config
from catenary.configs.refusals import REFUSALS
from catenary.errors import InvalidInput, NotApplicable
from families.tiny import TINY, type_of

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def tiny(name: str, **changes: Any) -> dict[str, Any]:
    return {"model_type": type_of(name), **TINY[name].config, **changes}


def slopes(groups: Any) -> list[float]:
    assert all(isinstance(group.kernel, Alibi) and group.heads == 1 for group in groups)
    return [group.kernel.slope for group in groups]


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8, 12, 16, 20, 71, 112])
def test_slopes_are_those_of_transformers(heads: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    bias = build_alibi_tensor(torch.ones(1, 2), heads, torch.float64)[:, 0].numpy()
    np.testing.assert_allclose(slopes(bloom_heads(heads)), bias[:, 1] - bias[:, 0], rtol=1e-6)
    for most in (8, 4):
        mpt = build_mpt_alibi_tensor(heads, 2, most).numpy()[:, 0]
        np.testing.assert_allclose(slopes(mpt_heads(heads, most)), mpt[:, 1] - mpt[:, 0], rtol=1e-6)


def test_falcon_divides_its_slopes_with_the_logits() -> None:
    config = {"model_type": "falcon", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
              "alibi": True, "parallel_attn": False}  # fmt: skip
    found = read_config(config).layers[0].attention
    np.testing.assert_allclose(slopes(found.groups), [2.0**-2 / 32**0.5, 2.0**-4 / 32**0.5, 2.0**-6 / 32**0.5,
                                                      2.0**-8 / 32**0.5])  # fmt: skip
    assert found.kv_heads == 1
    grouped = read_config({**config, "alibi": False, "new_decoder_architecture": True, "num_kv_heads": 2})
    assert (grouped.layers[0].attention.kv_heads, len(grouped.layers[0].steps)) == (2, 1)


def test_transformers_eager_attention_adds_falcons_biases_twice() -> None:
    """Why the contract measures its default attention: a sign that a newer release has put this right."""
    config = tiny("falcon-alibi")
    config.pop("model_type")
    nets = {}
    for kind in ("eager", "sdpa"):
        torch.manual_seed(0)
        nets[kind] = transformers.AutoModelForCausalLM.from_config(
            transformers.FalconConfig(**config), attn_implementation=kind
        ).eval()
    vectors = torch.randn(1, 24, config["hidden_size"], generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        once, twice = (nets[kind].transformer(inputs_embeds=vectors)[0] for kind in ("sdpa", "eager"))
    assert float((once - twice).abs().max()) > 0.01 * float(once.abs().max())


@pytest.mark.parametrize("cutoff", [0.5, 1.0, 2.0, 3.0])
def test_truncated_std(cutoff: float) -> None:
    drawn = torch.nn.init.trunc_normal_(
        torch.empty(400_000), a=-cutoff, b=cutoff, generator=torch.Generator().manual_seed(0)
    )
    assert float(drawn.std()) == pytest.approx(truncated_std(cutoff), rel=0.005)


STDS = {
    "openai-gpt": ("transformer.h.0.attn.c_attn", "transformer.tokens_embed"),
    "modernbert-decoder": ("model.layers.0.attn.q_proj", "model.embeddings.tok_embeddings"),
    "xlm": ("transformer.attentions.0.q_lin", "transformer.embeddings"),
    "youtu": ("model.layers.0.self_attn.q_a_proj", "model.embed_tokens"),
    "opt": ("model.decoder.layers.0.self_attn.q_proj", "model.decoder.embed_tokens"),
    "minicpm3": ("model.layers.0.self_attn.q_a_proj", None),
    "gpt_oss": ("model.layers.0.self_attn.q_proj", "model.embed_tokens"),
    "deepseek_v3": ("model.layers.0.self_attn.kv_b_proj", "model.embed_tokens"),
}
"""A matrix of queries or values, and the embedding, of types whose stds do not all come from one field."""


@pytest.mark.parametrize("name", list(STDS))
def test_stds_are_those_of_a_fresh_network(name: str) -> None:
    config = tiny(name, vocab_size=512) if name != "xlm" else tiny(name, n_words=512)
    architecture = read_config(config)
    keys = {key: value for key, value in config.items() if key != "model_type"}
    torch.manual_seed(0)
    net = transformers.AutoModelForCausalLM.from_config(transformers.CONFIG_MAPPING[config["model_type"]](**keys))
    matrix, embedding = STDS[name]
    query = net.get_submodule(matrix).weight.detach()
    assert float(query.std()) == pytest.approx(architecture.layers[0].attention.query_key_std, rel=0.03)
    if embedding is not None:
        vectors = net.get_submodule(embedding).weight.detach()
        assert float(vectors.std()) == pytest.approx(architecture.embedding.std, rel=0.03)


def test_gpt_neo_patterns() -> None:
    config = tiny("gpt_neo", num_layers=4, attention_types=[[["global", "local", "local"], 1], [["global"], 1]])
    kinds = [layer.attention.groups[0].kernel for layer in read_config(config).layers]
    assert [type(kind) for kind in kinds] == [Causal, Window, Window, Causal]
    for wrong in ([[["global"], 3]], [[["global"], 10**9]], "global", [["global", 4]], [[["nowhere"], 4]], [[[], 4]]):
        with pytest.raises(InvalidInput, match=r"attention_types|times|kinds"):
            read_config({**config, "attention_types": wrong})


def test_mixtures_say_which_layers_have_experts() -> None:
    def sparse(name: str, **changes: Any) -> list[bool]:
        return [layer.feed_forward.experts is not None for layer in read_config(tiny(name, **changes)).layers]

    assert sparse("qwen3_moe", mlp_only_layers=[0], decoder_sparse_step=2) == [False, True, False, True]
    assert sparse("dots1", first_k_dense_replace=2) == [False, False, True, True]
    assert sparse("hy_v3", mlp_layer_types=["sparse", "dense"] * 2) == [True, False] * 2
    assert sparse("llama4_text", moe_layers=[0, 3]) == [True, False, False, True]
    with pytest.raises(InvalidInput, match="mlp_layer_types must hold 'dense' and 'sparse', got 'thin'"):
        sparse("hy_v3", mlp_layer_types=["thin"] * 4)
    with pytest.raises(InvalidInput, match="num_experts_per_tok must be at most num_local_experts=8"):
        sparse("mixtral", num_experts_per_tok=9)
    with pytest.raises(InvalidInput, match="n_group must divide n_routed_experts=8"):
        sparse("glm4_moe", n_group=3, topk_group=1)


def test_words_of_some_mixtures() -> None:
    gpt_oss = read_config(tiny("gpt_oss"))
    inner: FeedForward = gpt_oss.layers[0].feed_forward
    assert (inner.activation, inner.offset, inner.limit) == ("quick_gelu", 1.0, 7.0)
    assert gpt_oss.layers[0].attention.sink is not None
    without = tiny("gpt_oss")
    without.pop("rope_parameters")
    yarn = read_config(without).layers[0].attention.query_scale / gpt_oss.layers[0].attention.query_scale
    assert yarn == pytest.approx((0.1 * np.log(32) + 1) ** 2)
    llama4 = read_config(tiny("llama4_text"))
    assert [type(layer.attention.groups[0].kernel) for layer in llama4.layers] == [Chunk, Chunk, Chunk, Causal]
    assert [layer.attention.qk_norm for layer in llama4.layers] == [True, True, True, False]
    afmoe = read_config(tiny("afmoe")).layers[-1].feed_forward.experts
    assert afmoe is not None
    assert (afmoe.router_std, afmoe.shared is not None) == (0.0, True)


def test_latent_logits_carry_deepseeks_factor() -> None:
    plain = read_config(tiny("deepseek_v3")).layers[0].attention
    scaled = read_config(tiny("deepseek_v3", rope_scaling={"type": "yarn", "factor": 40.0, "mscale": 1.0,
                                                           "mscale_all_dim": 1.0}))  # fmt: skip
    factor = scaled.layers[0].attention.query_scale / plain.query_scale
    assert factor == pytest.approx((0.1 * np.log(40) + 1) ** 2)
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import yarn_apply_mscale

    assert factor == pytest.approx(yarn_apply_mscale({"rope_type": "yarn", "factor": 40.0, "mscale_all_dim": 1.0}, 1.0))


def test_indexed_attention_is_causal_up_to_the_keys_it_chooses() -> None:
    assert read_config(tiny("deepseek_v32", index_topk=48)).causal_up_to == 48


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("bert", {"is_decoder": False}, "bert without is_decoder=true attends in both directions"),
        ("roberta", {"add_cross_attention": True}, "needs an encoder's states"),
        ("xlm", {"causal": False}, "xlm without causal=true"),
        ("roformer", {"rotary_value": True}, "turns values too"),
        ("big_bird", {"attention_type": "block_sparse"}, "only 'original_full' is described"),
        ("gpt_oss", {"swiglu_alpha": 1.5}, "swiglu_alpha other than 1.702"),
        ("granitemoehybrid", {"layer_types": ["attention", "conv"] * 2}, r"layer_types\[1\]='conv'"),
        ("gpt_bigcode", {"add_cross_attention": True}, "only decoders without an encoder"),
    ],
)
def test_what_cannot_be_described_is_refused(name: str, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(NotApplicable, match=words):
        read_config(tiny(name, **changes))


def test_every_refusal_is_a_sentence_about_the_model() -> None:
    for model_type, reason in REFUSALS.items():
        with pytest.raises(NotApplicable, match=f"{model_type} is not described: "):
            read_config({"model_type": model_type})
        assert not reason[0].isupper()
        assert not reason.endswith(".")
        assert len(reason) < 140
