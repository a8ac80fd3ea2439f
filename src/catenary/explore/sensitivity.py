r"""Which knob bends the profile: \(d\ln(\text{index})/d\ln(\text{field})\) for every number in a config."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from catenary.architecture import Architecture
from catenary.configs.locate import locate_config
from catenary.configs.read import read_config
from catenary.errors import InvalidInput, NotApplicable
from catenary.explore.changed import changed_config, read_fields
from catenary.profile import Profile
from catenary.reading import align, finite
from catenary.shape import describe
from catenary.theory.prediction import predict

WATCHED = ("first/mid", "last/mid", "peak/trough", "share first tenth", "share last")
"""The indices whose elasticities are computed; all are positive."""

STEPS = (1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Relative changes of a whole number, tried in order until the config allows one: widths must divide by heads."""

SMALL = 1 / 64
"""Relative change of a real number up and down: the error is of order SMALL^2, rounding (1e-12) far below it."""

NEGLIGIBLE = 5e-4
"""A field whose elasticities all print as 0.000 is left out."""


@dataclass(frozen=True)
class Knob:
    """One field: its value, the value it was moved to, and the elasticity of each index in ``WATCHED``.

    An elasticity is NaN where the index is undefined or 0, as the first token's is where no path reaches it.
    """

    field: str
    value: float
    moved_to: float
    elasticity: Mapping[str, float]


@dataclass(frozen=True)
class Sensitivities:
    """The knobs of one model at one length, the strongest first."""

    model: str
    length: int
    knobs: tuple[Knob, ...]

    def strongest(self, index: str) -> Knob | None:
        """The knob with the largest elasticity of ``index`` by size; None where no field moves anything."""
        moving = [knob for knob in self.knobs if math.isfinite(knob.elasticity[index])]
        return max(moving, key=lambda knob: abs(knob.elasticity[index]), default=None)

    def table(self) -> str:
        """One line per knob: where it stands, where it was moved, and the elasticities."""
        heading = ("field", "value", "moved to", *(f"d ln {name}" for name in WATCHED))
        rows = [
            (k.field, f"{k.value:g}", f"{k.moved_to:g}", *(_signed(k.elasticity[name]) for name in WATCHED))
            for k in self.knobs
        ]
        return align([heading, *rows])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "model": self.model,
            "length": self.length,
            "knobs": [
                {"field": k.field, "value": k.value, "moved_to": k.moved_to, "elasticity": _finite(k.elasticity)}
                for k in self.knobs
            ],
        }


def sensitivities(
    model: str | Path | Mapping[str, Any],
    *,
    length: int = 2048,
    revision: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Sensitivities:
    r"""Local elasticities of the shape in every numeric field that the model's family reads.

    \(\epsilon = \Delta\ln(\text{index})/\Delta\ln(\text{field})\). A real number is moved up and down by 1/64, so that
    the error is of the order of the step squared; a whole number only up, by the smallest step that the config
    allows (1/64, 1/16, ... 1, at least 1), with an error of the order of that step. Fields that do not move the
    prediction are left out, and so are steps that add or remove a part (a projection, experts, a kind of layer).

    Args:
        model: as for ``read_config``.
        length: L of every prediction.
        revision: of a hub id.
        progress: called with (done, all) after each field.
        options: of ``predict``.

    Raises:
        InvalidInput, NotApplicable, MissingResource: as ``read_config`` and ``predict`` for the model itself.
    """
    located = locate_config(model, revision=revision)
    base = read_config(located.config)
    profile = predict(base, length=length, **options)
    return Sensitivities(located.name, length, find_knobs(located.config, base, profile, progress=progress, **options))


def find_knobs(
    config: Mapping[str, Any],
    base: Architecture,
    profile: Profile,
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> tuple[Knob, ...]:
    """The knobs of a ``config`` that was read as ``base`` and predicted, with ``options``, as ``profile``."""
    start, length = _watched(profile), profile.length
    numeric = {
        name: value
        for name, value in read_fields(config).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    }
    knobs = []
    for done, (name, value) in enumerate(numeric.items(), start=1):
        knob = _knob(config, name, value, base, start, length, options)
        if knob is not None:
            knobs.append(knob)
        if progress is not None:
            progress(done, len(numeric))
    knobs.sort(key=lambda knob: -max(abs(e) for e in knob.elasticity.values() if math.isfinite(e)))
    return tuple(knobs)


def _knob(
    config: Mapping[str, Any],
    name: str,
    value: int | float,
    base: Architecture,
    start: Mapping[str, float],
    length: int,
    options: Mapping[str, Any],
) -> Knob | None:
    """The elasticities of one field, or None where no allowed step moves the prediction."""
    for moved in _candidates(value):
        below = value if isinstance(value, int) else value * (1 - SMALL)
        try:
            up = read_config(changed_config(config, {name: moved}))
            if (up.width, up.layers, up.embedding) == (base.width, base.layers, base.embedding):
                return None
            if _parts(up) != _parts(base):
                continue
            above = _indices(up, length, options)
            if below != value:
                start = _indices(read_config(changed_config(config, {name: below})), length, options)
        except (InvalidInput, NotApplicable):
            continue
        change = math.log(moved / below)
        elasticity = {index: _log_ratio(above[index], start[index]) / change for index in WATCHED}
        if all(abs(value) < NEGLIGIBLE for value in elasticity.values() if math.isfinite(value)):
            return None
        return Knob(name, float(value), float(moved), elasticity)
    return None


def _parts(architecture: Architecture) -> frozenset[object]:
    """What an architecture is made of, whatever the numbers: a step that changes it is a switch, not a slope."""

    def made(value: object) -> object:
        if is_dataclass(value) and not isinstance(value, type):
            return (type(value).__name__, *(made(getattr(value, entry.name)) for entry in fields(value)))
        if isinstance(value, tuple):
            return tuple(dict.fromkeys(made(entry) for entry in value))
        return value if isinstance(value, str | bool | None) else "number"

    return frozenset([made(architecture.embedding), *(made(layer) for layer in set(architecture.layers))])


def _candidates(value: int | float) -> list[int | float]:
    if isinstance(value, float):
        return [value * (1 + SMALL)]
    return list(dict.fromkeys(value + max(1, round(step * value)) for step in STEPS))


def _indices(architecture: Architecture, length: int, options: Mapping[str, Any]) -> dict[str, float]:
    return _watched(predict(architecture, length=length, **options))


def _watched(profile: Profile) -> dict[str, float]:
    shape = describe(profile)
    return {name: shape[name].value for name in WATCHED}


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0 and below > 0 else math.nan


def _signed(value: float) -> str:
    return f"{value:+.3f}" if math.isfinite(value) else "undefined"


def _finite(elasticity: Mapping[str, float]) -> dict[str, float | None]:
    return {name: finite(value) for name, value in elasticity.items()}
