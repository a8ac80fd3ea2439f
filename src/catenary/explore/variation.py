"""What-if: the profile at birth for every combination of changed config fields."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catenary.configs.locate import locate_config
from catenary.configs.read import read_config
from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.explore.changed import changed_config, one_field
from catenary.explore.grid import Axis
from catenary.profile import Profile
from catenary.reading import align, finite, number
from catenary.shape import Shape, describe
from catenary.theory.prediction import predict

SHOWN = ("first/mid", "last/mid", "peak/trough", "argmin", "share first tenth", "share last")
"""The indices of a shape that a table of variants shows."""

MOST = 1000
"""Combinations of one variation."""


@dataclass(frozen=True, eq=False)
class Variant:
    """One combination of values: its profile and shape, or the reason why the config is refused with it."""

    changes: Mapping[str, object]
    profile: Profile | None
    shape: Shape | None
    refusal: str = ""

    @property
    def label(self) -> str:
        """The changed values, e.g. ``num_hidden_layers=12, sliding_window=none``."""
        return ", ".join(f"{name}={words(value)}" for name, value in self.changes.items())


@dataclass(frozen=True, eq=False)
class Variation:
    """All combinations of some varied fields of one model, in the order of the axes (the last one runs fastest)."""

    model: str
    length: int
    axes: tuple[Axis, ...]
    variants: tuple[Variant, ...]

    @property
    def predicted(self) -> tuple[Variant, ...]:
        """The variants that have a profile."""
        return tuple(variant for variant in self.variants if variant.profile is not None)

    def table(self) -> str:
        """One line per combination: the values, the indices of ``SHOWN`` and the verdict, or the refusal."""
        rows = [(*(axis.field for axis in self.axes), *SHOWN, "verdict")]
        for variant in self.variants:
            values = [words(value) for value in variant.changes.values()]
            if variant.shape is None:
                rows.append((*values, *["-"] * len(SHOWN), f"refused: {variant.refusal}"))
            else:
                shape = variant.shape
                rows.append((*values, *(_shown(shape[name].value) for name in SHOWN), shape.verdict.words))
        return align(rows)

    def rows(self) -> list[dict[str, Any]]:
        """The table as plain JSON values, one mapping per combination; a refused one has a ``refusal``."""
        found = []
        for variant in self.variants:
            row: dict[str, Any] = dict(variant.changes)
            if variant.shape is None:
                row["refusal"] = variant.refusal
            else:
                row["verdict"] = variant.shape.verdict.words
                row |= {name: finite(variant.shape[name].value) for name in SHOWN}
            found.append(row)
        return found


def vary(
    model: str | Path | Mapping[str, Any],
    axes: Sequence[Axis],
    *,
    length: int = 2048,
    revision: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Variation:
    """Predict the birth profile of ``model`` with every combination of the axes' values in its config.

    Args:
        model: as for ``read_config``.
        axes: from ``parse_axis``, or ``Axis(field, values)``; a field is one that the model's family reads.
        length: L of every prediction.
        revision: of a hub id.
        progress: called with (done, all) after each combination.
        options: of ``predict``.

    Raises:
        InvalidInput: no axis, a field twice (under whatever names), more than 1,000 combinations, a field that the
            family does not read, or every combination is refused (with the first reason).
        MissingResource: no model of that name.
    """
    names = [axis.field for axis in axes]
    if not names or len(set(names)) < len(names):
        raise invalid("vary", "must name at least one field, each once", names)
    combinations = list(itertools.product(*(axis.values for axis in axes)))
    if len(combinations) > MOST:
        raise invalid("vary", f"must give at most {MOST} combinations", len(combinations))
    located = locate_config(model, revision=revision)
    same = one_field(located.config, names)
    if same is not None:
        raise invalid("vary", "must name each field once", " and ".join(same), "they are two names of one field here")
    variants = []
    for done, values in enumerate(combinations, start=1):
        variants.append(_variant(located.config, dict(zip(names, values, strict=True)), length, options))
        if progress is not None:
            progress(done, len(combinations))
    if all(variant.profile is None for variant in variants):
        raise InvalidInput(f"every combination is refused; the first, {variants[0].label}: {variants[0].refusal}")
    return Variation(located.name, length, tuple(axes), tuple(variants))


def words(value: object) -> str:
    """A config value as a table shows it."""
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _shown(value: float) -> str:
    return number(value) if math.isfinite(value) else "undefined"


def _variant(config: Mapping[str, Any], changes: dict[str, object], length: int, options: Mapping[str, Any]) -> Variant:
    changed = changed_config(config, changes)
    try:
        profile = predict(read_config(changed), length=length, **options)
    except (InvalidInput, NotApplicable) as error:
        return Variant(changes, None, None, str(error))
    label = Variant(changes, None, None).label
    profile = profile.relabel(label)
    return Variant(changes, profile, describe(profile))
