"""One sample at every position is one unit on disk, so that a stopped run loses at most the sample in flight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.errors import InvalidInput
from catenary.provenance import digest
from catenary.retrieval.case import Case, Task
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.scoring.metrics import JUDGES, judge
from catenary.retrieval.scoring.scored import Scored, scored_from
from catenary.retrieval.scoring.scorer import Scorer
from catenary.store import read_record, write_json

BASELINES: Mapping[str, Callable[[Task, int], Case | None]] = {
    "closed book": lambda task, sample: task.closed_book(sample),
    "oracle": lambda task, sample: task.oracle(sample),
}
"""Prompts beside the positions: the question alone, and with its own document alone."""


@dataclass(frozen=True)
class Unit:
    """One sample: its cases by place (a slot, or a baseline's name), and where their results are kept."""

    sample: int
    places: tuple[int | str, ...]
    cases: tuple[Case, ...]
    path: Path | None


@dataclass(frozen=True)
class Finished:
    """A unit and its results, in the order of its places."""

    unit: Unit
    results: tuple[Scored, ...]


def make_unit(task: Task, sample: int, slots: Sequence[int], identity: Mapping[str, Any], folder: Path | None) -> Unit:
    """The unit of one sample; its file's name carries a digest of the scorer's identity and of every text in it."""
    placed: list[tuple[int | str, Case]] = [(slot, task.case(sample, slot)) for slot in slots]
    for name, make in BASELINES.items():
        case = make(task, sample)
        if case is not None:
            placed.append((name, case))
    places, cases = zip(*placed, strict=True)
    if folder is None:
        return Unit(sample, places, cases, None)
    texts = [[case.text, case.lead, list(case.answers)] for case in cases]
    key = digest({"scorer": dict(identity), "places": list(places), "texts": texts})
    return Unit(sample, places, cases, folder / "units" / f"sample-{sample:05d}-{key}.json")


def is_finished(unit: Unit) -> bool:
    """Whether the unit's results are on disk."""
    return unit.path is not None and unit.path.is_file()


def score_unit(scorer: Scorer, unit: Unit) -> Finished:
    """Score a unit, and keep the results on disk where it has a place there."""
    results = scorer.score(unit.cases)
    assert len(results) == len(unit.cases)
    if unit.path is not None:
        kept = [{"place": place, **one.to_dict()} for place, one in zip(unit.places, results, strict=True)]
        write_json(unit.path, {"sample": unit.cases[0].sample, "results": kept})
        return read_unit(unit)
    return Finished(unit, tuple(results))


def read_unit(unit: Unit) -> Finished:
    """The results of a finished unit.

    Raises:
        InvalidInput: its file was changed by hand.
    """
    assert unit.path is not None
    record = read_record(unit.path)
    try:
        kept = {one.pop("place"): scored_from(one) for one in record["results"]}
        return Finished(unit, tuple(kept[place] for place in unit.places))
    except (KeyError, TypeError, AttributeError) as fault:
        raise InvalidInput(f"{unit.path} is not what was written there: {fault}; remove it") from fault


def collect(
    task: Task, slots: Sequence[int], finished: Sequence[Finished], *, logp: bool, provenance: Mapping[str, Any]
) -> Outcomes:
    """Outcomes of finished units, one row each; metrics of a baseline are NaN where a sample has none."""
    names = (*(("logp",) if logp else ()), *JUDGES)
    width = len(slots)
    values = {name: np.full((len(finished), width), np.nan) for name in names}
    bases: dict[str, dict[str, Float64[np.ndarray, " n"]]] = {}
    for row, one in enumerate(finished):
        for column, (place, case, result) in enumerate(
            zip(one.unit.places, one.unit.cases, one.results, strict=True)
        ):
            if result.skipped:
                continue
            if isinstance(place, str):
                empty = {name: np.full(len(finished), np.nan) for name in names}
                target, index = bases.setdefault(place, empty), (row,)
            else:
                target, index = values, (row, column)  # type: ignore[assignment]  # a cell of a table, not of a row
            for name, value in judge(case.answers, result.text).items():
                target[name][index] = value
            if logp and result.logp is not None:
                target["logp"][index] = result.logp
    rows = [one.results[:width] for one in finished]
    return Outcomes(
        task=task.name,
        samples=tuple(one.unit.cases[0].sample for one in finished),
        slots=tuple(slots),
        of=task.slots,
        values=values,
        skipped=[[cell.skipped for cell in row] for row in rows],
        answers=[[cell.text for cell in row] for row in rows],
        tokens=[[cell.tokens for cell in row] for row in rows],
        baselines=bases,
        provenance=provenance,
    )
