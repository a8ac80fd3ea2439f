"""The parts of a decoder are found by behaviour, and a network that is not causal is refused."""

from __future__ import annotations

import pytest
import torch

import catenary as ct
from catenary.errors import NotApplicable
from catenary.models.anatomy import dissect
from catenary.models.portrait import portrait
from tiny_models import TINY

NORMS = {"llama": "norm", "qwen2": "norm", "qwen3": "norm", "mistral": "norm", "gpt2": "ln_f"}


@pytest.mark.parametrize("family", list(TINY))
def test_parts(family: str) -> None:
    module = ct.load(TINY[family]).module
    anatomy = dissect(module)
    assert anatomy.final_norm is getattr(module.base_model, NORMS[family])
    assert anatomy.embedding is module.get_input_embeddings()
    assert len(anatomy.layers) == 2
    vectors = torch.randn((2, 7, 16), generator=torch.Generator().manual_seed(0))
    mask = torch.ones((2, 7), dtype=torch.long)
    stream = anatomy.stream(vectors, mask)
    # the stream, normalised, is transformers' last hidden state
    after = module.base_model(inputs_embeds=vectors, attention_mask=mask).last_hidden_state
    assert torch.equal(anatomy.final_norm(stream), after)
    assert not torch.allclose(stream, after)


def test_a_misleading_norm_is_not_taken() -> None:
    """A norm of the right name that is used elsewhere, and a final norm under another name."""
    module = ct.load(TINY["llama"]).module
    backbone = module.base_model
    backbone.add_module("last_thing", backbone.norm)
    backbone.add_module("norm_of_nothing", torch.nn.LayerNorm(16))
    assert dissect(module).final_norm is backbone.last_thing


def test_without_final_norm_the_stream_is_the_output() -> None:
    module = ct.load(TINY["llama"]).module
    expected = dissect(module)
    vectors = torch.randn((1, 5, 16), generator=torch.Generator().manual_seed(0))
    mask = torch.ones((1, 5), dtype=torch.long)
    stream = expected.stream(vectors, mask)
    module.base_model.norm = torch.nn.Identity()
    assert torch.equal(dissect(module).stream(vectors, mask), stream)


def test_bidirectional_network_is_refused() -> None:
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, vocab_size=30)
    with torch.random.fork_rng():
        module = BertModel(config)
    with pytest.raises(NotApplicable, match="not causal"):
        dissect(module)


def test_encoder_decoder_and_strangers_are_refused() -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, vocab_size=30)
    with torch.random.fork_rng():
        module = T5ForConditionalGeneration(config)
    with pytest.raises(NotApplicable, match="encoder-decoder"):
        dissect(module)
    with pytest.raises(NotApplicable, match="names no input embedding"):
        dissect(torch.nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4}, "learned or sinusoidal"),
        ({"model_type": "gptj", "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4}, "rotary"),
        ({"model_type": "bloom", "hidden_size": 32, "n_layer": 2, "n_head": 4}, "neither rotary nor learned"),
    ],
)
def test_positions_in_words(config: dict[str, object], words: str) -> None:
    model = ct.load({"vocab_size": 32, "bos_token_id": 0, "eos_token_id": 0, **config})
    assert portrait(model.module, model.anatomy).positions == words
