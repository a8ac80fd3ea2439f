"""What a join of two texts does to a profile: the first token of a chunk against its neighbours, and chunks inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from catenary.errors import invalid
from catenary.reading import Reading, align, finite, number
from catenary.sample import Sample
from catenary.statistics import Units, interval

NEAR, FAR = 3, 12
"""Neighbours are 3 to 12 tokens away: nearer ones can share the effect, farther ones another place in the curve."""

LARGE = (2.0, 5.0)
"""A single boundary is counted as large above these ratios."""

Curves = Float64[np.ndarray, "n L"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the chunks of a window lie, and which tokens stand for "near a boundary".

    Attributes:
        length: L.
        chunk: c; boundaries are the positions c, 2c, ... (0-based).
        near, far: neighbours of a position are those ``near`` to ``far`` away on both sides, boundaries left out.
    """

    length: int
    chunk: int
    near: int
    far: int

    @classmethod
    def of(cls, length: int, chunk: int) -> Layout:
        """The layout with neighbours 3 to 12 tokens away, nearer ones where chunks are shorter than 26."""
        if not chunk >= 4 or length < 2 * chunk + 2:
            rule = f"must be >= 4 and leave two chunks in {length} tokens"
            raise invalid("chunk", rule, chunk, "measure chunked windows of more or shorter chunks")
        far = min(FAR, (chunk - 1) // 2)
        return cls(length, chunk, min(NEAR, far), far)

    def places(self, shift: int = 0) -> Int64[np.ndarray, " b"]:
        """Positions ``shift`` tokens after each boundary whose neighbours all lie in 1..L-2."""
        at = np.arange(self.chunk, self.length, self.chunk) + shift
        return at[(at - self.far >= 1) & (at + self.far <= self.length - 2)]

    @property
    def interior(self) -> Int64[np.ndarray, " k"]:
        """Starts of the chunks that are whole and neither the first nor the one with the last token."""
        starts = np.arange(self.chunk, self.length, self.chunk)
        return starts[starts + self.chunk <= self.length - 1]

    def ratios(self, curves: Curves, shift: int = 0) -> Float64[np.ndarray, "n b"]:
        r"""\(\log\rho_p\) minus the mean of \(\log\rho\) over the neighbours of p, for every place p."""
        return self.contrasts(np.log(curves), shift)

    def contrasts(self, values: Curves, shift: int = 0) -> Float64[np.ndarray, "n b"]:
        """A value at p minus the mean of its neighbours', for every place p."""
        rows = [values[:, p] - values[:, self._around(p)].mean(axis=1) for p in self.places(shift)]
        return np.asarray(np.stack(rows, axis=1))

    def inside(self, curves: Curves) -> Float64[np.ndarray, "n c"]:
        r"""\(\log\rho\) by place in a chunk, less the chunk's mean, averaged over interior chunks."""
        logs = np.log(curves)
        parts = np.stack([logs[:, start : start + self.chunk] for start in self.interior], axis=1)
        return np.asarray((parts - parts.mean(axis=2, keepdims=True)).mean(axis=1))

    def _around(self, place: int) -> Int64[np.ndarray, " m"]:
        steps = np.arange(self.near, self.far + 1)
        around = np.concatenate((place - steps, place + steps))
        at_boundary: Bool[np.ndarray, " m"] = around % self.chunk == 0
        return np.asarray(around[~at_boundary])


@dataclass(frozen=True, eq=False)
class Inside:
    """The curve within a chunk: ratio to the chunk's log-mean by place 0..c-1, with a 95 % interval where known."""

    values: Float64[np.ndarray, " c"]
    low: Float64[np.ndarray, " c"] | None
    high: Float64[np.ndarray, " c"] | None


@dataclass(frozen=True, eq=False)
class BoundaryEffect:
    """How the first tokens of chunks stand out of their neighbours.

    Attributes:
        label: the Sample's.
        layout: where the chunks lie.
        unit, count: the unit of uncertainty and how many there are.
        readings: ``boundary ratio``, ``misaligned ratio``, ``alignment rank``, ``share above 2``, ``share above 5``.
        alignments: the ratio with all places moved by s = 0..c-1 tokens; 0 are the boundaries themselves.
        single: the ratio of each boundary, named by its position.
        inside: the curve within interior chunks.
    """

    label: str
    layout: Layout
    unit: str
    count: int
    readings: tuple[Reading, ...]
    alignments: Float64[np.ndarray, " c"]
    single: tuple[Reading, ...]
    inside: Inside

    def __getitem__(self, name: str) -> Reading:
        """One number by its name."""
        return next(reading for reading in (*self.readings, *self.single) if reading.name == name)

    def table(self) -> str:
        """The numbers as aligned text under a heading."""
        heading = f"{self.label}: chunks of {self.layout.chunk}, over {self.count} {self.unit}s"
        return f"{heading}\n{align([(f'  {r.name}', *r.cells) for r in self.readings])}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "label": self.label, "length": self.layout.length, "chunk": self.layout.chunk,
            "neighbours": [self.layout.near, self.layout.far], "unit": self.unit, "count": self.count,
            "readings": [r.to_dict() for r in self.readings],
            "single": [r.to_dict() for r in self.single],
            "alignments": [finite(float(v)) for v in self.alignments],
            "inside": self.records(),
        }  # fmt: skip

    def records(self) -> list[dict[str, Any]]:
        """One record per place in a chunk, for a CSV."""
        inside = self.inside
        return [
            {
                "label": self.label,
                "place": place,
                "ratio_to_chunk": float(value),
                "low": None if inside.low is None else float(inside.low[place]),
                "high": None if inside.high is None else float(inside.high[place]),
            }
            for place, value in enumerate(inside.values)
        ]


