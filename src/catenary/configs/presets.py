"""The shipped presets: published configs reduced to the fields that matter, by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from catenary.errors import unknown


@dataclass(frozen=True)
class Preset:
    """One shipped config: its name, the hub id that published the values, other ids with the same, the values."""

    name: str
    source: str
    also: tuple[str, ...]
    config: Mapping[str, Any]


@cache
def list_presets() -> tuple[str, ...]:
    """Names of the shipped presets, sorted."""
    folder = files("catenary.configs").joinpath("presets")
    return tuple(sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json")))


def load_preset(name: str) -> Preset:
    """The preset called ``name``, upper or lower case; an unknown one is refused with the nearest name."""
    key = name.lower()
    if key not in list_presets():
        raise unknown("preset", name, list_presets())
    text = files("catenary.configs").joinpath("presets", f"{key}.json").read_text(encoding="utf-8")
    stored = json.loads(text)
    return Preset(key, stored["source"], tuple(stored.get("also", ())), stored["config"])


def preset_of_hub_id(repo: str) -> Preset | None:
    """The preset whose values were published under the hub id ``repo``, or None."""
    for name in list_presets():
        preset = load_preset(name)
        if repo.lower() in {published.lower() for published in (preset.source, *preset.also)}:
            return preset
    return None
