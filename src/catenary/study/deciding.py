"""The settings that decide a measured number, out of all that a study can be given: what a record keeps.

A record of more than that would tell two equal results apart; one of less would take unlike results for the same.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from catenary.study.config import StudyConfig
from catenary.study.parts import TEXT

ALWAYS = ("model", "revision", "trust_remote_code", "length", "seed", "device", "dtype", "attention")
"""What every measurement depends on: which network, how it runs, and the seed of windows and probes."""


def deciding(config: StudyConfig, weights: Collection[str], tokens: Collection[str], *more: str) -> dict[str, Any]:
    """The deciding settings as JSON values: of every measurement, of these weights and tokens, and ``more``.

    Documents decide nothing where none are read, nor does ``init_std`` where no network is drawn. How many windows,
    networks and probes there are is not among a study's settings here: each command says that itself.
    """
    names = [*ALWAYS, *more]
    if "untrained" in weights:
        names.append("init_std")
    kinds = {*tokens}
    if kinds & TEXT:
        names += ["tokenizer", "bos"]
    if kinds & (TEXT - {"uniform"}):
        names.append("documents")
    if kinds & {"chunked", "shuffled"}:
        names.append("chunk")
    return config.model_dump(mode="json", include=set(names))
