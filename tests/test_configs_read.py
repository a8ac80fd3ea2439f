"""What each family makes of its config: golden shapes, windows, overrides, what is assumed and what is noted."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from catenary.architecture import Architecture, Window
from catenary.configs.class_facts import class_facts
from catenary.configs.presets import list_presets, load_preset
from catenary.configs.read import read_config
from catenary.errors import InvalidInput, NotApplicable

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 160,
}
MISTRAL = {**LLAMA, "model_type": "mistral", "num_key_value_heads": 2, "max_position_embeddings": 1024}
QWEN2 = {**LLAMA, "model_type": "qwen2", "num_key_value_heads": 2, "max_position_embeddings": 1024}
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_layer": 3, "n_head": 4}


def test_golden_qwen2() -> None:
    architecture = read_config("qwen2-0.5b")
    layer = architecture.layers[0]
    assert (architecture.width, architecture.depth, architecture.vocabulary) == (896, 24, 151936)
    assert (layer.attention.heads, layer.attention.head_dim, layer.attention.kv_heads) == (14, 64, 2)
    assert (layer.feed_forward.width, layer.feed_forward.gated, layer.feed_forward.activation) == (4864, True, "silu")
    assert (layer.attention.value_std, architecture.embedding.std, layer.norm.epsilon) == (0.02, 0.02, 1e-6)
    assert (architecture.max_length, architecture.rope_theta) == (32768, 1e6)
    assert architecture.logit_variance == pytest.approx((896 * 0.02**2) ** 2)
    assert (architecture.assumed, architecture.not_expressed) == ((), ())


@pytest.mark.parametrize(
    ("preset", "width", "depth", "heads", "head_dim", "feed_forward"),
    [
        ("gpt2", 768, 12, 12, 64, 3072),
        ("GPT2-XL", 1600, 48, 25, 64, 6400),
        ("smollm2-135m", 576, 30, 9, 64, 1536),
        ("qwen3-0.6b", 1024, 28, 16, 128, 3072),
        ("llama-3-70b", 8192, 80, 64, 128, 28672),
        ("mistral-7b-v0.3", 4096, 32, 32, 128, 14336),
    ],
)
def test_golden_shapes(preset: str, width: int, depth: int, heads: int, head_dim: int, feed_forward: int) -> None:
    architecture = read_config(preset)
    layer = architecture.layers[-1]
    assert (architecture.width, architecture.depth, layer.feed_forward.width) == (width, depth, feed_forward)
    assert (layer.attention.heads, layer.attention.head_dim) == (heads, head_dim)


def test_smollm2_keeps_its_true_initial_std() -> None:
    architecture = read_config("smollm2-135m")
    assert architecture.embedding.std == 1 / 24
    assert architecture.logit_variance == pytest.approx(1.0)


def test_qk_norm_fixes_the_logit_variance() -> None:
    assert read_config("qwen3-0.6b").logit_variance == pytest.approx(1.0)
    assert read_config("qwen3-0.6b", init_std=0.1).logit_variance == pytest.approx(1.0)


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_round_trips(name: str) -> None:
    preset = load_preset(name.upper())
    architecture = read_config(name)
    assert architecture.name == name
    assert preset.source in architecture.source
    model_type = preset.config["model_type"]
    assert architecture.family in (model_type, class_facts(model_type).text)
    again = read_config(dict(preset.config))
    assert (again.layers, again.embedding) == (architecture.layers, architecture.embedding)
    assert architecture.describe().startswith(f"{name}: ")


def test_missing_fields_are_assumed_and_said() -> None:
    architecture = read_config(LLAMA)
    names = {line.split(" = ")[0] for line in architecture.assumed}
    assert names == {
        "num_key_value_heads", "rope_theta", "vocab_size", "hidden_act", "max_position_embeddings",
        "initializer_range", "rms_norm_eps",
    }  # fmt: skip
    assert "rms_norm_eps = 1e-06 (left out; the default of transformers' llama)" in architecture.assumed
    assert architecture.layers[0].attention.kv_heads == 4


def test_qwen3_head_dim_is_not_width_over_heads() -> None:
    config = {**QWEN2, "model_type": "qwen3"}
    assert read_config(config).layers[0].attention.head_dim == 128
    assert any(line.startswith("head_dim = 128") for line in read_config(config).assumed)


def test_init_std_reaches_what_is_derived_from_it() -> None:
    before, after = read_config("gpt2"), read_config("gpt2", init_std=0.06)
    for pick in (
        lambda a: a.embedding.std,
        lambda a: a.embedding.position_std,
        lambda a: a.layers[3].attention.output_std,
        lambda a: a.layers[3].feed_forward.output_std,
    ):
        assert pick(after) == pytest.approx(3 * pick(before))
    assert "std 0.06 given as init_std, in place of 0.02" in after.initialisation


@pytest.mark.parametrize("std", [0, -0.02, 2.0, float("nan"), float("inf"), True, "0.02"])
def test_init_std_out_of_range(std: Any) -> None:
    with pytest.raises(InvalidInput, match="init_std must be"):
        read_config("gpt2", init_std=std)


def test_gpt2_scales_by_layer() -> None:
    architecture = read_config({**GPT2, "scale_attn_by_inverse_layer_idx": True})
    scales = [layer.attention.query_scale for layer in architecture.layers]
    assert scales == pytest.approx([1 / 4, 1 / 8, 1 / 12])
    assert architecture.layers[0].attention.output_std == pytest.approx(0.02 / 6**0.5)


def test_gpt2_aliases_must_agree() -> None:
    assert read_config({**GPT2, "hidden_size": 64}).width == 64
    with pytest.raises(InvalidInput, match="n_embd must have one value, got n_embd=64 and hidden_size=32"):
        read_config({**GPT2, "hidden_size": 32})


def test_gpt2_context_is_n_positions() -> None:
    architecture = read_config({**GPT2, "n_ctx": 2048})
    assert architecture.max_length == 1024
    assert any("n_ctx is not read" in note for note in architecture.not_expressed)


def test_gpt2_cross_attention_is_refused() -> None:
    with pytest.raises(NotApplicable, match="add_cross_attention"):
        read_config({**GPT2, "add_cross_attention": True})


def windows(config: dict[str, Any]) -> list[int | None]:
    """The window of each layer, None where attention is full."""
    found = [layer.attention.groups[0].kernel for layer in read_config(config).layers]
    return [kernel.width if isinstance(kernel, Window) else None for kernel in found]


@pytest.mark.parametrize("window", [None, 1, 512, 4096])
def test_mistral_window_holds_for_every_layer(window: int | None) -> None:
    assert windows({**MISTRAL, "sliding_window": window}) == [window, window]


def test_a_window_of_no_keys_is_refused() -> None:
    """transformers then masks every key: what remains differs between its attention implementations."""
    with pytest.raises(InvalidInput, match="sliding_window must be >= 1, or null for none, got 0"):
        read_config({**MISTRAL, "sliding_window": 0})


def test_mistral_without_the_key_has_a_window() -> None:
    """transformers' class default is 4096, not none."""
    assert windows(MISTRAL) == [4096, 4096]


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"sliding_window": 16}, [None, None]),
        ({"sliding_window": 16, "use_sliding_window": False, "max_window_layers": 0}, [None, None]),
        ({"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 0}, [16, 16]),
        ({"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 1}, [None, 16]),
        ({"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 2}, [None, None]),
        ({"sliding_window": None, "use_sliding_window": True, "max_window_layers": 0}, [None, None]),
        ({"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 0,
          "layer_types": ["full_attention"] * 2}, [None, None]),
        ({"sliding_window": 16, "use_sliding_window": True,
          "layer_types": ["sliding_attention", "full_attention"]}, [16, None]),
    ],
)  # fmt: skip
def test_qwen_window_rule(family: str, extra: dict[str, Any], expected: list[int | None]) -> None:
    assert windows({**QWEN2, "model_type": family, **extra}) == expected


def test_sliding_layers_need_a_window() -> None:
    kinds = {"layer_types": ["full_attention", "sliding_attention"]}
    for config in ({**QWEN2, **kinds}, {**LLAMA, **kinds}):
        with pytest.raises(InvalidInput, match=r"sliding_window is missing, but layer_types\[1\]"):
            read_config(config)


def test_other_layer_types_are_refused() -> None:
    assert read_config({**LLAMA, "layer_types": ["full_attention"] * 2}).depth == 2
    with pytest.raises(NotApplicable, match=r"layer_types\[1\]='linear_attention'"):
        read_config({**LLAMA, "layer_types": ["full_attention", "linear_attention"]})


def test_model_type_missing() -> None:
    bare = {key: value for key, value in GPT2.items() if key != "model_type"}
    with pytest.raises(InvalidInput, match='look like gpt2: add "model_type": "gpt2"'):
        read_config(bare)
    with pytest.raises(InvalidInput, match='suggests qwen2: add "model_type": "qwen2"'):
        read_config({"architectures": ["Qwen2ForCausalLM"]})
    with pytest.raises(InvalidInput, match="add the name of its family"):
        read_config({})


def test_unknown_model_type_is_refused_by_name() -> None:
    words = r"unknown model_type 'qwen4', none of those described. Did you mean 'qwen\d'"
    with pytest.raises(NotApplicable, match=words):
        read_config({**LLAMA, "model_type": "qwen4"})


def test_text_part_of_a_larger_model() -> None:
    architecture = read_config({"model_type": "llava", "text_config": LLAMA, "vision_config": {"hidden_size": 3}})
    assert (architecture.family, architecture.width) == ("llama", 64)
    assert any("text part of a llava model" in note for note in architecture.not_expressed)
    assert read_config({"model_type": "llava", "text_config": LLAMA}, init_std=0.1).embedding.std == 0.1
    with pytest.raises(NotApplicable, match="unknown model_type 'llava'"):
        read_config({"model_type": "llava", "text_config": {**LLAMA, "model_type": "other"}})


@pytest.mark.parametrize(
    "extra",
    [
        {"quantization_config": {"quant_method": "awq"}},
        {"quantization": {"bits": 4}},
        {"quip_params": {"codebook": "E8P12"}},
        {"auto_map": {"AutoModelForCausalLM": "modeling.Mine"}},
    ],
)
def test_what_cannot_be_expressed_is_noted(extra: dict[str, Any]) -> None:
    architecture = read_config({**LLAMA, **extra})
    (note,) = architecture.not_expressed
    assert next(iter(extra)) in note
    assert architecture.layers == read_config(LLAMA).layers


def test_bidirectional_attention_is_refused() -> None:
    assert read_config({**LLAMA, "is_causal": True, "is_decoder": False}).depth == 2
    with pytest.raises(NotApplicable, match="is_causal=false"):
        read_config({**LLAMA, "is_causal": False})


def test_missing_field_names_the_spelling_that_is_there() -> None:
    config = {key: value for key, value in LLAMA.items() if key != "num_hidden_layers"} | {"n_layers": 2}
    with pytest.raises(InvalidInput, match="does not read 'n_layers': rename it to 'num_hidden_layers'"):
        read_config(config)


def test_reading_leaves_the_mapping_alone() -> None:
    config = {**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}
    before = repr(config)
    assert read_config(config, init_std=0.5).rope_theta == 500.0
    assert repr(config) == before


def test_result_is_plain_and_hashable() -> None:
    first: Architecture = read_config("toy")
    assert first == read_config("toy")
    assert len({first, read_config("toy")}) == 1


def test_a_fresh_interpreter_loads_nothing_heavy() -> None:
    code = """
import sys, catenary
assert catenary.read_config("qwen2-0.5b").depth == 24
heavy = {"torch", "transformers", "huggingface_hub", "xarray", "altair", "scipy", "numba"} & set(sys.modules)
sys.exit(f"loaded {heavy}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_wrapper_without_its_text_part_is_named_as_such() -> None:
    with pytest.raises(InvalidInput, match="text_config is missing; gemma3 wraps a text decoder"):
        read_config({"model_type": "gemma3"})
