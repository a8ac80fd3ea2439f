"""Pathways of one model on one kind of input: the terms of every layer, and whole profiles with some paths alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from catenary.sample import Sample
from catenary.study.config import StudyConfig
from catenary.study.inputs import build_windows
from catenary.study.measuring import load_net
from catenary.study.observer import Observer
from catenary.study.single import Request, part_of
from catenary.study.source import find_source, usable_source

if TYPE_CHECKING:
    from catenary.measure.pathways_result import Pathways


@dataclass(frozen=True, eq=False)
class PathwaysStudy:
    """What was measured, and the variance of the attention logits at birth where the network is untrained."""

    pathways: Pathways
    paths: Sample
    logit_variance: float | None


def study_pathways(
    config: StudyConfig,
    observer: Observer,
    *,
    weights: str,
    tokens: str,
    windows: int,
    probes: int,
    source: Literal["embeddings", "layer"],
    layers: Sequence[int] | None = None,
) -> PathwaysStudy:
    """Split every layer of one network, fed windows of one kind.

    Raises:
        InvalidInput: unknown words, missing weights or tokenizer, and what loading and measuring refuse.
    """
    from catenary.measure.pathways import measure_paths, measure_pathways

    part = part_of(Request(weights, (tokens,), 1, windows, probes, "probes", None))
    found = find_source(config)
    observer.say(f"{found.located.source}\n{found.architecture.describe()}")
    found = usable_source(found, config, part)
    made = build_windows(part.tokens[0], config, found, part)
    model = load_net(config, part, 0)
    observer.begin("profiles by path", 1)
    try:
        paths = measure_paths(model, made, probes=probes, seed=config.seed)
        observer.advance(1)
    finally:
        observer.end()
    total = windows * len(model.anatomy.layers)
    observer.begin("terms per layer", total)
    try:
        terms = measure_pathways(
            model, made, probes=probes, seed=config.seed, source=source, layers=layers,
            progress=lambda done, _: observer.advance(1),
        )
    finally:
        observer.end()
    untrained = part.weights == "untrained"
    return PathwaysStudy(terms, paths, found.architecture.logit_variance if untrained else None)
