"""Measure one part of a study on its windows, and say in the Sample's provenance what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catenary.provenance import digest, versions
from catenary.sample import Sample
from catenary.study.config import StudyConfig, Tokens
from catenary.study.observer import Observer
from catenary.study.parts import TEXT, Part
from catenary.study.source import Source
from catenary.study.units import LoadNet, Unit, measure_units, units_of
from catenary.text.windows import Windows

if TYPE_CHECKING:
    from catenary.models.model import Model

_DECIDES = {"init_std", "rope", "device", "dtype", "attention", "seed", "batch_size"}
"""Fields of the config that change a measured number; the rest only says what is measured."""


def measure_part(
    config: StudyConfig,
    source: Source,
    part: Part,
    windows: Mapping[Tokens, Windows],
    folder: Path,
    watch: Observer,
    *,
    load: LoadNet | None = None,
) -> Sample:
    """Measure every unit of ``part`` that is not in ``folder/units`` yet, and return its Sample.

    ``load`` gives network number n, where it is held already; by default it is loaded when a unit needs it.
    """
    units = part_units(config, source, part, windows, folder)
    fresh = load or (lambda net: load_net(config, part, net))
    watch.begin(part.label, part.total)
    try:
        sample = measure_units(part, units, fresh, config.seed, watch.advance)
    finally:
        watch.end()
    return replace(sample, provenance=provenance_of(config, source, part, windows))


def part_units(
    config: StudyConfig, source: Source, part: Part, windows: Mapping[Tokens, Windows], folder: Path
) -> list[Unit]:
    """Every unit of a part, with its file in ``folder/units``."""
    identity = identity_of(config, source, part)
    return list(units_of(part, windows, folder / "units", batch=config.batch_size, identity=identity))


def identity_of(config: StudyConfig, source: Source, part: Part) -> dict[str, Any]:
    """What decides a network's numbers beside what it is fed, for a unit's digest."""
    return {
        "weights": _network_digest(source, part),
        "config": config.model_dump(mode="json", include=_DECIDES),
        "versions": versions(),
    }


def _network_digest(source: Source, part: Part) -> str:
    return source.weights_digest if part.weights == "pretrained" else source.config_digest


def provenance_of(
    config: StudyConfig, source: Source, part: Part, windows: Mapping[Tokens, Windows]
) -> dict[str, Any]:
    """What a part's Sample says about itself."""
    untrained = part.weights == "untrained"
    return {
        "model": source.located.name,
        "weights": part.weights,
        "network": _network_digest(source, part),
        "network_seeds": [config.seed + net for net in range(part.nets)] if untrained else None,
        "initialisation": source.architecture.initialisation if untrained else None,
        "windows": {tokens: digest({"ids": w.ids.tolist()}) for tokens, w in windows.items()},
        "seed": config.seed,
        "probes": part.probes,
        "method": part.method,
        **part.aim.record(),
        "device": config.device.split(":")[0],
        "dtype": config.dtype,
        "attention": config.attention,
        "rope": config.rope,
        "versions": versions(),
    }


def load_net(config: StudyConfig, part: Part, net: int) -> Model:
    """The network number ``net`` of a part: a fresh one with seed + net, or the one with its weights."""
    from catenary.models.allocator import release_freed_blocks
    from catenary.models.load import load

    if part.recompute:
        release_freed_blocks()
    untrained = part.weights == "untrained"
    only_vectors = not TEXT & set(part.tokens) and part.aim.kind == "stream"
    return load(
        config.model,
        weights=part.weights,
        seed=config.seed + net if untrained else 0,
        init_std=config.init_std if untrained else None,
        rope=config.rope,
        device=config.device,
        dtype=config.dtype,
        attention=config.attention,
        revision=config.revision,
        trust_remote_code=config.trust_remote_code,
        vocabulary=16 if untrained and only_vectors else None,
    )
