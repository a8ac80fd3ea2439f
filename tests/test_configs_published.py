"""Every published config that is at hand: read, or refused by name, in one line and under a second."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catenary.architecture import Architecture, Bottleneck, Causal, Window
from catenary.configs.read import read_config, text_part
from catenary.errors import InvalidInput, NotApplicable

COLLECTION = Path(__file__).resolve().parents[2] / "shared" / "facts" / "configs.json"

def collection() -> list[dict[str, Any]]:
    if not COLLECTION.exists():
        pytest.skip("the collection of published configs is not beside this checkout")
    entries: list[dict[str, Any]] = json.loads(COLLECTION.read_text(encoding="utf-8"))
    return entries


def outcome(config: dict[str, Any]) -> tuple[Architecture | None, str, type[Exception] | None]:
    """The architecture, or the message and kind of the refusal; any other exception is a failure."""
    try:
        return read_config(config), "", None
    except InvalidInput as error:
        return None, str(error), type(error)


def facts_of(config: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The part that describes the text decoder, and the type it is read as; an empty type where it is refused."""
    try:
        model_type, part = text_part(config)
    except InvalidInput:
        return config, ""
    return dict(part), model_type


def first(part: dict[str, Any], *names: str) -> Any:
    """The value under the first of ``names`` that the config has."""
    return next((part[name] for name in names if part.get(name) is not None), None)


def kernels(architecture: Architecture) -> list[list[Any]]:
    """The kernels of each layer's head groups, for layers that have attention."""
    return [[group.kernel for mix in layer.attentions for group in mix.groups] for layer in architecture.layers]


def test_every_published_config_is_read_or_refused_by_name() -> None:
    entries = collection()
    assert len(entries) > 100
    counts: Counter[str] = Counter()
    for entry in entries:
        model, config = entry["model"], entry["config"]
        start = time.process_time()
        architecture, message, kind = outcome(config)
        assert time.process_time() - start < 10, model
        assert "\n" not in message
        part, model_type = facts_of(config)
        if "model_type" not in config:
            assert 'add "model_type": "gpt2"' in message
            counts["no type"] += 1
        elif not model_type:
            assert kind is NotApplicable, f"{model}: {message}"
            counts["refused type"] += 1
        elif architecture is None:
            counts["refused"] += 1
            assert entry["completeness"].startswith(("partial", "edited", "vendored")) or model in REFUSED, (
                f"{model}: {message}"
            )
            assert model not in REFUSED or REFUSED[model] in message, f"{model}: {message}"
        else:
            counts["read"] += 1
            depth = first(part, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
            assert architecture.depth == depth - len(part.get("cross_attention_layers") or ()), model
            width = first(part, "hidden_size", "n_embd", "d_model")
            assert architecture.width == width, model
            if entry["completeness"].startswith("partial"):
                assert architecture.assumed, f"{model}: what is missing is named"
    print(counts)
    assert counts["read"] >= 120
    assert counts["no type"] == 3


REFUSED: dict[str, str] = {}
"""Complete configs of described types that are refused all the same, with the words of the refusal."""


SAID: dict[str, Callable[[Architecture], bool]] = {
    # What decides, as facts/configs.md has it: one line per rule.
    "Felladrin/TinyMistral-248M-Chat-v2": lambda a: kernels(a) == [[Window(1024)]] * 12,
    "google/gemma-2-9b-it": lambda a: kernels(a)[:3] == [[Window(4096)], [Causal()], [Window(4096)]],
    "google/gemma-3-1b-it": lambda a: [k == [Causal()] for k in kernels(a)][:7] == [False] * 5 + [True, False],
    "huihui-ai/c4ai-command-r7b-12-2024": lambda a: all(
        (layer.attention.rotary is None) is (kernel == [Causal()])
        for layer, kernel in zip(a.layers, kernels(a), strict=True)
    ),
    "LGAI-EXAONE/EXAONE-4.0-32B": lambda a: all(
        (layer.attention.rotary is None) is (kernel == [Causal()]) and all(b.before is None for b in layer.branches)
        for layer, kernel in zip(a.layers, kernels(a), strict=True)
    ),
    "huihui-ai/granite-3.2-8b-instruct-abliterated": lambda a: (
        {b.scale for layer in a.layers for b in layer.branches} == {0.22} and a.embedding.scale == 12.0
    ),
    "microsoft/phi-2": lambda a: all(len(layer.steps) == 1 for layer in a.layers),
    "stabilityai/stablelm-2-zephyr-1_6b": lambda a: all(len(layer.steps) == 2 for layer in a.layers),
    "togethercomputer/RedPajama-INCITE-Base-3B-v1": lambda a: all(len(layer.steps) == 2 for layer in a.layers),
    "EleutherAI/pythia-6.9b": lambda a: all(len(layer.steps) == 1 for layer in a.layers),
    "tiiuae/falcon-40b": lambda a: all(len(layer.steps) == 1 for layer in a.layers),
    "allenai/OLMo-2-0325-32B": lambda a: all(
        b.before is None and b.after is not None for layer in a.layers for b in layer.branches
    ),
    "google/gemma-2b": lambda a: a.embedding.std == 0.02 * 2048**0.5,
    "mosaicml/mpt-7b": lambda a: a.position == "alibi" and a.embedding.position_std == 0,
    "bigcode/starcoder2-7b": lambda a: kernels(a) == [[Window(4096)]] * 32 and a.embedding.std == 0.018042,
    "nvidia/Minitron-4B-Base": lambda a: a.layers[0].attention.head_dim == 128 and a.embedding.std == 0.0134,
    "HuggingFaceTB/SmolLM2-135M-Instruct": lambda a: a.embedding.std == 1 / 24,
    "microsoft/Phi-3.5-mini-instruct": lambda a: kernels(a)[0] == [Window(262144)],
    "nvidia/NVIDIA-Nemotron-3-Super-120B": lambda a: all(
        mix.experts is None or (mix.bottleneck == Bottleneck(1024, 0.02, 0.02) and mix.experts.top == 22
                                and mix.experts.shared.bottleneck is None and mix.experts.shared.width == 5376)
        for layer in a.layers for mix in layer.feed_forwards
    ),
    "openai-community/gpt2-large": lambda a: a.layers[0].attention.output_std == 0.02 / 72**0.5,
    "AnirudhRajagopalan1201/tinystories-custom-8M": lambda a: kernels(a)[:2] == [[Causal()], [Window(256)]],
    "ccui46/hazardworld_per_chunk": lambda a: all(
        b.before is not None and b.after is not None for layer in a.layers for b in layer.branches
    ),
}  # fmt: skip


@pytest.mark.parametrize("model", list(SAID))
def test_published_configs_say_what_they_say(model: str) -> None:
    entry = next(entry for entry in collection() if entry["model"].startswith(model))
    assert SAID[model](read_config(entry["config"]))
