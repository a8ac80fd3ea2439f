"""Curves named on the command line as ``RUN_DIRECTORY`` or ``RUN_DIRECTORY:CURVE``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from catenary.errors import InvalidInput, invalid, unknown
from catenary.store import Curve, read_run
from catenary.study.curves import comparable_pairs, single_curves


def stored_pairs(a: str, b: str | None) -> Iterator[tuple[str, Curve, str, Curve]]:
    """The two named curves, or with one run directory alone every pair in it that is worth comparing.

    Raises:
        InvalidInput: no such curve (with the ones there are), or nothing to compare.
    """
    if b is not None:
        yield (a, stored_curve(a), b, stored_curve(b))
        return
    single = single_curves(read_run(a).curves)
    pairs = list(comparable_pairs(single))
    if not pairs:
        names = ", ".join(single)
        hint = "name two: A:CURVE B:CURVE"
        raise InvalidInput(f"run {a} holds no prediction beside its measurement (curves: {names}); {hint}")
    for left, right in pairs:
        yield (left, single[left], right, single[right])


def stored_curve(name: str) -> Curve:
    """The curve ``RUN_DIRECTORY:CURVE``; the curve may be left out where a run holds a single one."""
    folder, curve = (name, "") if Path(name).exists() else _split(name)
    single = single_curves(read_run(folder).curves)
    if curve in single:
        return single[curve]
    if curve:
        raise unknown("curve", curve, single)
    if len(single) > 1:
        raise invalid("curve", f"must be one of {', '.join(single)}", name, f"write {folder}:{next(iter(single))}")
    return next(iter(single.values()))


def _split(name: str) -> tuple[str, str]:
    folder, _, curve = name.rpartition(":")
    return (folder, curve) if folder else (name, "")
