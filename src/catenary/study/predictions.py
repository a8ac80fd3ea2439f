"""Predictions for the inputs that are measured: one profile per condition, named ``predicted-CONDITION``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from catenary.architecture import Architecture
from catenary.profile import Profile
from catenary.study.config import Tokens
from catenary.text.windows import Windows

_WORDS: Mapping[Tokens, str] = {
    "random": "distinct tokens",
    "zipf": "Zipf tokens",
    "vanilla": "documents",
    "chunked": "chunked documents",
    "shuffled": "shuffled documents",
    "uniform": "uniform tokens",
}


def predict_for(architecture: Architecture, length: int, tokens: Tokens, windows: Windows | None) -> Profile:
    """The birth law for one condition; ``windows`` are needed wherever tokens repeat."""
    from catenary.theory.prediction import predict

    if tokens == "random" or windows is None:
        profile = predict(architecture, length=length)
    else:
        profile = predict(architecture, length=length, ids=windows.ids)
    label = f"predicted at birth, {_WORDS[tokens]}"
    return replace(profile, label=label, provenance={**profile.provenance, "condition": tokens})
