"""Experiment: a config file that names a study, its settings, its cost, and the claims that it tests."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catenary.errors import MissingResource, invalid, unknown
from catenary.reproduce.claim import Claim

PAPERS = {
    "2603.10123": "Lost in the Middle at Birth",
    "2605.09213": "Kinetic theory for Transformers and the lost-in-the-middle phenomenon",
    "2602.16837": "A residual-aware theory of position bias in transformers",
}
"""The papers of the ledger and their titles."""

_FIELDS = {"study", "title", "cost", "settings", "full", "claims"}


@dataclass(frozen=True)
class Experiment:
    """One config file.

    Attributes:
        paper: arXiv number.
        name: the file's name without its ending.
        study: which study runs it; empty where all of its claims are untestable.
        title: one line.
        cost: what it takes on two CPU cores.
        settings: the study's settings at the size that fits a CPU.
        full: settings that replace these at full size, and their ``cost``; empty where the CPU size is the full one.
        claims: what it tests.
    """

    paper: str
    name: str
    study: str
    title: str
    cost: str
    settings: Mapping[str, Any]
    full: Mapping[str, Any]
    claims: tuple[Claim, ...]

    @property
    def seconds(self) -> float:
        """What ``cost`` says, 0 where it names no time."""
        stated = re.match(r"(\d+) (s|min|h)", self.cost)
        return 0.0 if stated is None else float(stated[1]) * {"s": 1, "min": 60, "h": 3600}[stated[2]]

    def at(self, *, full: bool) -> dict[str, Any]:
        """The settings at CPU or full size; raises ``InvalidInput`` where there is no full size."""
        if not full:
            return dict(self.settings)
        if not self.full:
            raise invalid("full", f"must name an experiment with a full size; {self.name} has one size only", "--full")
        return {**self.settings, **{key: value for key, value in self.full.items() if key != "cost"}}


def experiments_folder() -> Path:
    """Where the configs lie: beside the sources in a checkout, inside the package once installed."""
    inside = Path(__file__).parent / "experiments"
    checkout = Path(__file__).parents[3] / "experiments"
    for folder in (inside, checkout):
        if (folder / next(iter(PAPERS))).is_dir():
            return folder
    raise MissingResource(f"the experiments' configs were looked for in {inside} and {checkout}; reinstall catenary")


def read_experiments(paper: str) -> dict[str, Experiment]:
    """Every experiment of a paper by name; raises ``InvalidInput`` for a paper that is not in the ledger."""
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)
    files = sorted((experiments_folder() / paper).glob("*.toml"))
    found = {file.stem: read_experiment(file) for file in files}
    ids = [claim.id for experiment in found.values() for claim in experiment.claims]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise invalid(f"claims of {paper}", "must have names of their own; used twice", twice)
    return found


def read_experiment(file: Path) -> Experiment:
    """One config; raises ``InvalidInput`` with the file's name for what is wrong in it."""
    try:
        entries = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise invalid(str(file), "must be TOML", str(error)) from error
    extra = sorted(set(entries) - _FIELDS)
    if extra:
        raise invalid(str(file), f"knows {sorted(_FIELDS)}", extra)
    claims = tuple(Claim.read(entry, file.name) for entry in entries.get("claims", ()))
    if not claims:
        raise invalid(f"claims of {file}", "must hold one claim or more", "none")
    full = entries.get("full", {})
    if full and not full.get("cost"):
        raise invalid(f"full of {file}", "must state its cost", sorted(full))
    if any(claim.reading for claim in claims) and not entries.get("study"):
        raise invalid(f"study of {file}", "must name what measures the readings of its claims", "nothing")
    return Experiment(
        file.parent.name, file.stem, entries.get("study", ""), entries.get("title", file.stem), entries.get("cost", ""),
        entries.get("settings", {}), full, claims,
    )  # fmt: skip
