"""Result: a finished experiment on disk, its numbers as JSON beside its figures and its data."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catenary.figures import to_svg
from catenary.provenance import digest, versions
from catenary.reading import Reading
from catenary.reproduce.claim import interval_of
from catenary.reproduce.experiment import Experiment
from catenary.reproduce.finding import Finding
from catenary.store import make_folder, write_json, write_text


@dataclass(frozen=True)
class Result:
    """What was stored of one experiment: what was run, its numbers, its figures' names, and its settings."""

    study: str
    ran: str
    settings: Mapping[str, Any]
    readings: Mapping[str, Reading]
    figures: tuple[str, ...]
    versions: Mapping[str, str]


def result_file(folder: Path, experiment: Experiment) -> Path:
    """Where an experiment's numbers lie under ``folder``."""
    return folder / experiment.paper / f"{experiment.name}.json"


def is_current(file: Path, experiment: Experiment, settings: Mapping[str, Any]) -> bool:
    """Whether ``file`` holds this experiment at these settings, finished, with every reading that its claims name."""
    if not file.is_file():
        return False
    entry = json.loads(file.read_text(encoding="utf-8"))
    held = {row["name"] for row in entry.get("readings", ())}
    asked = {claim.reading for claim in experiment.claims if claim.reading}
    return bool(entry.get("key") == _key(experiment, settings) and asked <= held)


def write_result(folder: Path, experiment: Experiment, settings: Mapping[str, Any], finding: Finding) -> Path:
    """Write figures and data, and last the numbers: their presence says that the experiment is complete."""
    file = result_file(folder, experiment)
    make_folder(file.parent)
    names = tuple(f"{experiment.name}-{plate.name}" for plate in finding.plates)
    for name, plate in zip(names, finding.plates, strict=True):
        write_text(file.parent / f"{name}.svg", to_svg(plate.chart))
    if finding.rows:
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(finding.fields)
        writer.writerows(finding.rows)
        write_text(file.with_suffix(".csv"), table.getvalue())
    captions = [{"name": n, "caption": p.caption} for n, p in zip(names, finding.plates, strict=True)]
    write_json(
        file,
        {
            "key": _key(experiment, settings), "study": experiment.study, "ran": finding.ran,
            "settings": dict(settings), "readings": [reading.to_dict() for reading in finding.readings],
            "figures": captions, "versions": versions(),
        },
    )  # fmt: skip
    return file


def read_result(file: Path) -> Result:
    """What ``write_result`` wrote."""
    entry = json.loads(file.read_text(encoding="utf-8"))
    readings = {
        row["name"]: Reading(**{**row, "value": float("nan") if row["value"] is None else row["value"]})
        for row in entry["readings"]
    }
    figures = tuple(figure["name"] for figure in entry["figures"])
    return Result(entry["study"], entry["ran"], entry["settings"], readings, figures, entry["versions"])


ROUNDING = 1e-5
"""Relative: single-precision networks agree to 1e-7 between processors, which leaves room for what is made of them."""


def disagreements(experiment: Experiment, committed: Result, rerun: Result) -> list[str]:
    """In words, every number of a rerun whose interval misses the committed one, and every verdict that changed.

    An interval over windows or networks says nothing of rounding, and has no width where no draw moves the number:
    two may miss each other by ``ROUNDING``. A floor includes rounding.
    """
    said = []
    for name, old in committed.readings.items():
        new = rerun.readings.get(name)
        if new is None:
            said.append(f"{experiment.name}: {name} is missing")
            continue
        (a, b), (c, d) = interval_of(old), interval_of(new)
        slack = ROUNDING * abs(old.value) if old.floor is None and new.floor is None else 0.0
        if not (a <= d + slack and c <= b + slack):
            said.append(f"{experiment.name}: {name} was {old.text} and is {new.text}")
    for claim in experiment.claims:
        if claim.reading:
            old_verdict = claim.verdict(committed.readings.get(claim.reading))
            new_verdict = claim.verdict(rerun.readings.get(claim.reading))
            if old_verdict != new_verdict:
                said.append(f"{experiment.name}: claim {claim.id} was '{old_verdict}' and is '{new_verdict}'")
    return said


def _key(experiment: Experiment, settings: Mapping[str, Any]) -> str:
    return digest({"study": experiment.study, "settings": dict(settings)})
