"""The registry of theories; each one registers itself in the file that holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from catenary.errors import unknown
from catenary.protocols import Theory
from catenary.registry import Registry

THEORIES: Registry[Theory] = Registry("theory")


def check_options(theory: str, options: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse an option that ``theory`` does not know, with the nearest known one."""
    known = tuple(known)
    for name in options:
        if name not in known:
            raise unknown(f"option of theory {theory!r}:", name, known)
