"""Retry: a call that fails for a passing reason is made again, after a wait that doubles."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from catenary.errors import InvalidInput, invalid

Result = TypeVar("Result")


class Passing(Exception):
    """A failure that may pass; ``wait`` is how many seconds the other side asks to be left alone, if it says."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        """Say why."""
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True)
class Retry:
    """How often a call is tried, and how long is waited: ``first`` seconds, then twice as long, at most ``longest``.

    Waits carry no random part, so that a run can be repeated; one client is no crowd.
    """

    attempts: int = 8
    first: float = 0.5
    longest: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        """Refuse no attempt at all."""
        if self.attempts < 1:
            raise invalid("attempts", "must be at least 1", self.attempts)

    def __call__(self, call: Callable[[], Result]) -> Result:
        """The call's result.

        Raises:
            InvalidInput: it failed at every attempt; anything but ``Passing`` is passed on at once.
        """
        reason = ""
        for attempt in range(self.attempts):
            try:
                return call()
            except Passing as failure:
                reason = str(failure)
                if attempt + 1 < self.attempts:
                    wait = self.first * 2**attempt if failure.wait is None else failure.wait
                    self.sleep(min(wait, self.longest))
        raise InvalidInput(
            f"a call failed {self.attempts} times, the last one with: {reason}; finished samples are kept, the same "
            "command goes on from there"
        )
