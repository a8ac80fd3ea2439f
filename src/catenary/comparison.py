"""Comparison: how far apart two profiles of one quantity are, each figure beside what noise alone would show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from html import escape
from typing import Any

import numpy as np

from catenary.deviation import Deviation, between, between_halves, no_floor
from catenary.errors import invalid
from catenary.profile import Average, Profile
from catenary.reading import Reading, align, finite, number
from catenary.sample import Sample
from catenary.shape import default_average

SPEARMAN = (
    "rank correlation; it cannot judge: every falling curve with a final spike scores the same against a "
    "measurement, and what it falls short of 1 by is the measurement's scatter"
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Figures for how far profile ``a`` is from profile ``b`` (positions with a factor a/b, in dex = log10).

    Attributes:
        a, b: the two profiles compared.
        deviation: errors, distances and rank correlation of a against b.
        floor: the same between halves of the Sample(s) over sqrt 2; NaN where neither side has two units to halve.
        shape_only: why absolute errors mean nothing here; empty where they do.
        skill: 1 - err(a)/err(null) with the median error; null = the best-scaled 1/j + last-token spike for b.
        within: share of positions whose difference is within 2 standard errors.
        reasons: why a figure is NaN, by its name.
        sampled: the words for what the floor was taken over.
    """

    a: Profile
    b: Profile
    deviation: Deviation
    floor: Deviation
    shape_only: str
    skill: float
    within: float
    reasons: dict[str, str]
    sampled: str

    @property
    def median_absolute(self) -> float:
        """Median |log10 a/b|; NaN where only shape can be compared."""
        return float("nan") if self.shape_only else self.deviation.median_absolute

    @property
    def max_absolute(self) -> float:
        """Largest |log10 a/b|; NaN where only shape can be compared."""
        return float("nan") if self.shape_only else self.deviation.max_absolute

    @property
    def median_shape(self) -> float:
        """Median |log10 a/b - its median|."""
        return self.deviation.median_shape

    @property
    def max_shape(self) -> float:
        """Largest |log10 a/b - its median|."""
        return self.deviation.max_shape

    @property
    def w1(self) -> float:
        """Wasserstein-1 distance over x of the two normalised to sum 1."""
        return self.deviation.w1

    @property
    def w1_without_last(self) -> float:
        """The same without the last token."""
        return self.deviation.w1_without_last

    @property
    def spearman(self) -> float:
        """Rank correlation over all positions; NaN for a constant profile."""
        return self.deviation.spearman

    @property
    def median_error(self) -> float:
        """The yardstick: the median absolute error, or the median shape error where only shape can be compared."""
        return self.deviation.median_shape if self.shape_only else self.deviation.median_absolute

    @property
    def noise_floor(self) -> float:
        """Noise floor of ``median_error`` (dex); NaN where neither side has two units to halve."""
        return self.floor.median_shape if self.shape_only else self.floor.median_absolute

    @property
    def regions(self) -> tuple[Reading, ...]:
        """Signed median log10 a/b by region of positions, after removing the overall factor where it means nothing."""
        d, f = self.deviation, self.floor
        signed, floors = (d.regions_shape, f.regions_shape) if self.shape_only else (d.regions, f.regions)
        what = "shape " if self.shape_only else ""
        return tuple(
            self._reading(f"{what}error {span.name}", error, f"median log10 a/b over positions {span.name}", floor)
            for span, error, floor in zip(d.spans, signed, floors, strict=True)
        )

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Every figure with its noise floor, in the order it is printed."""
        f = self.floor
        return (
            self._reading("median absolute", self.median_absolute, "median |log10 a/b|, dex",
                          f.median_absolute),
            self._reading("max absolute", self.max_absolute, "largest |log10 a/b|, dex", f.max_absolute),
            self._reading("median shape", self.median_shape, "the same after removing one overall factor",
                          f.median_shape),
            self._reading("max shape", self.max_shape, "the same after removing one overall factor",
                          f.max_shape),
            self._reading("factor", self.deviation.factor, "median a/b, the factor removed for the shape errors"),
            *self.regions,
            self._reading("W1", self.w1, "Wasserstein-1 over x = j/L of the two normalised to sum 1", f.w1),
            self._reading("W1 without last", self.w1_without_last, "the same without the last token",
                          f.w1_without_last),
            self._reading("skill", self.skill, "1 - error(a)/error(null); null = best-scaled 1/j + last-token spike"),
            self._reading("within 2 errors", self.within, "share of positions within 2 standard errors; 0.95 if only "
                          "noise differs and both are well known"),
            self._reading("Spearman", self.spearman, SPEARMAN + self._ceiling()),
        )

    def rows(self) -> list[tuple[str, str, str]]:
        """(name, value with noise floor, meaning) of every figure."""
        return [(r.name, r.text, r.meaning) for r in self.readings]

    def table(self) -> str:
        """A heading, the rows as aligned text, and the sentence."""
        heading = f"a = {self.a.label}, b = {self.b.label}  ({self.a.quantity.symbol}, L = {self.a.length})"
        return "\n".join([heading, align([(f"  {r.name}", *r.cells) for r in self.readings]), "", self.words()])

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain JSON values; an undefined figure is None beside its reason."""
        return {
            "a": self.a.label,
            "b": self.b.label,
            "averages": [self.a.average, self.b.average],
            "quantity": self.a.quantity.name,
            "length": self.a.length,
            "shape_only": self.shape_only,
            "readings": [r.to_dict() for r in self.readings],
            "noise_floor": finite(self.noise_floor),
            "floor_over": self.sampled,
            "words": self.words(),
        }

    def words(self) -> str:
        """One paragraph: how far apart, against the noise, where the worst region lies, and what was left out."""
        kind = "in shape " if self.shape_only else ""
        error, floor = number(self.median_error), number(self.noise_floor)
        if np.isnan(self.median_error):
            sentences = [f"{self.a.label} and {self.b.label} cannot be compared in logs: {self.reasons['median']}."]
        elif np.isnan(self.noise_floor):
            sentences = [
                f"{self.a.label} and {self.b.label} differ {kind}by {error} dex in the median; "
                "no noise floor is known, neither side is a set of two or more measurements."
            ]
        elif self.median_error <= self.noise_floor:
            sentences = [
                f"{self.a.label} and {self.b.label} agree {kind}in the median: {error} dex, where the noise floor is "
                f"{floor} and noise alone would show as much."
            ]
        else:
            times = number(self.median_error / self.noise_floor) + " x" if self.noise_floor > 0 else "more than"
            sentences = [
                f"{self.a.label} and {self.b.label} differ {kind}by {error} dex median, the noise floor is {floor}: "
                f"{times} what noise alone would show."
            ]
        known = [r for r in self.regions if not np.isnan(r.value)]
        if known:
            worst = max(known, key=lambda r: abs(r.value))
            noise = "" if worst.floor is None else f", its floor is {number(worst.floor)}"
            if worst.floor and abs(worst.value) > 2 * worst.floor:
                times = number(abs(worst.value) / worst.floor)
                name = worst.name.removeprefix("shape ").removeprefix("error ")
                far = f"{worst.value:+.3f} dex, {times} x the floor there"
                sentences.append(f"They do not agree at positions {name}: {far}.")
            else:
                sentences.append(f"The largest regional error is {worst.value:+.3f} dex ({worst.name}{noise}).")
        if self.shape_only:
            sentences.append(f"Absolute size is not compared: {self.shape_only}.")
        if self.sampled:
            sentences.append(f"The floor is over {self.sampled}.")
        if self.a.average != self.b.average and "expectation" not in (self.a.average, self.b.average):
            sentences.append(f"Their averages differ ({self.a.average}, {self.b.average}).")
        if self.deviation.excluded:
            sentences.append(
                f"{self.deviation.excluded} positions where either is exactly 0 have no log error and are left out."
            )
        return " ".join(sentences)

    def _ceiling(self) -> str:
        """What the measurement's own halves score against each other."""
        known = not np.isnan(self.floor.spearman)
        return f"; half of the measurement scores {number(self.floor.spearman)} against the other half" if known else ""

    def _reading(self, name: str, value: float, meaning: str, floor: float = np.nan) -> Reading:
        reason = ""
        if np.isnan(value):
            reason = self.reasons.get(name) or (self.shape_only if "absolute" in name else self.reasons["median"])
        known = not (np.isnan(floor) or np.isnan(value))
        return Reading(name, float(value), meaning, floor=float(floor) if known else None, reason=reason)

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        return f"<pre>{escape(self.table())}</pre>"

    def __repr__(self) -> str:
        """One line: labels, median error and its floor."""
        return f"Comparison({self.a.label!r}, {self.b.label!r}, median error {number(self.median_error)} dex)"


