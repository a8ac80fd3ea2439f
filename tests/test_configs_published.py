"""Every published config that is at hand: read, or refused by name, in one line and under a second."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from catenary.architecture import Architecture
from catenary.configs.family import FAMILIES
from catenary.configs.read import read_config
from catenary.errors import InvalidInput, NotApplicable

COLLECTION = Path(__file__).resolve().parents[2] / "shared" / "facts" / "configs.json"

REFUSED_WINDOWS = {
    "Felladrin/TinyMistral-248M-Chat-v2": 1024,
    "Undi95/Mistral-RP-0.1-7B": 4096,
    "h2oai/h2o-danube-1.8b-base": 4096,
    "mistral-7b-mlc-edited/Mistral-7B-v0.1": 4096,
    "relaxml/Mistral-7b-E8P-2Bit": 4096,
}
"""Models of a described family whose window bites."""


def collection() -> list[dict[str, Any]]:
    if not COLLECTION.exists():
        pytest.skip("the collection of published configs is not beside this checkout (../shared/facts/configs.json)")
    entries: list[dict[str, Any]] = json.loads(COLLECTION.read_text(encoding="utf-8"))
    return entries


def outcome(config: dict[str, Any]) -> tuple[Architecture | None, str, type[Exception] | None]:
    """The architecture, or the message and kind of the refusal; any other exception is a failure."""
    try:
        return read_config(config), "", None
    except InvalidInput as error:
        return None, str(error), type(error)


def test_every_published_config_is_read_or_refused_by_name() -> None:
    entries = collection()
    assert len(entries) > 100
    counts: Counter[str] = Counter()
    for entry in entries:
        model, config = entry["model"], entry["config"]
        text = config.get("text_config") or {}
        part = config if config.get("model_type") in FAMILIES else text
        start = time.process_time()
        architecture, message, kind = outcome(config)
        assert time.process_time() - start < 10, model
        assert "\n" not in message
        if model in REFUSED_WINDOWS:
            assert f"sliding_window={REFUSED_WINDOWS[model]}" in message
            counts["window"] += 1
        elif "model_type" not in config:
            assert "model_type is missing" in message
            assert 'add "model_type": "gpt2"' in message
            counts["no type"] += 1
        elif part.get("model_type") in FAMILIES:
            assert architecture is not None, f"{model}: {message}"
            assert architecture.depth == part.get("num_hidden_layers", part.get("n_layer"))
            assert architecture.width == part.get("hidden_size", part.get("n_embd"))
            counts["read"] += 1
        else:
            assert kind is NotApplicable, f"{model}: {message}"
            assert repr(config["model_type"]) in message
            counts["family"] += 1
    assert counts["window"] == len(REFUSED_WINDOWS)
    assert counts["read"] >= 40
    assert counts["no type"] == 3
