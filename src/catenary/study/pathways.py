"""Pathways of one model on one kind of input: the terms of every layer, and whole profiles with some paths alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from catenary.sample import Sample
from catenary.study.config import StudyConfig
from catenary.study.finished import Finished
from catenary.study.inputs import build_windows
from catenary.study.measuring import identity_of, load_net
from catenary.study.observer import Observer, counting
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
    folder: Path,
    layers: Sequence[int] | None = None,
) -> PathwaysStudy:
    """Split every layer of one network, fed windows of one kind; finished windows are kept in ``folder``.

    Raises:
        InvalidInput: unknown words, missing weights or tokenizer, and what loading and measuring refuse.
    """
    from catenary.measure.pathways import measure_paths, measure_pathways

    part = part_of(Request(weights, (tokens,), 1, windows, probes, "probes", None))
    held = find_source(config)
    observer.say(f"{held.located.source}\n{held.architecture.describe()}")
    held = usable_source(held, config, part)
    made = build_windows(part.tokens[0], config, held, part)
    model = load_net(config, part, 0)
    kept = Finished(folder, identity_of(config, held, part))
    asked: dict[str, Any] = {"probes": probes, "seed": config.seed}
    with counting(observer, "profiles by path", windows) as progress:
        keep = kept.windows("paths", made, **asked)
        paths = measure_paths(model, made, **asked, progress=progress, keep=keep)
    with counting(observer, "terms per layer", windows * len(model.anatomy.layers)) as progress:
        keep = kept.windows("terms", made, **asked, source=source, layers=layers)
        terms = measure_pathways(
            model, made, **asked, source=source, layers=layers, progress=progress, keep=keep
        )
    untrained = part.weights == "untrained"
    return PathwaysStudy(terms, paths, held.architecture.logit_variance if untrained else None)
