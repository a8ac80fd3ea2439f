"""Plan: which parts are measured, which are skipped and why, and what it will cost; decided once per run.

The decision depends on this machine's speed, so it is written to ``plan.json`` before the first unit. A resumed
run follows that file and therefore ends with the same curves.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catenary.provenance import digest
from catenary.store import write_json
from catenary.study.config import StudyConfig
from catenary.study.parts import Part, Skipped, wanted_parts
from catenary.study.source import Source


@dataclass(frozen=True)
class Estimate:
    """What one part costs on this machine: processor seconds, and the peak of resident memory."""

    seconds: float
    bytes: float

    @property
    def words(self) -> str:
        """Rounded, with units a person reads."""
        return f"about {minutes(self.seconds)} of processor time, {self.bytes / 2**30:.1f} GiB of memory"


@dataclass(frozen=True)
class Plan:
    """Parts to measure, parts left out, and the estimate for those to measure."""

    parts: tuple[Part, ...]
    skipped: tuple[Skipped, ...]
    seconds: float
    bytes: float


Estimator = Callable[[Part], Estimate]


def make_plan(config: StudyConfig, source: Source, estimate: Estimator, *, budget: float, memory: float) -> Plan:
    """Keep, in order, each part that can be measured and still fits ``budget`` seconds and ``memory`` bytes."""
    parts: list[Part] = []
    skipped: list[Skipped] = []
    seconds = largest = 0.0
    for part in wanted_parts(config):
        reason = _impossible(part, source)
        cost = Estimate(0.0, 0.0)
        if not reason:
            part, cost = fit_memory(part, estimate, memory)
        if not reason and cost.bytes > memory:
            reason = f"needs about {cost.bytes / 2**30:.1f} GiB, and {memory / 2**30:.1f} GiB are free"
        if not reason and seconds + cost.seconds > budget:
            reason = (
                f"would take about {minutes(cost.seconds)}, and {minutes(max(budget - seconds, 0))} of the budget "
                "are left; give --budget MINUTES, or a smaller --length, --windows or --nets"
            )
        if reason:
            skipped.append(Skipped(part.label, reason))
            continue
        parts.append(part)
        seconds += cost.seconds
        largest = max(largest, cost.bytes)
    return Plan(tuple(parts), tuple(skipped), seconds, largest)


def fit_memory(part: Part, estimate: Estimator, memory: float) -> tuple[Part, Estimate]:
    """The part and its estimate: with its layers recomputed where it would not fit otherwise, and then does."""
    cost = estimate(part)
    if cost.bytes <= memory or part.recompute:
        return part, cost
    again = replace(part, recompute=True)
    less = estimate(again)
    return (again, less) if less.bytes <= memory else (part, cost)


def minutes(seconds: float) -> str:
    """A duration as people say it: ``40 s``, ``12 min``."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _impossible(part: Part, source: Source) -> str:
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        return "torch and transformers are not installed: pip install 'catenary[models]'"
    if part.name == "untrained-random":
        return ""
    if part.weights == "pretrained" and source.weights is None:
        return source.no_weights
    return source.no_tokenizer if source.tokenizer is None else ""


def plan_once(path: Path, config: StudyConfig, budget: float, plan: Callable[[], Plan]) -> Plan:
    """The plan in ``path`` when it was made for this config and budget, else a new one, written there."""
    key = digest({"config": config.model_dump(mode="json"), "budget": budget})
    stored = _read(path)
    if stored.get("key") == key:
        wanted = {part.name: part for part in wanted_parts(config)}
        again = stored.get("recomputed", [])
        parts = tuple(replace(wanted[name], recompute=name in again) for name in stored["parts"])
        skipped = tuple(Skipped(**entry) for entry in stored["skipped"])
        return Plan(parts, skipped, stored["seconds"], stored["bytes"])
    made = plan()
    write_json(
        path,
        {
            "key": key,
            "parts": [part.name for part in made.parts],
            "recomputed": [part.name for part in made.parts if part.recompute],
            "skipped": [vars(s) for s in made.skipped],
            "seconds": made.seconds,
            "bytes": made.bytes,
        },
    )
    return made


def _read(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
