"""Grid: models, lengths and seeds to measure in every combination, read from one TOML or JSON file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from catenary.errors import InvalidInput, invalid
from catenary.study.config import Count, StudyConfig, Tokens, split_words, study_config, validated
from catenary.study.parts import Part
from catenary.study.single import Request, part_of

SEPARATE = ("model", "length", "seed", "windows", "probes", "conditions", "nets")
"""Fields of a StudyConfig that a grid names itself, or has no use for."""


def _list(value: object) -> object:
    """One entry where a list is meant."""
    return [value] if isinstance(value, str | int) else value


def _range(value: object) -> object:
    """``"2:5"`` as 2, 3, 4 (the end is left out, as in Python); a number or a list as it is."""
    if isinstance(value, str):
        first, colon, end = value.partition(":")
        if colon and first.strip().isdecimal() and end.strip().isdecimal():
            return list(range(int(first), int(end)))
    return _list(value)


class Grid(BaseModel):
    """Every combination of ``models``, ``lengths`` and ``seeds``, each fed ``windows`` windows of each kind.

    A cell is what ``catenary measure MODEL --length L --seed S`` measures. ``settings`` are the other fields of a
    StudyConfig, the same for all cells.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_list)]
    lengths: Annotated[tuple[int, ...], Field(min_length=1), BeforeValidator(_list)] = (512,)
    seeds: Annotated[tuple[int, ...], Field(min_length=1), BeforeValidator(_range)] = (0,)
    weights: Literal["untrained", "pretrained"] = "untrained"
    tokens: Annotated[tuple[Tokens, ...], Field(min_length=1), BeforeValidator(split_words)] = ("random",)
    windows: Count = 8
    probes: Count = 4
    method: str = "probes"
    settings: dict[str, Any] = {}

    def curves(self) -> list[GridCurve]:
        """One curve per model and length, with a cell per seed; checks every cell's settings."""
        names = _names(self.models)
        return [
            GridCurve(f"{name}-L{length}", model, length, tuple(self._cell(model, length, seed) for seed in self.seeds))
            for model, name in zip(self.models, names, strict=True)
            for length in self.lengths
        ]

    def _cell(self, model: str, length: int, seed: int) -> Cell:
        config = study_config(
            {**self.settings, "model": model, "length": length, "seed": seed, "windows": 1, "probes": 1}
        )
        request = Request(self.weights, self.tokens, 1, self.windows, self.probes, self.method, None)
        return Cell(config, part_of(request))


@dataclass(frozen=True)
class Cell:
    """One model at one length under one seed: the settings of a study and the part to measure."""

    config: StudyConfig
    part: Part


@dataclass(frozen=True)
class GridCurve:
    """The cells of one model and length, which differ in their seed alone."""

    name: str
    model: str
    length: int
    cells: tuple[Cell, ...]

    @property
    def total(self) -> int:
        """Windows to measure in all."""
        return sum(cell.part.total for cell in self.cells)


def read_grid(path: Path) -> Grid:
    """The grid in a ``.toml`` or ``.json`` file: the fields of ``Grid`` and, beside them, of a StudyConfig.

    Raises:
        InvalidInput: no such file, bad syntax, an unknown field, or a value out of range; the message names it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise invalid("grid", "must be a readable .toml or .json file", str(path), str(error)) from error
    try:
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise invalid("grid", "must be valid TOML, or JSON in a .json file", str(path), str(error)) from error
    if not isinstance(values, dict):
        raise invalid("grid", "must be a table of fields", type(values).__name__)
    return grid(values)


def grid(values: Mapping[str, Any]) -> Grid:
    """A grid from plain values, those of a StudyConfig beside its own; repeats are refused."""
    shared = {name: value for name, value in values.items() if name in StudyConfig.model_fields and name not in _OWN}
    clash = sorted(set(shared) & set(SEPARATE))
    if clash:
        raise InvalidInput(f"{clash[0]} is no field of a grid; it has: {', '.join([*_OWN, *_SHARED])}")
    own = {name: value for name, value in values.items() if name not in shared}
    made = validated(Grid, {"settings": shared, **own})
    for name in ("models", "lengths", "seeds", "tokens"):
        entries = getattr(made, name)
        if len(set(entries)) < len(entries):
            raise invalid(name, "must not repeat an entry", list(entries))
    made.curves()
    return made


def _names(models: tuple[str, ...]) -> list[str]:
    """A short name for each model that tells it from the others."""
    tails = [slug(model) for model in models]
    return [f"{tail}.{index}" if tails.count(tail) > 1 else tail for index, tail in enumerate(tails)]


def slug(model: str) -> str:
    """The end of a model's path or id, in letters, digits and ``-._``."""
    tail = model.removeprefix("preset:").removeprefix("hub:").rstrip("/").removesuffix("/config.json").split("/")[-1]
    return "".join(c if c.isalnum() or c in "-._" else "-" for c in tail).strip(".") or "model"


_OWN = tuple(name for name in Grid.model_fields if name != "settings")
_SHARED = tuple(name for name in StudyConfig.model_fields if name not in (*_OWN, *SEPARATE))
