"""Rotations and kernels per layer: the reader's rules, and what the networks themselves are built with."""

from __future__ import annotations

import math
from typing import Any

import pytest

from catenary.architecture import Causal, Rotary, Window
from catenary.configs.read import read_config
from catenary.errors import InvalidInput
from families.case import DENSE
from families.dense import DENSE_CASES
from families.tiny import type_of

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

FULL, SLIDING = "full_attention", "sliding_attention"


def rotations(config: dict[str, Any]) -> list[Rotary | None]:
    return [mix.rotary for layer in read_config(config).layers for mix in layer.attentions]


def built(model_type: str, fields: dict[str, Any]) -> Any:
    config = transformers.CONFIG_MAPPING[model_type].from_dict(dict(fields))
    return transformers.AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize("name", [name for name in DENSE_CASES if "gemma4" not in name])
def test_bases_and_turned_channels_are_those_of_the_network(name: str) -> None:
    """Every inverse frequency buffer is theta^(-2f/dims), f = 0, ..., dims/2 - 1, for one of the rotations read."""
    fields = DENSE_CASES[name].config
    net = built(type_of(name), fields)
    text = [
        buffer
        for path, buffer in net.named_buffers()
        if path.endswith("inv_freq") and "original" not in path and "vision" not in path and "audio" not in path
    ]
    found = {(2 * len(b), round(-len(b) * math.log10(float(b[1])), 4)) for b in text}
    read = {(r.dims, round(math.log10(r.theta), 4)) for r in rotations({"model_type": type_of(name), **fields}) if r}
    assert read <= found, (read, found)


def test_layers_may_have_bases_of_their_own() -> None:
    gemma = {**DENSE, "model_type": "gemma3_text", "head_dim": 32, "sliding_window": 8, "sliding_window_pattern": 2}
    assert [r.theta for r in rotations(gemma) if r] == [1e4, 1e6, 1e4, 1e6]
    scaled = {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    old = {**gemma, **scaled, "rope_theta": 5e5, "rope_local_base_freq": 2e4}
    assert [r.theta for r in rotations(old) if r] == [2e4, 5e5, 2e4, 5e5]
    new = {**gemma, "rope_parameters": {FULL: {"rope_theta": 7e5}, SLIDING: {"rope_theta": 3e4}}}
    assert [r.theta for r in rotations(new) if r] == [3e4, 7e5, 3e4, 7e5]


def test_layers_without_rotation() -> None:
    smollm = {**DENSE, "model_type": "smollm3"}
    assert [r is None for r in rotations(smollm)] == [False, False, False, True]
    assert [r is None for r in rotations({**smollm, "no_rope_layers": [0, 1, 1, 0]})] == [True, False, False, True]
    with pytest.raises(InvalidInput, match="no_rope_layers must be a list of 4 integers"):
        rotations({**smollm, "no_rope_layers": [1, 1]})
    cohere = {**DENSE, "model_type": "cohere2", "sliding_window": 8}
    assert [r is None for r in rotations(cohere)] == [False, False, False, True]
    exaone = {**DENSE, "model_type": "exaone4", "sliding_window": 8}
    assert [r is None for r in rotations(exaone)] == [False, False, False, True]
    assert None not in rotations({**exaone, "sliding_window": None})


@pytest.mark.parametrize(("factor", "dims"), [(0.5, 16), (0.25, 8), (0.4, 12), (0.09375, 4), (1.0, 32)])
def test_part_of_a_head_turns(factor: float, dims: int) -> None:
    """32 channels: the whole part of 32 f, rounded up to an even number (12.8 to 12, 3 to 4)."""
    for config in ({"partial_rotary_factor": factor}, {"rope_parameters": {"partial_rotary_factor": factor}}):
        assert rotations({**DENSE, "model_type": "phi", **config}) == [Rotary(1e4, dims)] * 4


def test_patterns_of_windows() -> None:
    def kernels(model_type: str, **fields: Any) -> str:
        config = {**DENSE, "model_type": model_type, "num_hidden_layers": 8, "sliding_window": 8, **fields}
        found = [layer.attention.groups[0].kernel for layer in read_config(config).layers]
        assert set(found) <= {Causal(), Window(8)}
        return "".join("F" if kernel == Causal() else "w" for kernel in found)

    assert kernels("gemma2") == "wFwFwFwF"
    assert kernels("vaultgemma") == "wFwFwFwF"
    assert kernels("gemma3_text") == "wwwwwFww"
    assert kernels("gemma3_text", sliding_window_pattern=3) == "wwFwwFww"
    assert kernels("gemma3_text", _sliding_window_pattern=3) == "wwwwwFww"
    assert kernels("cohere2") == kernels("olmo3") == kernels("exaone4") == "wwwFwwwF"
    assert kernels("cwm") == kernels("granite_swa") == "FwwwFwww"
    assert kernels("mistral") == kernels("phi3") == kernels("starcoder2") == kernels("ministral") == "wwwwwwww"
    assert kernels("smollm3") == "FFFFFFFF"
    assert kernels("smollm3", use_sliding_window=True) == "FFFwFFFw"
    assert kernels("gemma2", layer_types=[FULL, SLIDING] * 4) == "FwFwFwFw"
    with pytest.raises(InvalidInput, match="sliding_window_pattern"):
        kernels("exaone4", sliding_window_pattern="LLLG")
