"""Reading: one printed number, with its interval, its noise floor, its meaning, or the reason why it is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reading:
    """One number of a shape or a comparison.

    ``low`` and ``high`` are a 95 % interval, ``floor`` what noise alone would show; each is None where unknown.
    A number that could not be computed is NaN and carries a ``reason``.
    """

    name: str
    value: float
    meaning: str
    low: float | None = None
    high: float | None = None
    floor: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        """A missing number must say why it is missing."""
        assert not math.isnan(self.value) or self.reason, f"{self.name} is NaN without a reason"

    @property
    def text(self) -> str:
        """The number as printed: three significant digits, then its interval or floor, or the reason."""
        if math.isnan(self.value):
            return f"undefined: {self.reason}"
        text = number(self.value)
        if self.low is not None and self.high is not None:
            text += f" [{number(self.low)}, {number(self.high)}]"
        if self.floor is not None:
            text += f" (floor {number(self.floor)})"
        return text

    @property
    def cells(self) -> tuple[str, str]:
        """Value and meaning for a terminal's columns: the reason of a missing number stands with its meaning."""
        if math.isnan(self.value):
            return "undefined", f"{self.meaning} ({self.reason})"
        return self.text, self.meaning

    def to_dict(self) -> dict[str, Any]:
        """The reading as plain JSON values; NaN becomes None beside its reason."""
        return {
            "name": self.name,
            "value": finite(self.value),
            "low": finite(self.low),
            "high": finite(self.high),
            "floor": finite(self.floor),
            "meaning": self.meaning,
            "reason": self.reason,
        }


def number(value: float) -> str:
    """A number with three significant digits: ``1829``, ``10.5``, ``0.0305``, ``1.42e+04``."""
    if value != 0 and (abs(value) >= 1e4 or abs(value) < 1e-3):
        return f"{value:.2e}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def counted(count: int, thing: str) -> str:
    """A number of things in words: ``1 window``, ``2 windows``, ``3 processes``."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}{'es' if thing.endswith('s') else 's'}"


def finite(value: float | None) -> float | None:
    """A JSON number, None for what is unknown."""
    return None if value is None or not math.isfinite(value) else float(value)


def align(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as lines of text, every column but the last padded to its widest cell."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in rows
    )
