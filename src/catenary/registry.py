"""A table of named things: one registration each, a clear error for a name that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from catenary.errors import unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to objects of one kind; a name is registered once and never replaced."""

    def __init__(self, kind: str) -> None:
        """Start an empty table; ``kind`` is the word used in error messages."""
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str, entry: T) -> T:
        """Add ``entry`` under ``name`` and return it."""
        assert name not in self._entries, f"{self.kind} {name!r} is registered twice"
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        """Return the entry, or raise ``InvalidInput`` with the nearest name and the whole list."""
        if name not in self._entries:
            raise unknown(self.kind, name, self._entries)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        """Whether ``name`` is registered."""
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Names in order of registration."""
        return iter(self._entries)

    def __len__(self) -> int:
        """How many names there are."""
        return len(self._entries)
