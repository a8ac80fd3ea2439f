"""How a value from a config is shown in an error message: short, on one line, and never slow."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real


class Words(str):
    """Text that an error message shows without quotes."""

    def __repr__(self) -> str:
        """The text itself."""
        return str(self)


def received(value: object) -> object:
    """``value`` as an error message should show it; containers and very large numbers by their kind alone."""
    if value is None:
        return Words("null")
    if isinstance(value, bool):
        return Words("true" if value else "false")
    if isinstance(value, str):
        return value[:100]
    if isinstance(value, Integral):
        return int(value) if abs(int(value)) < 10**30 else Words("an integer of more than 30 digits")
    if isinstance(value, float):
        return value
    if isinstance(value, list | tuple):
        return Words(f"a list of {len(value)}")
    if isinstance(value, Mapping):
        return Words(f"an object of {len(value)} keys")
    return Words(f"{'a number of type' if isinstance(value, Real) else 'a'} {type(value).__name__}")


def printable(text: str, limit: int = 120) -> str:
    """``text`` for a title or a label: control characters and lone surrogates become ?, at most ``limit`` long."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text[: limit + 1])
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
