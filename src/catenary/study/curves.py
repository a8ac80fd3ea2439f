"""Curves of a finished study, one condition each, and which of them are worth holding against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from catenary.profile import Profile
from catenary.store import Curve


def single_curves(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Samples split by condition: ``{"untrained/vanilla": Sample, "predicted-vanilla": Profile, ...}``."""
    split: dict[str, Curve] = {}
    for name, curve in curves.items():
        if isinstance(curve, Profile):
            split[name] = curve
            continue
        for condition in curve.conditions:
            split[f"{name}/{condition}"] = curve.select(condition, curve.steps[-1])
    return split


def condition_of(name: str) -> str:
    """The condition in a curve's name: what stands behind ``/``, or behind ``predicted-``."""
    return name.rsplit("/", 1)[-1].removeprefix("predicted-")


def comparable_pairs(names: Mapping[str, Curve]) -> Iterator[tuple[str, str]]:
    """Prediction against untrained measurement, then untrained against trained, condition by condition."""
    for wanted in ("predicted-", "untrained"):
        for a in names:
            for b in names:
                if condition_of(a) != condition_of(b) or not a.startswith(wanted):
                    continue
                if b.startswith("untrained" if wanted == "predicted-" else "trained"):
                    yield a, b
