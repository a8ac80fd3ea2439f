"""Run a study: plan it, measure what is missing, predict, compare, store, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput, MissingResource
from catenary.provenance import versions
from catenary.reading import counted
from catenary.store import Curve, Run, read_run, write_json, write_run
from catenary.study.config import StudyConfig, Tokens
from catenary.study.curves import comparable_pairs, single_curves
from catenary.study.estimate import part_estimator
from catenary.study.existing import existing_run
from catenary.study.inputs import build_windows, describe_windows
from catenary.study.measuring import measure_part
from catenary.study.memory import usable_memory
from catenary.study.observer import Observer, Silent
from catenary.study.parts import TEXT, Part, Skipped
from catenary.study.plan import Estimate, Plan, make_plan, plan_once
from catenary.study.predictions import predict_for
from catenary.study.report import report_run
from catenary.study.source import Source, find_source, with_files
from catenary.study.spent import Meter, processor_seconds
from catenary.text.windows import Windows


@dataclass(frozen=True)
class Study:
    """A finished study: its run directory, the page to look at, and whether anything had to be measured."""

    run: Run
    report: Path
    reused: bool


@dataclass(frozen=True)
class Gathered:
    """Curves of a study, how their windows were made, what was skipped on the way, and seconds of measuring."""

    curves: Mapping[str, Curve]
    windows: Mapping[str, Any]
    skipped: tuple[Skipped, ...]
    seconds: float


def profile_model(
    config: StudyConfig,
    folder: Path,
    *,
    budget_minutes: float = 10.0,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> Study:
    """Predict, measure, compare, store and report one model, in ``folder``.

    A folder that holds a finished run of the same config is reused; one that holds a part of it is resumed; one
    that holds a run of another config is refused unless ``overwrite``.

    Raises:
        InvalidInput: bad config, or the folder holds another run.
        MissingResource: MODEL or an optional dependency is not there.
    """
    watch = observer or Silent()
    meter = Meter(config.device)
    source = find_source(config)
    watch.say(f"{source.located.source}\n{source.architecture.describe()}")
    finished = existing_run(folder, config.model_dump(mode="json"), overwrite=overwrite)
    plan = plan_once(folder / "plan.json", config, budget_minutes, lambda: _plan(config, source, budget_minutes))
    if finished is not None and finished.result["parts"] == [part.name for part in plan.parts]:
        watch.say("every curve of this run is there already: nothing is measured again")
        return Study(finished, report_run(finished), True)
    _say_plan(plan, watch)
    gathered = _gather(config, source, plan, folder, watch)
    watch.say("comparing")
    write_run(folder, gathered.curves, _result(config, source, plan, gathered))
    write_json(folder / "run.json", meter.record(Estimate(plan.seconds, plan.bytes), seconds=gathered.seconds))
    run = read_run(folder)
    watch.say("writing the report")
    return Study(run, report_run(run), False)


def _plan(config: StudyConfig, source: Source, budget_minutes: float) -> Plan:
    estimator = part_estimator(config, source)
    return make_plan(config, source, estimator, budget=60 * budget_minutes, memory=usable_memory(config.device))


def _gather(config: StudyConfig, source: Source, plan: Plan, folder: Path, watch: Observer) -> Gathered:
    skipped = list(plan.skipped)
    if any(TEXT & set(part.tokens) for part in plan.parts):
        try:
            source = with_files(source, config)
        except MissingResource as error:
            watch.say(str(error))
    made: dict[tuple[Tokens, int], Windows] = {}  # untrained and trained networks read the same windows
    start = processor_seconds()
    prepared = [(part, _windows(config, source, part, made, skipped, watch)) for part in plan.parts]
    seconds = processor_seconds() - start
    curves: dict[str, Curve] = {"predicted-random": predict_for(source.architecture, config.length, "random", None)}
    described: dict[str, Any] = {}
    for part, windows in prepared:
        if not windows:
            continue
        part = replace(part, tokens=tuple(windows))
        described[part.name] = {tokens: describe_windows(w) for tokens, w in windows.items()}
        if part.weights == "untrained":
            for tokens in part.tokens:
                watch.say(f"predicting {tokens} windows from the config alone")
                curves[f"predicted-{tokens}"] = predict_for(
                    source.architecture, config.length, tokens, windows[tokens]
                )
        start = processor_seconds()
        curves[part.name] = measure_part(config, source, part, windows, folder, watch)
        seconds += processor_seconds() - start
    return Gathered(curves, described, tuple(skipped), seconds)


def _windows(
    config: StudyConfig,
    source: Source,
    part: Part,
    made: dict[tuple[Tokens, int], Windows],
    skipped: list[Skipped],
    watch: Observer,
) -> dict[Tokens, Windows]:
    """The windows of a part, before anything is measured; what the user chose must work, a default may be skipped."""
    windows: dict[Tokens, Windows] = {}
    for tokens in part.tokens:
        key = (tokens, part.nets * part.windows)
        try:
            if key not in made:
                made[key] = build_windows(tokens, config, source, part)
            windows[tokens] = made[key]
        except InvalidInput as error:
            if config.documents is not None or config.chunk is not None:
                raise
            skipped.append(Skipped(f"{part.label}, {tokens}", str(error)))
            watch.say(f"skipped {part.label}, {tokens}: {error}")
    return windows


def _result(config: StudyConfig, source: Source, plan: Plan, gathered: Gathered) -> dict[str, Any]:
    from catenary.comparison import compare
    from catenary.shape import describe

    single = single_curves(gathered.curves)
    pairs = comparable_pairs(single)
    return {
        "config": config.model_dump(mode="json"),
        "parts": [part.name for part in plan.parts],
        "skipped": [vars(s) for s in gathered.skipped],
        "model": {"source": source.located.source, "name": source.located.name, "config": dict(source.located.config)},
        "architecture": source.architecture.describe(),
        "versions": versions(),
        "windows": dict(gathered.windows),
        "shapes": {name: describe(curve).to_dict() for name, curve in single.items()},
        "comparisons": [{**compare(single[a], single[b]).to_dict(), "a": a, "b": b} for a, b in pairs],
    }


def _say_plan(plan: Plan, watch: Observer) -> None:
    if plan.parts:
        names = ", ".join(f"{part.label} ({counted(part.total, 'window')})" for part in plan.parts)
        watch.say(f"to measure: {names}; {Estimate(plan.seconds, plan.bytes).words}")
    for skipped in plan.skipped:
        watch.say(f"skipped {skipped.name}: {skipped.reason}")
