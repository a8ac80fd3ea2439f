"""Tiny configs of all described model types; several of one type are told apart by a suffix."""

from __future__ import annotations

from families.case import Case
from families.decoders import DECODER_CASES
from families.dense import DENSE_CASES
from families.experts import EXPERT_CASES
from families.latent import LATENT_CASES
from families.learned import LEARNED_CASES
from families.recurrent import RECURRENT_CASES

TINY: dict[str, Case] = {
    **DENSE_CASES, **LEARNED_CASES, **DECODER_CASES, **EXPERT_CASES, **LATENT_CASES, **RECURRENT_CASES,
}  # fmt: skip


def type_of(name: str) -> str:
    """The model type of the case called ``name``."""
    return str(TINY[name].config.get("model_type", name))