def boundary_effect(sample: Sample, chunk: int, *, seed: int = 0) -> BoundaryEffect:
    r"""How much more the last token depends on the first token of a chunk than on that token's neighbours.

    \(\log r = \langle \log\rho_b - \langle\log\rho_{b\pm n}\rangle_{n=3..12}\rangle_b\) over boundaries b = c, 2c, ...,
    from the log-average over networks and sequences. A slope or a trend across a boundary cancels, since neighbours
    lie on both sides. Controls: the same with all places moved by s tokens, and any Sample without joins at the same
    places (single documents, shuffled tokens, an untrained network).

    Args:
        sample: one condition, one step, every energy > 0.
        chunk: c, tokens per chunk, at least two chunks in the window.
        seed: of the bootstrap over networks, else sequences (95 %, widened for few units).

    Raises:
        InvalidInput: a chunk that does not fit, several conditions, or an energy of exactly 0.

    Where it holds: interior boundaries, ``far`` tokens from both ends. Definition after the chunked condition of
    arXiv 2603.10123; neighbours, controls and intervals derived here.
    """
    layout = Layout.of(sample.length, chunk)
    if layout.places().size == 0:
        raise invalid("chunk", f"must put a boundary {layout.far} tokens from both ends", chunk, "use longer windows")
    units = Units.of(sample, "log")
    curve = units.curves(np.full((1, units.count), 1 / units.count))
    shift = chunk // 2
    alignments = np.exp(
        [layout.ratios(curve, s).mean() if layout.places(s).size else np.nan for s in range(chunk)]
    )
    known = alignments[np.isfinite(alignments)]
    each = np.exp(layout.ratios(_sequences(sample)))
    elsewhere = np.exp(layout.ratios(_sequences(sample), shift)) if layout.places(shift).size else None
    readings = [
        _mean(units, layout, 0, "boundary ratio", "a chunk's first token over its neighbours, log-mean", seed),
        _mean(units, layout, shift, "misaligned ratio", f"the same {shift} tokens later: a control", seed),
        Reading(
            "alignment rank", float((known >= alignments[0]).sum()),
            f"place of the boundary ratio among its {known.size} alignments, largest first: 1 says it belongs to joins",
        ),
    ]
    for bound in LARGE:
        beside = "" if elsewhere is None else f"; {number(float((elsewhere > bound).mean()))} at the control's places"
        share = float((each > bound).mean())
        readings.append(
            Reading(f"share above {bound:.0f}", share, f"of single boundaries in single windows{beside}")
        )
    return BoundaryEffect(
        sample.label, layout, units.kind, units.count, tuple(readings), alignments,
        _single(units, layout, seed), _inside(units, layout, seed),
    )


def _sequences(sample: Sample) -> Curves:
    """One curve per (network, sequence)."""
    return np.asarray(np.sqrt(sample.energy[0, 0].mean(axis=2).reshape(-1, sample.length)))


def _mean(units: Units, layout: Layout, shift: int, name: str, meaning: str, seed: int) -> Reading:
    if layout.places(shift).size == 0:
        return Reading(name, float("nan"), meaning, reason="no such place is far enough from both ends")

    def statistic(curves: Curves) -> Float64[np.ndarray, "n 1"]:
        return np.asarray(np.exp(layout.ratios(curves, shift).mean(axis=1, keepdims=True)))

    return _reading(units, statistic, [(name, meaning)], seed)[0]


def _single(units: Units, layout: Layout, seed: int) -> tuple[Reading, ...]:
    names = [(f"boundary {place}", "this boundary's ratio, log-mean over windows") for place in layout.places()]
    return _reading(units, lambda curves: np.exp(layout.ratios(curves)), names, seed)


def _inside(units: Units, layout: Layout, seed: int) -> Inside:
    names = [(str(place), "ratio to the chunk's log-mean") for place in range(layout.chunk)]
    if layout.interior.size == 0:
        raise invalid("chunk", "must leave a whole chunk between the first and the last", layout.chunk)
    readings = _reading(units, lambda curves: np.exp(layout.inside(curves)), names, seed)
    values = np.array([reading.value for reading in readings])
    if any(reading.low is None for reading in readings):
        return Inside(values, None, None)
    return Inside(values, np.array([r.low for r in readings]), np.array([r.high for r in readings]))


def _reading(units: Units, statistic: Any, names: list[tuple[str, str]], seed: int) -> tuple[Reading, ...]:
    estimate = statistic(units.curves(np.full((1, units.count), 1 / units.count)))[0]
    if units.count < 2:
        return tuple(Reading(n, float(v), meaning) for (n, meaning), v in zip(names, estimate, strict=True))
    draws = units.bootstrap(statistic, seed=seed)
    made = []
    for index, (name, meaning) in enumerate(names):
        low, high = interval(float(estimate[index]), draws[:, index], units.count, 0.0)
        made.append(Reading(name, float(estimate[index]), meaning, low, high))
    return tuple(made)
