"""Configs that lie: every one ends in one clear line within a second, without an allocation storm."""

from __future__ import annotations

import json
import math
import time
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catenary.architecture import Architecture
from catenary.configs.presets import list_presets, load_preset
from catenary.configs.read import read_config
from catenary.configs.strict_json import SIZE_LIMIT, parse_object
from catenary.errors import InvalidInput

QWEN2 = dict(load_preset("qwen2-0.5b").config)
GPT2 = dict(load_preset("gpt2").config)
NAN, INF = float("nan"), float("inf")

SECONDS = 10
"""Processor seconds, some fifty times what these take on a quiet machine: work that grows with its input fails."""


def refusal(model: Any) -> str:
    """The message of the refusal, which must come soon, take under 64 MB and be one short line."""
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(InvalidInput) as caught:
        read_config(model)
    seconds = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < SECONDS
    assert peak < 64 * 2**20
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    return message


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("num_hidden_layers", [10**9, 10**5000, 0, -3, NAN, INF, 2.0, "24", True, None, [24], {"a": 1}, "x" * 10**6]),
        ("hidden_size", [-896, 0, 10**12, 896.0, "896", False, None, 895]),
        ("num_attention_heads", [0, -14, 13, 10**9, "14", [14], None, 3.5]),
        ("num_key_value_heads", [0, -2, 3, 28, "2", True, 2.0]),
        ("head_dim", [0, -64, 63, "64", True, 10**9]),
        ("intermediate_size", [0, -1, 10**12, None, "4864", NAN]),
        ("vocab_size", [0, -1, 10**12, "x", True]),
        ("initializer_range", [-0.02, NAN, INF, "0.02", None, True, 5.0, 10**400]),
        ("rms_norm_eps", [-1e-6, NAN, INF, "1e-6", None, True]),
        ("rope_theta", [0, -1.0, NAN, INF, "10000", True, 0.5]),
        ("max_position_embeddings", [0, -5, "32768", True, None, 1e5]),
        ("hidden_act", ["silou", "", 3, None, ["silu"], "x" * 10**7]),
        ("use_sliding_window", ["false", 0, 1, None, "yes"]),
        ("layer_types", ["full_attention", ["full_attention"] * 23, [1] * 24, {"0": "full_attention"}, 3]),
        ("rope_scaling", ["yarn", [1], 3, {"type": 3}, {"type": "yarn", "factor": -1}, {"type": "yarn", "factor": ""}]),
        ("model_type", [3, None, ["llama"], "x" * 10**7, "", {"a": 1}, True]),
        ("is_causal", ["no", 1, 0]),
    ],
)
def test_hostile_values_name_the_field(field: str, values: list[Any]) -> None:
    for value in values:
        message = refusal({**QWEN2, field: value})
        expected = {"rope_scaling": ("rope_scaling", "type", "factor"), "head_dim": ("head_dim",)}.get(field, (field,))
        # 895 and 13 are at odds with each other, 3 and 28 with the number of heads: either may be named.
        heads = ("hidden_size", "num_attention_heads", "num_key_value_heads")
        assert any(name in message for name in (*expected, *(heads if field in heads else ()))), message


@pytest.mark.parametrize("window", [-3, -1, "4096", True, 4096.0, NAN, [4096]])
def test_hostile_windows(window: Any) -> None:
    config = {**QWEN2, "model_type": "mistral", "sliding_window": window}
    assert "sliding_window must be an integer" in refusal(config)


@pytest.mark.parametrize("field", ["n_embd", "n_layer", "n_head", "n_positions", "n_inner", "layer_norm_epsilon"])
def test_hostile_gpt2(field: str) -> None:
    for value in (-1, 10**15, NAN, "12", True, [1]):
        assert field in refusal({**GPT2, field: value})


def test_heads_that_do_not_divide() -> None:
    assert "hidden_size must be a multiple of num_attention_heads=13, got 896" in refusal(
        {**QWEN2, "num_attention_heads": 13, "num_key_value_heads": 13}
    )
    assert "num_attention_heads must be a multiple of num_key_value_heads=3, got 14" in refusal(
        {**QWEN2, "num_key_value_heads": 3}
    )
    assert "n_embd must be a multiple of n_head=7" in refusal({**GPT2, "n_head": 7})
    llama = {**QWEN2, "model_type": "llama", "num_attention_heads": 15, "num_key_value_heads": 5, "head_dim": 64}
    assert "hidden_size must be a multiple" in refusal(llama)


