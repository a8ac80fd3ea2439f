"""Records: outcomes and published curves as JSON files, read back to the same numbers, with NaN kept as null."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.errors import InvalidInput, MissingResource, invalid
from catenary.provenance import canonical_json
from catenary.retrieval.outcomes import Outcomes

SCHEMA = "catenary-outcomes/1"
"""Name and version of the file's layout; a reader refuses any other."""

_PARTS = ("task", "samples", "slots", "of", "values", "skipped", "answers", "tokens", "baselines", "provenance")


@dataclass(frozen=True)
class MeanCurve:
    """A published curve: a mean at each slot and how many samples each rests on, without the samples themselves.

    Attributes:
        slots: the P slots measured, 0-based, rising.
        means: (P,) means of a metric.
        n: samples at each slot.
        of: how many slots the prompt has.
        binary: whether the metric is 0 or 1 per sample, so that its variance follows from its mean.
        sd: (P,) standard deviations over samples, where the metric is not binary.
        name: what it is called in print.
    """

    slots: tuple[int, ...]
    means: tuple[float, ...]
    n: int
    of: int
    binary: bool = True
    sd: tuple[float, ...] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        """Refuse lists of different lengths, slots that do not rise, and means that are no shares."""
        if not self.slots or len(self.slots) != len(self.means):
            raise invalid("means", f"must hold one number for each of {len(self.slots)} slots", len(self.means))
        if list(self.slots) != sorted(set(self.slots)) or self.slots[0] < 0 or self.slots[-1] >= self.of:
            raise invalid("slots", f"must rise within 0..{self.of - 1}", self.slots)
        if self.n < 1:
            raise invalid("n", "must be at least 1", self.n)
        if not np.isfinite(self.means).all():
            raise invalid("means", "must be finite", self.means)
        if self.binary and not all(0 <= mean <= 1 for mean in self.means):
            raise invalid("means", "must be shares in [0, 1]", self.means, 'give "binary": false and "sd"')
        if not self.binary and self.sd is None:
            raise invalid("sd", "must be given where a metric is not binary", None)
        if self.sd is not None and (len(self.sd) != len(self.means) or not all(sd >= 0 for sd in self.sd)):
            raise invalid("sd", f"must hold {len(self.means)} numbers, none below 0", self.sd)


def write_outcomes(outcomes: Outcomes, path: Path | str) -> None:
    """Write outcomes as one JSON file, atomically; the same outcomes give the same bytes."""
    from catenary.store import write_text

    write_text(Path(path), canonical_json(outcomes_record(outcomes), indent=1) + "\n")


def outcomes_record(outcomes: Outcomes) -> dict[str, Any]:
    """Outcomes as JSON values; NaN becomes None, every other number keeps all its digits.

    Raises:
        InvalidInput: where a value is infinite, which JSON cannot hold.
    """
    return {
        "schema": SCHEMA,
        "task": outcomes.task,
        "samples": list(outcomes.samples),
        "slots": [int(slot) for slot in outcomes.slots],
        "of": int(outcomes.of),
        "values": {name: [_holes(row, name) for row in table] for name, table in outcomes.values.items()},
        "skipped": [[str(cell) for cell in row] for row in outcomes.skipped],
        "answers": [[str(cell) for cell in row] for row in outcomes.answers],
        "tokens": [[int(cell) for cell in row] for row in outcomes.tokens],
        "baselines": {
            base: {name: _holes(row, f"{base} {name}") for name, row in metrics.items()}
            for base, metrics in outcomes.baselines.items()
        },
        "provenance": dict(outcomes.provenance),
    }


def outcomes_from_record(record: Mapping[str, Any]) -> Outcomes:
    """Outcomes from the JSON values of ``outcomes_record``.

    Raises:
        InvalidInput: where a part is missing or its shape disagrees with the others.
    """
    if record.get("schema") != SCHEMA:
        raise invalid("schema", f"must be {SCHEMA!r}", record.get("schema"), "catenary retrieve writes such a file")
    missing = [part for part in _PARTS if part not in record]
    if missing:
        raise invalid("outcomes", f"must hold {', '.join(_PARTS)}", f"none of {', '.join(missing)}")
    try:
        return Outcomes(
            task=record["task"],
            samples=tuple(record["samples"]),
            slots=tuple(record["slots"]),
            of=record["of"],
            values={name: _table(rows) for name, rows in record["values"].items()},
            skipped=tuple(tuple(row) for row in record["skipped"]),
            answers=tuple(tuple(row) for row in record["answers"]),
            tokens=tuple(tuple(row) for row in record["tokens"]),
            baselines={
                base: {name: _table(row) for name, row in metrics.items()}
                for base, metrics in record["baselines"].items()
            },
            provenance=record["provenance"],
        )
    except InvalidInput:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(f"the outcomes hold something of another kind: {error}") from error


def read_outcomes(path: Path | str) -> Outcomes:
    """Read back what ``write_outcomes`` wrote: the same texts, the same numbers bit for bit, NaN where null stood."""
    return outcomes_from_record(_object(Path(path)))


def read_curve(path: Path | str) -> Outcomes | MeanCurve:
    """Read outcomes, or a published curve ``{"slots": [...], "means": [...], "n": ...}``.

    A published curve may also give ``of`` (slots of the prompt; default: the last slot measured is the last),
    ``binary`` (default true), ``sd`` and ``name``.
    """
    return curve_from_record(_object(Path(path)))


def curve_from_record(record: Mapping[str, Any]) -> Outcomes | MeanCurve:
    """Outcomes or a published curve from JSON values; see ``read_curve``."""
    if "means" not in record:
        return outcomes_from_record(record)
    known = {"slots", "means", "n", "of", "binary", "sd", "name"}
    if set(record) - known:
        raise invalid("curve", f"may hold {', '.join(sorted(known))}", ", ".join(sorted(set(record) - known)))
    if "n" not in record:
        raise invalid("curve", "must say how many samples a mean rests on", "no n", 'add "n": 500')
    try:
        means = tuple(float(mean) for mean in record["means"])
        slots = tuple(int(slot) for slot in record.get("slots", range(len(means))))
        sd = record.get("sd")
        return MeanCurve(
            slots=slots, means=means, n=int(record["n"]), of=int(record.get("of", max(slots, default=0) + 1)),
            binary=bool(record.get("binary", True)), sd=None if sd is None else tuple(float(s) for s in sd),
            name=str(record.get("name", "")),
        )  # fmt: skip
    except InvalidInput:
        raise
    except (TypeError, ValueError) as error:
        raise invalid("curve", "must hold lists of numbers", str(error)) from error


def _object(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingResource(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise invalid(path.name, "must hold an object", type(record).__name__)
    return record


def _holes(row: Sequence[float] | Float64[np.ndarray, " P"], name: str) -> list[float | None]:
    """Numbers as JSON values, None for NaN."""
    values = [float(value) for value in row]
    if any(np.isinf(value) for value in values):
        raise invalid(name, "must be finite, or NaN where it was not scored", values)
    return [None if np.isnan(value) else value for value in values]


def _table(rows: Sequence[Any]) -> Float64[np.ndarray, "*shape"]:
    """Numbers with None back as NaN."""
    return np.array(rows, dtype=np.float64)