def compare(a: Profile | Sample, b: Profile | Sample) -> Comparison:
    r"""Compare a with b, position by position: b is the reference (the measurement), a what is held against it.

    Errors are of \(\log_{10}a_j/b_j\), absolute and after removing one overall factor; distances and skill are
    as in ``Comparison``. A Sample is reduced to one curve: by root mean square against a theory, by the average
    of the other side against a measured curve, and two Samples by one average, ``"log"`` when either is of
    pretrained weights, ``"rms"`` otherwise. A Profile whose provenance says ``fitted`` had its size fitted, and is
    compared in shape alone; so is a quantity whose absolute size means nothing, and so are trained against untrained
    networks, whose embeddings differ in size.

    Raises:
        InvalidInput: unlike quantities or lengths, or a Sample of several conditions or steps.
    """
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, Profile | Sample):
            raise invalid(name, "must be a Profile or a Sample", type(given).__name__)
    if a.quantity.name != b.quantity.name:
        raise invalid("b", f"must be of a's quantity ({a.label!r}: {a.quantity.name})",
                      f"{b.label!r}: {b.quantity.name}")
    if a.length != b.length:
        raise invalid("b", f"must have a's length ({a.label!r}: {a.length})", f"{b.label!r}: {b.length}")
    average = _common_average(a, b)
    left, right = (p.profile(average) if isinstance(p, Sample) else p for p in (a, b))
    deviation = between(left.values, right.values)
    floors = [between_halves(p, average) for p in (a, b) if isinstance(p, Sample)]
    known = [f for f in floors if not np.isnan(f.median_shape)]
    reasons = {"median": "no position where both are above 0", "factor": "no position where both are above 0"}
    fitted = [p.label for p in (left, right) if p.provenance.get("fitted")]
    shape_only = ""
    if fitted:
        shape_only = f"the size of {fitted[0]} was fitted"
    elif not left.quantity.absolute:
        shape_only = f"the absolute size of {left.quantity.symbol} means nothing"
    elif isinstance(a, Sample) and isinstance(b, Sample) and a.weights != b.weights:
        shape_only = "training changes the size of the embeddings, and with it the unit of the Jacobian"
    skill, reasons["skill"] = _skill(deviation, right, shape_only)
    within, reasons["within 2 errors"] = _within(left, right, shape_only)
    constant = [p.label for p in (left, right) if np.ptp(p.values) == 0]
    reasons["Spearman"] = f"{' and '.join(constant)} is constant, so there are no ranks to correlate"
    return Comparison(
        left, right, deviation,
        reduce(Deviation.quadrature, known) if known else no_floor(left.length),
        shape_only, skill, within, reasons, _sampled(a, b),
    )