@pytest.mark.parametrize("name", ["num_experts", "num_local_experts"])
def test_a_refusal_names_the_field_as_the_config_does(name: str) -> None:
    config = {"model_type": "qwen3_moe", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
              "num_key_value_heads": 2, "intermediate_size": 64, "moe_intermediate_size": 16,
              "num_experts_per_tok": 2}  # fmt: skip
    assert refusal({**config, name: 0}).startswith(f"{name} must be an integer")
    assert f"must be at most {name}=1" in refusal({**config, name: 1})
    heads = {"model_type": "gpt2", "hidden_size": 32, "n_layer": 2, "num_attention_heads": 3}
    assert refusal(heads).startswith("hidden_size must be a multiple of num_attention_heads=3")


def test_block_types_need_not_hold_every_kind() -> None:
    config = {"model_type": "recurrent_gemma", "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2,
              "intermediate_size": 64, "lru_width": 32}  # fmt: skip
    assert "entries are among recurrent, " in refusal({**config, "block_types": ["attention", "convolution"]})
    assert len(read_config({**config, "block_types": ["attention"]}).layers) == 3


def test_numbers_of_other_libraries_are_numbers() -> None:
    numbers = {"hidden_size": np.int64(896), "initializer_range": np.float32(0.5), "rms_norm_eps": Fraction(1, 8)}
    architecture = read_config({**QWEN2, **numbers})
    assert (architecture.width, architecture.embedding.std) == (896, 0.5)
    assert type(architecture.width) is int


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "must be JSON"),
    "truncated": (b'{"model_type": "gpt2", "n_layer": ', "must be JSON"),
    "list": (b"[1, 2]", "must hold a JSON object, got a list of 2"),
    "number": (b"3", "must hold a JSON object"),
    "latin-1": ('{"model_type": "gpt2é"}'.encode("latin-1"), "must be UTF-8 text, got byte 0xe9"),
    "utf-16": (json.dumps(GPT2).encode("utf-16"), "must be UTF-8 text"),
    "binary": (bytes(range(256)), "must be"),
    "deep list": (b"[" * 10**6, "must not be nested"),
    "deep object": (b'{"a":' * 10**5 + b"1" + b"}" * 10**5, "must not be nested"),
    "duplicate": (b'{"model_type": "gpt2", "n_layer": 2, "n_layer": 3}', "must give every key once, got 'n_layer'"),
    "long integer": (b'{"model_type": "gpt2", "n_layer": ' + b"9" * 10**6 + b"}", "numbers of ordinary size"),
    "long float": (b'{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 1e999}', "must be an integer"),
    "python": (b"{'model_type': 'gpt2'}", "must be JSON"),
}


@pytest.mark.parametrize("name", FILES)
def test_hostile_files(name: str, tmp_path: Path) -> None:
    data, words = FILES[name]
    path = tmp_path / "config.json"
    path.write_bytes(data)
    for model in (str(path), tmp_path):
        message = refusal(model)
        assert words in message
        assert message.startswith(str(path))


def test_a_file_too_large_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as stream:
        stream.truncate(200 * 2**20)
    monkeypatch.delattr(Path, "open")
    assert f"must be at most {SIZE_LIMIT} bytes" in refusal(path)


def test_files_without_an_end(tmp_path: Path) -> None:
    assert "must be a regular file" in refusal("/dev/zero")
    (tmp_path / "config.json").mkdir()
    assert "must be a regular file" in refusal(tmp_path)


def test_a_large_valid_file_is_refused_quickly(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**GPT2, "n_layer": [0] * 2_000_000}))
    start = time.process_time()
    with pytest.raises(InvalidInput, match=r"n_layer must be an integer in .*, got a list of 2000000"):
        read_config(path)
    assert time.process_time() - start < SECONDS


def test_byte_order_mark_and_foreign_infinities_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({**GPT2, "time_step_limit": [0.0, INF]}).encode())
    assert read_config(path).depth == 12


