"""What transformers' config classes take for fields that are left out, shipped so that reading needs no transformers.

`class_defaults.json` is written by scripts/class_defaults.py from the classes themselves, and tests compare it with the
installed ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

THETA = 10_000.0
"""transformers' RoPE base where neither the config nor the class gives one."""


@dataclass(frozen=True)
class ClassFacts:
    """One config class: ``defaults`` by field, ``names`` from common field names to the class's own, RoPE ``theta``
    (a mapping where layers differ), the ``text`` part's model type of a class that wraps one, and whether transformers
    builds a ``causal`` language model of the type itself."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    theta: float | Mapping[str, float] = THETA
    text: str | None = None
    causal: bool = False


@cache
def _table() -> Mapping[str, Any]:
    text = files("catenary.configs").joinpath("class_defaults.json").read_text(encoding="utf-8")
    types: Mapping[str, Any] = json.loads(text)["types"]
    return types


@cache
def class_facts(model_type: str) -> ClassFacts:
    """The facts of ``model_type``; empty ones for a type that transformers does not have."""
    return ClassFacts(**_table().get(model_type, {}))


def causal_types() -> tuple[str, ...]:
    """Every model type of which transformers builds a causal language model, sorted."""
    return tuple(kind for kind, row in _table().items() if row["causal"])
