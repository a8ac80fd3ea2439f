"""Observer: what a long run tells the person who started it. The silent one is the default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable


@runtime_checkable
class Observer(Protocol):
    """Told of decisions in words, and of progress in units of work."""

    def say(self, text: str) -> None:
        """One line about what was decided or found."""

    def begin(self, label: str, total: int) -> None:
        """A part of ``total`` windows starts."""

    def advance(self, windows: int) -> None:
        """``windows`` more windows are done."""

    def end(self) -> None:
        """The part is finished."""


class Silent:
    """Tells nobody."""

    def say(self, text: str) -> None:
        """Nothing."""

    def begin(self, label: str, total: int) -> None:
        """Nothing."""

    def advance(self, windows: int) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


@contextmanager
def counting(observer: Observer, label: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """A part of the work as a progress callback of (done, all); the part is over when the block ends, however it ends.

    ``done`` may leap: what is read from a file comes all at once.
    """
    told = 0

    def progress(done: int, _: int) -> None:
        nonlocal told
        observer.advance(done - told)
        told = done

    observer.begin(label, total)
    try:
        yield progress
    finally:
        observer.end()
