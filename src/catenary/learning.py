"""Learning speed by position: steps to half accuracy in each part of the window against the profile at birth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from catenary.errors import invalid
from catenary.reading import Reading, finite

HALF = 0.5
"""The accuracy whose step is looked for; chance is 1/8 in the tasks here."""
SMOOTH = 25
"""Updates over which accuracy is averaged: with 32 answers each, 100 per eighth of the window, so +-.05 at one half."""
PROPORTIONAL = -1.0
"""The elasticity if the rate of learning at a position were proportional to its influence at birth."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """One seed: the profile at birth, and right answers and answers asked for by update and bin of positions.

    ``birth`` is log-mean ||J_j||_F over each bin. NaN in ``half`` is a bin that did not come to one half.
    """

    seed: int
    birth: Float64[np.ndarray, " bin"]
    right: Float64[np.ndarray, "step bin"]
    asked: Float64[np.ndarray, "step bin"]

    @property
    def accuracy(self) -> Float64[np.ndarray, "step bin"]:
        """Share of right answers over ``SMOOTH`` updates around each, fewer at both ends."""
        return np.asarray(_moving(self.right) / np.maximum(_moving(self.asked), 1))

    @property
    def half(self) -> Float64[np.ndarray, " bin"]:
        """The update at which each bin's accuracy first reaches one half, between updates by a straight line."""
        return np.array([crossing(column) for column in self.accuracy.T])

    @property
    def elasticity(self) -> float:
        """Slope of log(steps to half) on log(influence at birth) over bins, least squares; NaN if a bin has none."""
        x, y = np.log(self.birth), np.log(self.half)
        x = x - x.mean()
        return float(x @ (y - y.mean()) / (x @ x))

    @property
    def slowest(self) -> float:
        """Steps to half of the slowest bin over those of the fastest; NaN if a bin has none."""
        return float(self.half.max() / self.half.min())


@dataclass(frozen=True, eq=False)
class Learning:
    """Lessons of one task on one architecture, several seeds. ``edges`` bound the bins of positions, from 0."""

    task: str
    words: str
    label: str
    length: int
    edges: Int64[np.ndarray, " edge"]
    lessons: tuple[Lesson, ...]

    def __post_init__(self) -> None:
        """An elasticity needs bins that differ, and a seed."""
        if not self.lessons or len(self.edges) < 3:
            raise invalid("learning", "must have a seed and two bins", (len(self.lessons), len(self.edges) - 1))

    @property
    def learned(self) -> tuple[Lesson, ...]:
        """The seeds in which every bin came to one half."""
        return tuple(lesson for lesson in self.lessons if np.isfinite(lesson.half).all())

    @property
    def elasticity(self) -> Reading:
        r"""\(d\log t_{50}/d\log\rho_\text{birth}\), mean over seeds, with a 95 % Student interval over them."""
        return _over_seeds(
            "elasticity", [lesson.elasticity for lesson in self.learned],
            "d log(steps to half) / d log(influence at birth); -1 if learning were proportional to influence",
        )

    @property
    def slowest(self) -> Reading:
        """Steps to half of the slowest bin over the fastest, mean over seeds."""
        return _over_seeds("slowest/fastest", [s.slowest for s in self.learned], "steps to half, over bins")

    @property
    def spread(self) -> Reading:
        """Largest over smallest influence at birth, mean over seeds."""
        return _over_seeds(
            "birth max/min", [float(s.birth.max() / s.birth.min()) for s in self.lessons],
            "influence at birth, over bins",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "task": self.task, "label": self.label, "length": self.length, "edges": self.edges.tolist(),
            "readings": [r.to_dict() for r in (self.elasticity, self.slowest, self.spread)],
            "seeds": [
                {
                    "seed": s.seed, "updates": len(s.right), "birth": s.birth.tolist(),
                    "half": [finite(float(t)) for t in s.half], "elasticity": finite(s.elasticity),
                }
                for s in self.lessons
            ],
        }  # fmt: skip


def _moving(values: Float64[np.ndarray, "step bin"]) -> Float64[np.ndarray, "step bin"]:
    """Sums over ``SMOOTH`` rows centred on each."""
    total = np.concatenate([np.zeros((1, values.shape[1])), values.cumsum(axis=0)])
    at, reach = np.arange(len(values)), SMOOTH // 2
    return np.asarray(total[np.minimum(at + reach + 1, len(values))] - total[np.maximum(at - reach, 0)])


def crossing(accuracy: Float64[np.ndarray, " step"]) -> float:
    """The update at which an accuracy first is one half, between updates by a straight line; NaN if it never is."""
    reached = accuracy >= HALF
    if not reached.any():
        return float("nan")
    first = int(reached.argmax())
    if first == 0:
        return 0.5  # before the first update is over; half an update keeps the logarithm finite
    before, after = accuracy[first - 1], accuracy[first]
    return float(first - 1 + (HALF - before) / (after - before))


def _over_seeds(name: str, values: Sequence[float], meaning: str) -> Reading:
    from scipy.special import stdtrit

    if not values:
        return Reading(name, float("nan"), meaning, reason="no seed learned the task in every part of the window")
    mean = float(np.mean(values))
    if len(values) < 2:
        return Reading(name, mean, meaning)
    half = float(stdtrit(len(values) - 1, 0.975)) * float(np.std(values, ddof=1)) / len(values) ** 0.5
    return Reading(name, mean, meaning, mean - half, mean + half)
