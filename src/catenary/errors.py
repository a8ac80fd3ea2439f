"""What can go wrong for a reason the caller can act on, and how it is said."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InvalidInput(ValueError):
    """An input the caller can fix; the message names the argument, the rule, the value and the next thing to try."""


class NotApplicable(InvalidInput):
    """A theory or a measurement does not cover this case; the message says where it stops and what does cover it."""


class MissingResource(InvalidInput):
    """A file, model or optional dependency that was looked for and not found; the message says where."""


def invalid(argument: str, rule: str, received: object, hint: str = "") -> InvalidInput:
    """Build the error for one bad argument: ``mixing must be in (0, 1], got 1.4; <hint>``."""
    return InvalidInput(f"{argument} {rule}, got {_brief(received)}" + (f"; {hint}" if hint else ""))


def unknown(kind: str, name: str, known: Iterable[str]) -> InvalidInput:
    """Build the error for a name that is not registered, with the nearest known name and the whole list."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return InvalidInput(f"unknown {kind} {_brief(name)}.{guess} Known: {', '.join(names)}")


def _brief(value: object, limit: int = 80) -> str:
    """A value as one short printable line, whatever it is."""
    text = ascii(value) if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
