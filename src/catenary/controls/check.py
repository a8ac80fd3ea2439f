"""Check: what one control found, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Verdict = Literal["holds", "does not hold", "not applicable", "could not run"]

Number = float | int | str | bool | None


@dataclass(frozen=True)
class Check:
    """One control's outcome.

    Attributes:
        name: of the control.
        verdict: on its claim. ``does not hold`` is a finding about the network, not a failure of the run.
        sentence: what was seen, with its numbers, and what follows where the claim does not hold.
        numbers: the same for a program; plain JSON values.
        claim: what was checked; empty until the control is done, as is
        seconds: on the clock.
    """

    name: str
    verdict: Verdict
    sentence: str
    numbers: Mapping[str, Number] = field(default_factory=dict)
    claim: str = ""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "numbers": dict(self.numbers), "seconds": round(self.seconds, 2)}


def judge(name: str, held: bool, sentence: str, **numbers: Number) -> Check:
    """A check that holds or does not."""
    return Check(name, "holds" if held else "does not hold", sentence, numbers)
