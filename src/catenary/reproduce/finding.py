"""Finding: what one rerun experiment found, as numbers with uncertainty, figures, and the data behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.registry import Registry
from catenary.study.observer import Observer


@dataclass(frozen=True, eq=False)
class Finding:
    """One experiment's outcome.

    Attributes:
        ran: what was run: model, L, networks, sequences, probes, dtype, in one line.
        readings: the numbers, each with a 95 % interval, or exact up to its ``floor``.
        plates: the figures.
        fields, rows: every number behind the figures.
    """

    ran: str
    readings: tuple[Reading, ...]
    plates: tuple[Plate, ...] = ()
    fields: tuple[str, ...] = ()
    rows: Sequence[Sequence[float | int | str | None]] = field(default=())

    def __post_init__(self) -> None:
        """Refuse a number that says nothing about its uncertainty, and two numbers of one name."""
        names = [reading.name for reading in self.readings]
        assert len(set(names)) == len(names), f"two readings share a name: {names}"
        for reading in self.readings:
            known = reading.low is not None or reading.floor is not None or math.isnan(reading.value)
            assert known, f"{reading.name} has neither an interval nor a floor"

    def __getitem__(self, name: str) -> Reading:
        """One number by its name."""
        return next(reading for reading in self.readings if reading.name == name)


Study = Callable[[Mapping[str, Any], Observer], Finding]

STUDIES: Registry[Study] = Registry("study")
"""By the name that a config's ``study`` gives; each is registered in its own file of ``reproduce.studies``."""
