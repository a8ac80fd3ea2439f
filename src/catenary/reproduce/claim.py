"""Claim: one statement of a paper, what would replicate it, and the verdict that a measured number gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catenary.errors import invalid
from catenary.reading import Reading

REPLICATES = "replicates"
UNDER_DEFINITION = "replicates under the stated definition"
DIFFERS = "differs"
UNDECIDED = "undecided at this size"
UNTESTABLE = "not testable here"

_FIELDS = {"id", "where", "claim", "figure", "reading", "expect", "definition", "why", "shown_by", "untestable", "main"}


@dataclass(frozen=True)
class Claim:
    """One row of the ledger before it is measured.

    Attributes:
        id: short name, one per paper.
        where: equation, section, figure or table of the paper.
        claim: what is claimed, in our words.
        figure: the paper's figure it is read from, if any, for ``--figure``.
        reading: name of the number that decides.
        expect: lowest and highest value that replicates the claim; infinite where open.
        definition: what has to be defined, and how, for the claim to hold; empty where the paper's words suffice.
        why: the reason found where the verdict is not "replicates"; part of the row.
        shown_by: the experiment, page or test that shows that reason.
        untestable: why it cannot be tested here; then there is no reading.
        main: for one of the paper's main claims, a few words for it, by which the page's summary names it.
    """

    id: str
    where: str
    claim: str
    figure: str = ""
    reading: str = ""
    expect: tuple[float, float] = (-math.inf, math.inf)
    definition: str = ""
    why: str = ""
    shown_by: str = ""
    untestable: str = ""
    main: str = ""

    @classmethod
    def read(cls, entry: Mapping[str, Any], source: str) -> Claim:
        """The claim that a config's entry describes; raises ``InvalidInput`` with the file's name in it."""
        extra = sorted(set(entry) - _FIELDS)
        if extra:
            raise invalid(f"claim {entry.get('id', '?')} of {source}", f"knows {sorted(_FIELDS)}", extra)
        missing = [name for name in ("id", "where", "claim") if not entry.get(name)]
        if missing:
            raise invalid(f"claim {entry.get('id', '?')} of {source}", "must say id, where and claim; missing", missing)
        bounds = tuple(float(bound) for bound in entry.get("expect", (-math.inf, math.inf)))
        claim = cls(**{**entry, "expect": bounds})
        claim._check(source)
        return claim

    def asked(self) -> str:
        """What the reading must be to replicate the claim, in words."""
        low, high = self.expect
        if low == high:
            return f"{low:g}"
        if math.isinf(high):
            return f"at least {low:g}"
        return f"at most {high:g}" if math.isinf(low) else f"{low:g} to {high:g}"

    def verdict(self, reading: Reading | None) -> str:
        """What the number says: all of its interval in the expected one, all of it outside, or neither.

        A number without an interval is exact up to its ``floor``.
        """
        if self.untestable:
            return UNTESTABLE
        if reading is None or math.isnan(reading.value):
            return UNDECIDED
        low, high = interval_of(reading)
        if self.expect[0] <= low and high <= self.expect[1]:
            return UNDER_DEFINITION if self.definition else REPLICATES
        if high < self.expect[0] or low > self.expect[1]:
            return DIFFERS
        return UNDECIDED

    def _check(self, source: str) -> None:
        at = f"claim {self.id} of {source}"
        if bool(self.untestable) == bool(self.reading):
            raise invalid(at, "must have either a reading or a reason in untestable", self.reading or "neither")
        if len(self.expect) != 2 or not self.expect[0] <= self.expect[1]:
            raise invalid(f"expect of {at}", "must be [lowest, highest]", self.expect)
        if self.reading and not any(math.isfinite(bound) for bound in self.expect):
            raise invalid(f"expect of {at}", "must bound the reading on a side: anything would replicate", self.expect)
        if self.why and not self.shown_by:
            raise invalid(f"shown_by of {at}", "must name what shows the reason given in why", "nothing")


def interval_of(reading: Reading) -> tuple[float, float]:
    """The 95 % interval of a reading; its value give or take its floor where it has none."""
    if reading.low is not None and reading.high is not None:
        return reading.low, reading.high
    floor = reading.floor or 0.0
    return reading.value - floor, reading.value + floor
