"""The birth profiles of many public models, one row each: shape, validity, and the knob that moves it most."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from catenary.architecture import Architecture
from catenary.configs.locate import Located, locate_config
from catenary.configs.presets import list_presets
from catenary.configs.read import read_config
from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.explore.sensitivity import Sensitivities, find_knobs
from catenary.profile import Profile
from catenary.reading import align, finite, number
from catenary.shape import Shape, describe
from catenary.store import records_csv
from catenary.theory.prediction import predict

COLUMNS = ("share first tenth", "share body", "share last", "first/mid", "last/mid", "peak/trough", "argmin")
"""The numbers of a row."""

MOVED = ("first/mid", "last/mid", "peak/trough")
"""The indices whose strongest knob a row names."""


ENOUGH = 8
"""Models for each process: starting one takes about as long as two predictions."""


@dataclass(frozen=True, eq=False)
class Row:
    """One model: what it is, its profile at birth, and per index of ``MOVED`` the knob that moves it most."""

    model: str
    source: str
    architecture: Architecture
    profile: Profile
    shape: Shape
    knobs: tuple[str, ...]

    def numbers(self) -> dict[str, float]:
        """The values of ``COLUMNS``; the body is all but the first tenth and the last token."""
        values = {name: self.shape[name].value for name in COLUMNS if name != "share body"}
        values["share body"] = 1 - values["share first tenth"] - values["share last"]
        return {name: values[name] for name in COLUMNS}


@dataclass(frozen=True)
class Refused:
    """A model whose config is not covered, and why."""

    model: str
    source: str
    reason: str


@dataclass(frozen=True, eq=False)
class Atlas:
    """All models at one length, in the order asked for; those that are not covered apart."""

    length: int
    rows: tuple[Row, ...]
    refused: tuple[Refused, ...]

    @property
    def same(self) -> tuple[tuple[str, ...], ...]:
        """Groups of models whose profiles are equal at every position: the law reads nothing that tells them apart."""
        groups: dict[bytes, list[str]] = {}
        for row in self.rows:
            groups.setdefault(row.profile.values.tobytes(), []).append(row.model)
        return tuple(tuple(names) for names in groups.values() if len(set(names)) > 1)

    def table(self) -> str:
        """One line per model, then which profiles are identical and which models are not covered."""
        heading = ("model", "family", *COLUMNS, "logit variance", "trust", "moved most by", "verdict")
        lines: list[tuple[str, ...]] = [heading]
        for row in self.rows:
            card = row.profile.card
            lines.append(
                (
                    row.model,
                    row.architecture.family,
                    *(number(v) if math.isfinite(v) else "undefined" for v in row.numbers().values()),
                    number(row.architecture.logit_variance) if row.architecture.attends else "no attention",
                    card.light if card else "",
                    row.knobs[0] if row.knobs else "",
                    row.shape.verdict.words,
                )
            )
        same = (f"identical: {', '.join(names)}" for names in self.same)
        return "\n".join([align(lines), *same, *(f"{r.model}: not covered: {r.reason}" for r in self.refused)])

    def records(self) -> list[dict[str, Any]]:
        """The table as plain JSON values."""
        found = []
        for row in self.rows:
            a, card = row.architecture, row.profile.card
            record: dict[str, Any] = {"model": row.model, "source": row.source}
            record |= {"family": a.family, "layers": a.depth, "width": a.width}
            record |= {"logit_variance": a.logit_variance if a.attends else None}
            record |= {name: finite(value) for name, value in row.numbers().items()}
            record |= {"verdict": row.shape.verdict.words, "trust": card.light if card else ""}
            record |= {f"knob of {name}": knob for name, knob in zip(MOVED, row.knobs, strict=False)}
            found.append(record)
        return found + [{"model": r.model, "source": r.source, "refusal": r.reason} for r in self.refused]

    def to_csv(self) -> str:
        """The records as CSV with a heading line."""
        return records_csv(self.records())


def public_presets() -> list[str]:
    """The shipped presets of published models: all but the toy."""
    return [name for name in list_presets() if name != "toy"]


def survey(
    models: Sequence[str] | None = None,
    *,
    length: int = 2048,
    knobs: bool = True,
    progress: Callable[[int, int, str], None] | None = None,
) -> Atlas:
    """Predict the profile of each model at birth and find the knobs that move it most.

    Args:
        models: presets, hub ids or paths; every published preset where None.
        length: L of every prediction, whatever the model's own context.
        knobs: also compute the sensitivities, about ten predictions more for each model.
        progress: called with (done, all, model) after each model.

    Raises:
        InvalidInput: an empty list, or no model of it is covered (with the first reason).
        MissingResource: no model of a name.
    """
    names = list(public_presets() if models is None else models)
    if not names:
        raise invalid("models", "must name at least one model", names)
    jobs = [(name, length, knobs) for name in names]
    rows, refused = [], []
    for done, (name, found) in enumerate(zip(names, _each(jobs), strict=True)):
        if progress is not None:
            progress(done + 1, len(names), name)
        if isinstance(found, Row):
            rows.append(found)
        else:
            refused.append(found)
    if not rows:
        raise NotApplicable(f"no model is covered; the first, {refused[0].model}: {refused[0].reason}")
    return Atlas(length, tuple(rows), tuple(refused))


Job = tuple[str, int, bool]


def _each(jobs: Sequence[Job]) -> Iterator[Row | Refused]:
    """The rows in order, from as many processes as there are processors; a few models are not worth any."""
    workers = min(len(jobs) // ENOUGH, os.cpu_count() or 1)
    if workers < 2:
        yield from map(_row, jobs)
        return
    # Ctrl-C reaches every process of the terminal: only this one should answer.
    with ProcessPoolExecutor(workers, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        try:
            yield from pool.map(_row, jobs)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _row(job: Job) -> Row | Refused:
    model, length, knobs = job
    located = locate_config(model)
    try:
        architecture = replace(read_config(located.config), name=located.name, source=located.source)
        profile = predict(architecture, length=length).relabel(located.name)
        moved = _strongest(located, architecture, profile) if knobs else ()
    except (InvalidInput, NotApplicable) as error:
        return Refused(located.name, located.source, str(error))
    return Row(located.name, located.source, architecture, profile, describe(profile), moved)


def _strongest(located: Located, architecture: Architecture, profile: Profile) -> tuple[str, ...]:
    found = Sensitivities(located.name, profile.length, find_knobs(located.config, architecture, profile))
    named = []
    for index in MOVED:
        knob = found.strongest(index)
        named.append("nothing" if knob is None else f"{knob.field} ({knob.elasticity[index]:+.2f})")
    return tuple(named)