def test_names_are_printable(tmp_path: Path) -> None:
    hostile = "<script>\u2028\n\ud800" + "x" * 10**6
    architecture = read_config({**GPT2, "_name_or_path": hostile})
    assert architecture.name.startswith("<script>???xxx")
    assert len(architecture.name) <= 120
    architecture.describe().encode()


def test_depth_costs_nothing() -> None:
    """The deepest config that is accepted shares one layer, or is 10,000 small objects."""
    start = time.process_time()
    assert read_config({**QWEN2, "num_hidden_layers": 10_000}).depth == 10_000
    assert read_config({**GPT2, "n_layer": 10_000}).depth == 10_000
    assert time.process_time() - start < SECONDS


def finite(architecture: Architecture) -> bool:
    """Whether every number of every layer can be computed with."""
    numbers = [architecture.logit_variance, architecture.embedding.std, architecture.embedding.scale]
    for layer in set(architecture.layers):
        for branch in layer.branches:
            numbers += [branch.scale, *(norm.epsilon for norm in (branch.before, branch.after) if norm)]
        numbers += [heads.gain(architecture.width) for heads in layer.attentions]
        numbers += [heads.query_scale for heads in layer.attentions]
        numbers += [number for inner in layer.feed_forwards for number in (inner.input_std, inner.output_std)]
    return all(math.isfinite(number) and number >= 0 for number in numbers) and architecture.depth >= 1


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(0, 200), st.floats(), st.floats(0, 2), st.text(max_size=20),
    st.sampled_from(["silu", "yarn", "longrope", "full_attention", "sliding_attention", "llama", "gpt2", "qwen3"]),
)  # fmt: skip
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=4),
    st.dictionaries(
        st.sampled_from([
            "type", "rope_type", "factor", "rope_theta", "attention_factor", "mscale", "mscale_all_dim",
            "original_max_position_embeddings", "full_attention", "model_type", "num_hidden_layers",
        ]),
        SCALARS,
        max_size=5,
    ),
)  # fmt: skip
PRESETS = {name: dict(load_preset(name).config) for name in list_presets()}
FIELDS = sorted({
    *(key for config in PRESETS.values() for key in config), "rope_scaling", "rope_parameters", "head_dim",
    "layer_types", "text_config", "is_causal", "n_inner", "scale_attn_weights", "scale_attn_by_inverse_layer_idx",
    "add_cross_attention", "auto_map", "quantization_config", "_name_or_path", "original_max_position_embeddings",
    "sliding_window", "sliding_window_pattern", "attention_chunk_size", "use_sliding_window", "max_window_layers",
    "no_rope_layers", "partial_rotary_factor", "qk_layernorm", "use_parallel_residual", "attn_logit_softcapping",
    "query_pre_attn_scalar", "residual_multiplier", "attention_multiplier", "embedding_multiplier",
})  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn) -> dict[str, Any]:
    """A preset's config with up to four fields changed and two left out; changes favour its own fields."""
    config = PRESETS[draw(st.sampled_from(sorted(PRESETS)))]
    keys = st.sampled_from(sorted(config)) | st.sampled_from(FIELDS)
    changes = draw(st.dictionaries(keys, VALUES, min_size=1, max_size=4))
    removed = draw(st.sets(st.sampled_from(sorted(config)), max_size=2))
    return {key: value for key, value in config.items() if key not in removed} | changes


@settings(max_examples=600, derandomize=True, deadline=2000)
@given(config=mutations())
def test_any_mutation_ends_in_an_architecture_or_a_refusal(config: dict[str, Any]) -> None:
    message, architecture = "", None
    try:
        architecture = read_config(config)
    except InvalidInput as error:
        message = str(error)
    assert (architecture is None) is (message != "")
    assert "\n" not in message
    assert len(message) < 600
    if architecture is not None:
        assert finite(architecture)
        assert read_config(json.loads(json.dumps(config))) == architecture


@settings(max_examples=200, derandomize=True, deadline=1000)
@given(data=st.binary(max_size=200) | st.text('{}[]":,0123456789.eE-+ntf\\u \x00', max_size=200).map(str.encode))
def test_any_bytes_end_in_an_object_or_a_refusal(data: bytes) -> None:
    message, value = "", None
    try:
        value = parse_object(data)
    except InvalidInput as error:
        message = str(error)
    assert isinstance(value, dict) is (message == "")
    assert "\n" not in message
