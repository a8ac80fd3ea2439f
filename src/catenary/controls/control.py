"""Control: a claim about a network that measuring rests on, and how it is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catenary.controls.check import Check
from catenary.controls.subject import Subject


@dataclass(frozen=True)
class Control:
    """One claim.

    Attributes:
        name: a word or two, as printed and stored.
        claim: what is checked, in one sentence that can be true or false.
        run: the check; raises ``NotApplicable`` where the claim says nothing about this network.
        profiles: how many profiles of all windows it measures, for the estimate of time.
        few: how many of the first few windows.
        networks: how many networks it draws.
    """

    name: str
    claim: str
    run: Callable[[Subject], Check]
    profiles: int = 0
    few: int = 0
    networks: int = 0
