"""Run a grid: estimate every curve, measure what is missing in parallel, store curves, table and page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from catenary.errors import InvalidInput
from catenary.provenance import digest, versions
from catenary.reading import counted
from catenary.sample import Sample
from catenary.store import Run, read_record, read_run, records_csv, write_json, write_run, write_text
from catenary.study.curves import single_curves
from catenary.study.estimate import STARTING_SECONDS, part_estimator
from catenary.study.existing import existing_run
from catenary.study.grid import Cell, Grid, GridCurve
from catenary.study.inputs import build_windows, describe_windows
from catenary.study.measuring import part_units, provenance_of
from catenary.study.memory import free_memory, usable_memory
from catenary.study.observer import Observer, Silent
from catenary.study.parts import Skipped
from catenary.study.plan import Estimate, fit_memory, minutes
from catenary.study.source import Source, find_source, usable_source
from catenary.study.spent import Meter, processor_seconds
from catenary.study.units import Unit, collect_units
from catenary.study.workers import Task, Workers
from catenary.text.windows import Windows


@dataclass(frozen=True)
class Ready:
    """A cell with its source, its windows and its units."""

    cell: Cell
    source: Source
    windows: Mapping[Any, Windows]
    units: list[Unit]

    @property
    def tasks(self) -> list[Task]:
        """One task per unit."""
        return [Task(self.cell.config, self.cell.part, unit) for unit in self.units]

    def sample(self) -> Sample:
        """The stored units as a Sample that says what was measured."""
        told = provenance_of(self.cell.config, self.source, self.cell.part, self.windows)
        return replace(collect_units(self.cell.part, self.units), provenance=told)


def measure_grid(
    grid: Grid,
    folder: Path,
    *,
    workers: Workers | None = None,
    budget_minutes: float | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> Run:
    """Measure every cell of a grid and store one Sample per model and length, its seeds together.

    The numbers do not depend on the workers. A folder that holds a part of the very same grid is resumed at the
    unit. Curves that do not fit the budget are left out, which is decided once and stored in ``plan.json``.

    Raises:
        InvalidInput: bad models or settings, a folder with another run, an unwritable file, workers that keep dying.
        MissingResource: a model or an optional dependency is not there.
    """
    watch, meter = observer or Silent(), Meter(grid.settings.get("device", "cpu"))
    workers = workers or Workers()
    record = {"grid": grid.model_dump(mode="json")}
    finished = existing_run(folder, record, overwrite=overwrite)
    sources = {curve.name: _source(curve) for curve in grid.curves()}
    plan = _plan_once(folder / "plan.json", grid, sources, workers, budget_minutes)
    if finished is not None and finished.result["curve_names"] == plan["curves"]:
        watch.say("every curve of this grid is there already: nothing is measured again")
        return finished
    curves = [curve for curve in grid.curves() if curve.name in plan["curves"]]
    if not curves:
        raise InvalidInput(f"budget must allow at least one curve; {plan['skipped'][0]['reason']}")
    workers = _say(plan, curves, workers, watch)
    start = processor_seconds()
    ready = {
        curve.name: [
            _ready(_recomputing(cell, curve.name in plan["recomputed"]), sources[curve.name], folder)
            for cell in curve.cells
        ]
        for curve in curves
    }
    tasks = [task for cells in ready.values() for cell in cells for task in cell.tasks]
    preparing = processor_seconds() - start
    watch.begin("grid", sum(curve.total for curve in curves))
    try:
        tally = workers.measure(tasks, watch.advance)
    finally:
        watch.end()
    samples = {curve.name: _together(curve, [cell.sample() for cell in ready[curve.name]]) for curve in curves}
    table = _table(curves, samples)
    result = {
        "config": record,
        "curve_names": plan["curves"],
        "skipped": plan["skipped"],
        "versions": versions(),
        "table": table,
        "windows": {name: [{kind: describe_windows(w) for kind, w in cell.windows.items()} for cell in cells]
                    for name, cells in ready.items()},
    }  # fmt: skip
    write_text(folder / "grid.csv", records_csv(table))
    write_run(folder, samples, result)
    estimated = Estimate(_seconds(plan, workers), plan["bytes"])
    share = tally.windows / sum(curve.total for curve in curves)
    record_now = meter.record(estimated, share=share, seconds=preparing + tally.seconds, peak=tally.peak)
    write_json(folder / "run.json", record_now)
    return read_run(folder)


def _source(curve: GridCurve) -> Source:
    cell = curve.cells[0]
    return usable_source(find_source(cell.config), cell.config, cell.part)


def _recomputing(cell: Cell, recompute: bool) -> Cell:
    return replace(cell, part=replace(cell.part, recompute=recompute))


def _ready(cell: Cell, source: Source, folder: Path) -> Ready:
    windows = {kind: build_windows(kind, cell.config, source, cell.part) for kind in cell.part.tokens}
    return Ready(cell, source, windows, part_units(cell.config, source, cell.part, windows, folder))


def _plan_once(
    path: Path, grid: Grid, sources: Mapping[str, Source], workers: Workers, budget_minutes: float | None
) -> dict[str, Any]:
    """What is measured and what it costs: as stored for this grid and budget, else decided and stored now."""
    key = digest({"grid": grid.model_dump(mode="json"), "budget": budget_minutes})
    if path.is_file():
        stored = read_record(path)
        if stored.get("key") == key:
            return dict(stored)
    kept: list[str] = []
    recomputed: list[str] = []
    skipped: list[Skipped] = []
    seconds = largest = 0.0
    budget = float("inf") if budget_minutes is None else 60 * budget_minutes
    for curve in grid.curves():
        cell = curve.cells[0]
        free = usable_memory(cell.config.device)
        part, one = fit_memory(cell.part, part_estimator(cell.config, sources[curve.name]), free)
        cost = one.seconds * len(curve.cells)
        reason = ""
        if one.bytes > free:
            reason = f"needs about {one.bytes / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free"
        elif (seconds + cost) / workers.jobs > budget:
            reason = f"would take about {minutes(cost)} of processor time; give a larger --budget, or more --jobs"
        if reason:
            skipped.append(Skipped(curve.name, reason))
            continue
        kept.append(curve.name)
        recomputed += [curve.name] if part.recompute else []
        seconds, largest = seconds + cost, max(largest, one.bytes)
    plan = {"key": key, "curves": kept, "recomputed": recomputed, "skipped": [vars(s) for s in skipped],
            "seconds": seconds, "bytes": largest}  # fmt: skip
    write_json(path, plan)
    return plan


def _seconds(plan: Mapping[str, Any], workers: Workers) -> float:
    """Processor seconds of a plan with the start of every local worker; those of a cluster run already."""
    started = workers.jobs if workers.cluster is None and workers.jobs > 1 else 0
    return float(plan["seconds"] + started * STARTING_SECONDS)


def _say(plan: Mapping[str, Any], curves: Sequence[GridCurve], workers: Workers, watch: Observer) -> Workers:
    """Say what is to come, and take fewer local processes where all together would not fit in memory."""
    total = sum(curve.total for curve in curves)
    memory = plan["bytes"] / 2**30
    if workers.cluster is None and workers.jobs > 1:
        fit = max(1, int(free_memory("cpu") // plan["bytes"]))
        if fit < workers.jobs:
            watch.say(f"{fit} processes in place of {workers.jobs}: each needs {memory:.1f} GiB")
            workers = Workers(fit)
    where = f"the cluster {workers.cluster}" if workers.cluster else counted(workers.jobs, "local process")
    seconds = _seconds(plan, workers)
    watch.say(
        f"to measure: {counted(len(curves), 'curve')}, {counted(total, 'window')} on {where}; about {minutes(seconds)} "
        f"of processor time, {minutes(seconds / workers.jobs)} in all, {memory:.1f} GiB of memory for each process"
    )
    for entry in plan["skipped"]:
        watch.say(f"skipped {entry['name']}: {entry['reason']}")
    return workers


def _together(curve: GridCurve, samples: Sequence[Sample]) -> Sample:
    """The seeds of one curve in one Sample: as networks where they are untrained, else as more windows of the one."""
    axis = 2 if curve.cells[0].part.weights == "untrained" else 3
    first = samples[0]
    seeds = [cell.config.seed for cell in curve.cells]
    told = {**first.provenance, "seed": seeds[0], "seeds": seeds, "windows": [s.provenance["windows"] for s in samples]}
    if axis == 2:
        told["network_seeds"] = seeds
    energy = np.concatenate([sample.energy for sample in samples], axis=axis)
    return replace(first, energy=energy, label=curve.name, provenance=told)


def _table(curves: Sequence[GridCurve], samples: Mapping[str, Sample]) -> list[dict[str, Any]]:
    """One record per model, length and condition: its shape in words and numbers."""
    from catenary.shape import describe

    rows = []
    for curve in curves:
        for name, single in single_curves({curve.name: samples[curve.name]}).items():
            shape = describe(single)
            ratios = {key: shape[key].text for key in ("peak/trough", "first/mid", "last/mid")}
            rows.append({"curve": name, "model": curve.model, "length": curve.length,
                         "condition": single.conditions[0] if isinstance(single, Sample) else "",
                         "seeds": len(curve.cells), "shape": shape.verdict.words, **ratios})
    return rows


def processes() -> int:
    """One local process per core this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
