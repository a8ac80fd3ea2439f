"""Shape: what a profile looks like, ends apart from body, every number beside its meaning and its interval."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from catenary.blocks import Blocks
from catenary.errors import invalid, unknown
from catenary.indices import INDICES, ROUNDING, Curves, Frame
from catenary.profile import Average, Profile
from catenary.reading import Reading, align, finite, number
from catenary.sample import Sample
from catenary.statistics import Units, interval, reliability
from catenary.verdict import Spread, Verdict, judge


@dataclass(frozen=True, eq=False)
class Shape:
    """The shape of one profile: its verdict and its numbers.

    Attributes:
        label, length, average: of the profile; ``average`` is how the curve came from its Sample.
        unit, count: the unit of uncertainty (net, sequence, probe, none) and how many there are.
        verdict: the word for the body, the spike, and the evidence.
        readings: the numbers; ``shape["argmin"]`` finds one by name.
        noise_floor: of a block log-mean (dex); 0 for a theory, NaN where unknown.
        reliability: split-half reliability of the blocks, or NaN.
        unknown: why there are no intervals; empty when there are.
    """

    label: str
    length: int
    average: Average
    unit: str
    count: int
    verdict: Verdict
    readings: tuple[Reading, ...]
    noise_floor: float
    reliability: float
    unknown: str

    def __getitem__(self, name: str) -> Reading:
        """One number by its name; ``InvalidInput`` with the nearest name otherwise."""
        for reading in self.readings:
            if reading.name == name:
                return reading
        raise unknown("shape number", name, [r.name for r in self.readings])

    def rows(self) -> list[tuple[str, str, str]]:
        """(name, value with interval, meaning) of every line a table shows, the verdict first."""
        return [("verdict", self.verdict.words, "; ".join(self.verdict.evidence)),
                *((r.name, r.text, r.meaning) for r in (*self.readings, *self._certainty()))]

    def table(self) -> str:
        """The rows as aligned text under a heading."""
        heading = f"{self.label}: {self.verdict.words}  (L = {self.length}, average {self.average})"
        evidence = [f"  {line}" for line in self.verdict.evidence]
        rows = [(f"  {r.name}", *r.cells) for r in (*self.readings, *self._certainty())]
        return "\n".join([heading, *evidence, "", align(rows)])

    def to_dict(self) -> dict[str, Any]:
        """The shape as plain JSON values; a number that is undefined is None beside its reason."""
        return {
            "label": self.label,
            "length": self.length,
            "average": self.average,
            "unit": self.unit,
            "count": self.count,
            "verdict": {
                "body": self.verdict.body,
                "spike": self.verdict.spike,
                "words": self.verdict.words,
                "evidence": list(self.verdict.evidence),
            },
            "readings": [r.to_dict() for r in self.readings],
            "noise_floor": finite(self.noise_floor),
            "reliability": finite(self.reliability),
            "unknown": self.unknown,
        }

    def words(self) -> str:
        """A paragraph: which shape, the numbers behind it, and how sure."""
        trough, arm = self["argmin"], self["right arm"]
        sentences = [f"{self.label}: {self.verdict.words}."]
        if trough.reason:
            sentences.append(f"The body has no lowest block: {trough.reason}.")
        else:
            sentences.append(
                f"The highest block of the body is {self['peak/trough'].text} times its lowest, which is centred at "
                f"x = {trough.text} of the context."
            )
        if self.verdict.body in ("U", "recency"):
            sentences.append(f"From there it rises over {arm.text} of the context towards the end.")
        sentences.append(
            f"The first token is {self['first/mid'].text} times the middle, the last token {self['last/mid'].text} "
            f"times; the last token alone holds {self['share last'].text} of the sum."
        )
        if self.unknown:
            sentences.append(f"No interval: {self.unknown}.")
        else:
            sentences.append(
                f"Intervals are 95 % over {self.count} {self.unit}s; the noise floor of a block is "
                f"{number(self.noise_floor)} dex, split-half reliability {number(self.reliability)}."
            )
        return " ".join(sentences)

    def _certainty(self) -> tuple[Reading, ...]:
        """Noise floor and reliability as rows."""
        over = "" if self.unit == "none" else f", over {self.unit}s"
        return (
            Reading("noise floor", self.noise_floor, "dex of a block log-mean, half against half over sqrt 2",
                    reason=self.unknown),
            Reading("reliability", self.reliability, f"split-half correlation of the blocks{over}",
                    reason=self.unknown or "a half is constant"),
        )

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        return f"<pre>{escape(self.table())}</pre>"

    def __repr__(self) -> str:
        """One line: label and verdict."""
        return f"Shape({self.label!r}, {self.verdict.words!r}, L={self.length})"


def describe(item: Profile | Sample, *, average: Average | None = None) -> Shape:
    """Say what shape a profile has, and how sure that is.

    A Sample is reduced to one curve and its units of uncertainty are resampled, which gives every number a 95 %
    interval (bootstrap, 1000 draws, seed 0). Where ``average`` is not given it is ``"log"`` for a pretrained
    network, whose single tokens scatter by 0.4 dex between sequences, and ``"rms"`` otherwise, which is what the
    birth law predicts. A Profile has no units: a theory's floor is 0, a measured curve's error is unknown.

    Args:
        item: a Profile, or a Sample of one condition and one step, of at least 5 positions.
        average: ``"rms"``, ``"log"`` or ``"mean"``, for a Sample only.

    Raises:
        InvalidInput: fewer than 5 positions, a Sample of several conditions or steps, or ``average`` for a Profile.
    """
    if isinstance(item, Profile):
        return _describe_profile(item, average)
    part = item.select()
    chosen = average or default_average(part)
    profile = part.profile(chosen)
    blocks = Blocks(part.length)
    units = Units.of(part, chosen)
    if units.kind == "none" and not part.exact:
        reason = "one network, one sequence, one probe: the error is unknown"
        return _shape(profile, None, None, reason, f"{reason}; read this as one curve, the floor taken is 0")
    if units.kind == "none":
        return _shape(profile, None, None, "one network, one sequence, exact: no scatter is known", "exact: floor 0")
    return _shape(profile, units, Spread.of(units, blocks), "", "")


def default_average(sample: Sample) -> Average:
    """``"log"`` for a pretrained network (``Sample.weights``), ``"rms"`` otherwise."""
    return "log" if sample.weights == "pretrained" else "rms"


def _describe_profile(profile: Profile, average: Average | None) -> Shape:
    if average is not None and average != profile.average:
        raise invalid("average", f"can be chosen for a Sample only; this Profile is {profile.average!r}", average)
    if profile.average in ("expectation", "none"):
        note = "floor 0: a theory" if profile.average == "expectation" else "floor 0: no scatter is known"
        return _shape(profile, None, None, "a curve without scatter: nothing to resample", note)
    reason = "a curve alone does not hold its scatter; describe the Sample it came from"
    return _shape(profile, None, None, reason, f"floor 0: {reason}")


def _shape(profile: Profile, units: Units | None, spread: Spread | None, missing: str, note: str) -> Shape:
    rho = profile.values[None, :]
    blocks = Blocks(len(profile))
    b = blocks.log_means(rho)[0]
    floor = spread.floor if spread else 0.0
    frame = Frame(blocks, int(b.argmax()), int(b.argmin()), floor)
    verdict = judge(profile.values, spread, note)
    readings = _readings(rho, frame, units, flat=float(np.ptp(b)) < ROUNDING)
    theory = units is None and profile.average in ("expectation", "none")
    return Shape(
        label=profile.label,
        length=len(profile),
        average=profile.average,
        unit=units.kind if units else "none",
        count=units.count if units else 0,
        verdict=verdict,
        readings=readings,
        noise_floor=floor if units or theory else float("nan"),
        reliability=reliability(units, blocks.log_means) if units else float("nan"),
        unknown=missing,
    )


def _readings(rho: Curves, frame: Frame, units: Units | None, flat: bool) -> tuple[Reading, ...]:
    resampled = [n for n in INDICES if n.resampled]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        draws = {}
        if units is not None:
            table = units.bootstrap(lambda c: np.stack([n.formula(c, frame) for n in resampled], axis=1))
            draws = {n.name: table[:, i] for i, n in enumerate(resampled)}
        values = {n.name: float(n.formula(rho, frame)[0]) for n in INDICES}
    missing = "a token it divides by, or takes the log of, is exactly 0"
    if rho.all():
        missing = "the profile is too short: no position lies in one of its ranges"
    readings = []
    for n in INDICES:
        value, low, high, reason = values[n.name], None, None, ""
        if n.name == "argmin" and flat:
            value, reason = np.nan, "every block is equal"
        elif not np.isfinite(value):
            value, reason = np.nan, missing
        elif units is not None and n.name in draws and np.isfinite(draws[n.name]).all():
            low, high = interval(value, draws[n.name], units.count, n.low, n.high)
        readings.append(Reading(n.name, value, n.meaning, low, high, reason=reason))
    return tuple(readings)
