"""Mixing strengths per layer: lambda_t, attention's share of what a layer hands on, t = 0..H-1 from the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float64

from catenary.errors import InvalidInput, invalid, unknown
from catenary.theory.cesaro.first_moment import checked_positive

KINDS = ("constant:STRENGTH", "power:FIRST:EXPONENT", "STRENGTH,STRENGTH,...")
"""How a schedule is written as text."""

Strengths = Float64[np.ndarray, " layers"]


@final
@dataclass(frozen=True)
class Constant:
    r"""\(\lambda_t = \lambda\) in every layer."""

    strength: float

    def strengths(self, layers: int, clip: bool = False) -> Strengths:
        """One strength per layer; see ``checked_strengths`` for its refusals."""
        return checked_strengths(np.full(checked_positive("layers", layers), self.strength), clip)

    @property
    def words(self) -> str:
        """As a legend shows it."""
        return f"strength {self.strength:.4g}"


@final
@dataclass(frozen=True)
class PowerDecay:
    r"""\(\lambda_t = \lambda_0/(t+1)^\beta\), t = 0, 1, ...

    The sum over layers, and with it the collapse onto the first token, stays bounded for \(\beta > 1\) only.
    Source: the published code of arXiv 2602.16837.
    """

    first: float
    exponent: float

    def strengths(self, layers: int, clip: bool = False) -> Strengths:
        """One strength per layer; see ``checked_strengths`` for its refusals."""
        steps = np.arange(1.0, checked_positive("layers", layers) + 1.0)
        with np.errstate(over="ignore"):
            return checked_strengths(self.first * steps**-self.exponent, clip)

    @property
    def words(self) -> str:
        """As a legend shows it."""
        return f"strength {self.first:.4g}/(t+1)^{self.exponent:.4g}"


@final
@dataclass(frozen=True)
class Given:
    """One strength per layer, listed; ``source`` says where they are from (``measured``, ``predicted at birth``)."""

    values: tuple[float, ...]
    source: str = "given"

    def strengths(self, layers: int, clip: bool = False) -> Strengths:
        """The list, which must have one entry per layer; see ``checked_strengths`` for its other refusals."""
        if len(self.values) != checked_positive("layers", layers):
            raise invalid("schedule", f"must have one strength for each of {layers} layers", len(self.values))
        return checked_strengths(np.array(self.values, dtype=np.float64), clip)

    @property
    def words(self) -> str:
        """As a legend shows it."""
        return f"{self.source} strengths, sum {sum(self.values):.3g}"


Schedule = Constant | PowerDecay | Given


def checked_strengths(values: Strengths, clip: bool = False) -> Strengths:
    """``values`` in [0, 1], not 0 in every layer; outside they are refused, or with ``clip`` cut to that range.

    Raises:
        InvalidInput: a strength is NaN, or lies outside [0, 1] (unless ``clip``), or none is > 0.
    """
    if clip:
        values = np.clip(values, 0.0, 1.0)
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if bad.size:
        raise invalid("schedule", f"must be in [0, 1] in every layer (layer {bad[0]}, 0-based)", float(values[bad[0]]))
    if not values.any():
        raise invalid("schedule", "must be > 0 in at least one layer", 0.0, "with 0 everywhere only the query is left")
    return values


def read_schedule(given: Schedule | float | str | Sequence[float]) -> Schedule:
    """A schedule from a number, a list, or text such as ``constant:0.2``, ``power:0.5:1`` or ``0.4,0.2,0.1``.

    Raises:
        InvalidInput: text of another form.

    >>> read_schedule("power:0.5:1").strengths(2).tolist()
    [0.5, 0.25]
    """
    if isinstance(given, Constant | PowerDecay | Given):
        return given
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Constant(float(given))
    if isinstance(given, str):
        return _from_text(given)
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim != 1 or not values.size:
        raise invalid("schedule", "must be a number, a list of numbers, or text", given, f"as {' or '.join(KINDS)}")
    return Given(tuple(values.tolist()))


def _from_text(text: str) -> Schedule:
    kind, _, rest = text.partition(":")
    try:
        numbers = [float(part) for part in (rest if rest else kind).replace(":", ",").split(",") if part.strip()]
    except ValueError:
        raise unknown("schedule", text, KINDS) from None
    if kind == "constant" and len(numbers) == 1:
        return Constant(numbers[0])
    if kind == "power" and len(numbers) == 2:
        return PowerDecay(*numbers)
    if not rest and numbers:
        return Constant(numbers[0]) if len(numbers) == 1 else Given(tuple(numbers))
    raise InvalidInput(f"schedule must be written as {' or '.join(KINDS)}, got {text!r}")
