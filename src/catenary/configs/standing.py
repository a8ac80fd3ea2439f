"""Where each model type stands: verified against real networks, approximate, or refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from catenary.configs.class_facts import class_facts
from catenary.configs.family import FAMILIES
from catenary.configs.refusals import REFUSALS
from catenary.errors import unknown

Kind = Literal["verified", "approximate", "refused"]


@dataclass(frozen=True)
class Standing:
    """One model type: its standing, what is left out or why it is refused, and the type its text part is read as."""

    model_type: str
    kind: Kind
    reason: str = ""
    text: str | None = None


def standing(model_type: str) -> Standing:
    """The standing of ``model_type``; a type that wraps a text decoder has its text part's.

    Raises:
        InvalidInput: a type that has neither a family nor a refusal.
    """
    if model_type in REFUSALS:
        return Standing(model_type, "refused", REFUSALS[model_type])
    if model_type in FAMILIES:
        left_out = getattr(FAMILIES[model_type], "approximate", "")
        return Standing(model_type, "approximate" if left_out else "verified", left_out)
    text = class_facts(model_type).text
    if text is None:
        raise unknown("model_type", model_type, [*FAMILIES, *REFUSALS])
    inner = standing(text)
    return Standing(model_type, inner.kind, inner.reason, text)


def standing_words(model_type: str) -> str:
    """The standing of a described type in a sentence, with the measured error where there is one."""
    found = standing(model_type)
    error = measured_errors().get(model_type, {}).get("median")
    if error is not None:
        measured = f"median error {error:.2g} dex against untrained networks of width 128"
        return f"Model type {model_type}: {found.kind}, {measured}."
    if found.kind == "verified":
        return f"Model type {model_type}: derived; networks of this very type were not measured."
    return f"Model type {model_type}: {found.kind}."


@cache
def measured_errors() -> Mapping[str, Mapping[str, Any]]:
    """The shipped measurements by model type, written by scripts/verify_families.py.

    ``median`` and ``largest``: |log10 predicted/measured| of the rms over position groups; ``plain``: the median of
    the plain law, where the type has a ``feature`` of its own; ``floor``: the measurement's median standard error.
    """
    text = files("catenary.configs").joinpath("standing.json").read_text(encoding="utf-8")
    types: Mapping[str, Mapping[str, Any]] = json.loads(text)["types"]
    return types
