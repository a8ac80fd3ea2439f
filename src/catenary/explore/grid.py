"""Values of one config field as a user writes them: ``12:48:12``, ``none,1024``, ``0.01,0.02``."""

from __future__ import annotations

import json
from dataclasses import dataclass

from catenary.errors import invalid

MOST = 200
"""Values of one field."""


@dataclass(frozen=True)
class Axis:
    """One varied field and its values, in order."""

    field: str
    values: tuple[object, ...]


def parse_axis(text: str) -> Axis:
    """``field=value,value,...``; ``first:last:step`` counts from first up to last, last included where it is met.

    Values are JSON where they parse as such (numbers, true, false, null); ``none`` is null; anything else is text.

    Raises:
        InvalidInput: no ``=``, no value, a step that is not positive, or more than 200 values.

    >>> parse_axis("num_hidden_layers=12:48:12").values
    (12, 24, 36, 48)
    >>> parse_axis("sliding_window=none,1024").values
    (None, 1024)
    """
    field, equals, listed = text.partition("=")
    if not equals or not field.strip() or not listed.strip():
        raise invalid("vary", "must read field=value,value or field=first:last:step", text[:100])
    values: list[object] = []
    for entry in listed.split(","):
        values += _range(entry, text) if entry.count(":") in (1, 2) else [_value(entry.strip())]
    if len(values) > MOST:
        raise invalid("vary", f"must hold at most {MOST} values", len(values))
    return Axis(field.strip(), tuple(dict.fromkeys(values)))


def _value(entry: str) -> object:
    if entry.lower() == "none":
        return None
    try:
        value: object = json.loads(entry)
    except ValueError:
        return entry
    return value if isinstance(value, int | float | bool | None) else entry


def _range(entry: str, text: str) -> list[object]:
    parts = [_value(part.strip()) for part in entry.split(":")]
    numbers = [part for part in parts if isinstance(part, int | float) and not isinstance(part, bool)]
    if len(numbers) != len(parts):
        raise invalid("vary", "must have numbers on both sides of ':'", text[:100])
    first, last, step = numbers if len(numbers) == 3 else (*numbers, 1)
    if step <= 0 or last < first or (last - first) / step > MOST:
        raise invalid("vary", f"must count upwards by a positive step, at most {MOST} values", text[:100])
    count = int((last - first) / step + 1e-9) + 1
    return [first + n * step for n in range(count)]