def _common_average(a: Profile | Sample, b: Profile | Sample) -> Average:
    """The one average by which every Sample of a comparison is reduced."""
    measured = [p for p in (a, b) if isinstance(p, Sample)]
    if len(measured) == 2:
        return "log" if "log" in map(default_average, measured) else "rms"
    curve = [p.average for p in (a, b) if isinstance(p, Profile)]
    return curve[0] if curve[0] in ("rms", "log", "mean") else "rms"


def _skill(deviation: Deviation, b: Profile, shape_only: str) -> tuple[float, str]:
    """Skill of the median error over the trivial null fitted to b, or NaN and why."""
    from catenary.theory.null import fit_null

    null = between(fit_null(b).values, b.values)
    ours, trivial = (d.median_shape if shape_only else d.median_absolute for d in (deviation, null))
    if np.isnan(ours) or np.isnan(trivial):
        return float("nan"), "no median error to compare with the null's"
    if trivial < 1e-12:  # rounding of log10 in float64
        return float("nan"), "the null itself is exact here"
    return 1 - ours / trivial, ""


def _within(a: Profile, b: Profile, shape_only: str) -> tuple[float, str]:
    """Share of positions with |a - b| <= 2 standard errors, in quadrature over the sides that have one."""
    if shape_only:
        return float("nan"), shape_only
    errors = [p.standard_error for p in (a, b) if p.standard_error is not None]
    total = np.sqrt(np.sum([e**2 for e in errors], axis=0)) if errors else np.zeros(1)
    if not total.any():
        return float("nan"), "neither side has a standard error"
    return float(np.mean(np.abs(a.values - b.values) <= 2 * total)), ""


def _sampled(a: Profile | Sample, b: Profile | Sample) -> str:
    """What the floor was taken over, and what it therefore does not hold."""
    parts = []
    for p in (a, b):
        if isinstance(p, Sample) and p.unit != "none":
            count = {"net": p.nets, "sequence": p.sequences, "probe": p.probes}[p.unit]
            parts.append(f"{count} {p.unit}s of {p.label}" + ("" if p.unit == "net" else ", one network"))
    return " and ".join(parts)
