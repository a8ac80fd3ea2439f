"""What a person sees while a command runs: remarks and progress on stderr, results on stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer


class Terminal:
    """An observer that writes remarks and a progress bar to stderr; the bar vanishes when stderr is no terminal."""

    def __init__(self) -> None:
        """Nothing is shown until something is said."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        self._console = Console(stderr=True, highlight=False)
        label = TextColumn("{task.description}")
        columns = [label, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), Remaining()]
        self._progress = Progress(*columns, console=self._console, transient=True, disable=not sys.stderr.isatty())
        self._task: Any = None

    def say(self, text: str) -> None:
        """One remark."""
        self._console.print(text, markup=False, soft_wrap=True)

    def begin(self, label: str, total: int) -> None:
        """A part starts: show its bar."""
        self._progress.start()
        self._task = self._progress.add_task(label, total=total)

    def advance(self, windows: int) -> None:
        """Move the bar."""
        self._progress.advance(self._task, windows)

    def end(self) -> None:
        """Remove the bar."""
        self._progress.remove_task(self._task)
        self._progress.stop()


@contextmanager
def observing(quiet: bool) -> Iterator[Any]:
    """A Terminal, or a silent observer when ``quiet``; its bar is gone when the block ends, however it ends."""
    from catenary.study.observer import Silent

    observer = Silent() if quiet else Terminal()
    try:
        yield observer
    finally:
        if isinstance(observer, Terminal):
            observer._progress.stop()


def bar(observer: Any, label: str) -> Callable[[int, int], None]:
    """A progress callback that shows one bar for its whole run."""

    def step(done: int, total: int) -> None:
        if done == 1:
            observer.begin(label, total)
        observer.advance(1)
        if done == total:
            observer.end()

    return step


def print_json(value: Mapping[str, Any]) -> None:
    """Canonical JSON on stdout."""
    from catenary.provenance import canonical_json

    typer.echo(canonical_json(value, indent=1))
