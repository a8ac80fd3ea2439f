"""Where between influence at birth and time to half accuracy proportionality is lost: each step and switch alone."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from catenary.learning import Lesson
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.first_gradient import first_gradient, loss_gradient
from catenary.reproduce.pupils import LEAVING, fresh, half_times, influence, learning_config, taught
from catenary.reproduce.small import over_networks, slopes
from catenary.study.config import StudyConfig
from catenary.study.learning import Assignment, bin_edges
from catenary.study.observer import Observer, counting
from catenary.study.pupil import Descent, Pupil
from catenary.study.tasks import Batch, balanced, find_task, places
from catenary.study.units import derived_seed

BIRTH, LATER = (128, 4), (64, 4)
"""Windows and probes of the influence at birth and in training."""
UNASKED = 32
"""Windows for each position that was never asked about."""


def learning_causes(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Gradients at birth by position, then time to half of networks apart, of a few positions together, and of all.

    Settings: ``task``, ``model`` or ``network``, ``length``, ``bin`` and ``stride`` as for ``learning-rate``;
    ``positions``, of which the first is 0 (those learned apart; all together are not asked about them), ``seeds``,
    ``most``; ``rates`` by descent (adam, sgd); ``few`` (whether one network learns ``positions`` together); ``after``
    (whether each of ``positions`` is asked about once the others are known); ``windows`` of a gradient of the loss
    and ``signal_windows`` of the answer's. Times are those of ``half_times``. Intervals are Student's over seeds, each
    another network.
    """
    seeds = int(settings["seeds"])
    with learning_config(settings) as (config, _), counting(observer, "networks", seeds) as progress:
        found = []
        for seed in range(seeds):
            found.append(_Seed(settings, config, seed).measured())
            progress(seed + 1, seeds)
    numbers = {name: [one[name] for one, _ in found] for name in found[0][0]}
    readings = tuple(_over(name, values, _meaning(name)) for name, values in numbers.items())
    rows = [(seed, *row) for seed, (_, part) in enumerate(found) for row in part]
    arms = list(dict.fromkeys(row[1] for row in rows))
    curves = [
        (arm, sorted((_geometric([r[3] for r in rows if r[1:3] == (arm, place)]),
                      _geometric([r[4] for r in rows if r[1:3] == (arm, place)]))
                     for place in dict.fromkeys(r[2] for r in rows if r[1] == arm)))
        for arm in arms
    ]  # fmt: skip
    caption = "Updates to half accuracy against influence at birth on the task's windows, geometric means over seeds."
    chart = lines([(arm, [p for p in points if all(map(math.isfinite, p))]) for arm, points in curves],
                  x="influence at birth", y="updates to half accuracy", log_x=True, log_y=True)  # fmt: skip
    return Finding(
        f"{settings['task']}: {config.model.rsplit('/', 1)[-1]}, L = {config.length}, {seeds} networks from scratch in "
        f"each arm; {', '.join(f'{d} at {r:g}' for d, r in settings['rates'].items())}, 32 fresh windows an update; "
        f"positions {', '.join(str(p + 1) for p in settings['positions'])} apart, the others together in bins of "
        f"{settings['bin']}",
        readings, (Plate("causes", chart, caption, caption),),
        ("seed", "arm", "first_position", "influence_at_birth", "updates_to_half"), rows,
    )  # fmt: skip


MEANINGS = {
    "loss gradient": "d log(norm of the loss's gradient on all weights at birth) / d log(influence)",
    "answer gradient": "d log(norm of the answer's part of that gradient) / d log(influence)",
    "question in the answer gradient": "share of its square that goes when the question is about another position",
    "apart": "d log(updates to half) / d log(influence at birth), each position in a network of its own",
    "few together": "d log(updates to half) / d log(influence at birth), the same positions in one network",
    "few together over apart": "updates to half of each in one network over those apart, geometric mean",
    "together": "d log(updates to half) / d log(influence at birth) over bins, all others in one network",
    "together on influence at takeoff": "the same on influence when a quarter of the answers were right",
    "spread at birth": "influence on the task's windows, highest over lowest bin",
    "spread at takeoff": "the same when a quarter of the answers were right",
    "chance": "share of the updates to half at which less than a quarter of the answers were right, all in one network",
    "unasked over asked": "accuracy at positions never asked about over that at the others when those are learned",
    "after": "d log(updates to half) / d log(influence at birth) of positions asked about when the others are known",
    "after over apart": "updates to half when the others are known over those from birth, geometric mean",
}  # fmt: skip
"""What each reading is, by its name up to the descent."""

FIRST = " without the first position"

Row = tuple[str, int, float, float]


class _Seed:
    """All arms of one seed: the same network at birth in each."""

    def __init__(self, settings: Mapping[str, Any], config: StudyConfig, seed: int) -> None:
        self.settings, self.config, self.seed = settings, config, seed
        self.task, self.length = find_task(str(settings["task"])), config.length
        self.apart = np.array(settings["positions"], dtype=np.int64)
        self.rates: Mapping[Descent, float] = settings["rates"]
        stride, size_of_bin = int(settings["stride"]), int(settings["bin"])
        edges = bin_edges(self.length, Assignment(bin=size_of_bin, stride=stride))
        others = np.setdiff1d(places(self.length, stride), self.apart)
        bins = [others[(a <= others) & (others < b)] for a, b in pairwise(edges)]
        self.bins, self.others = [positions for positions in bins if len(positions)], others
        self.numbers: dict[str, float] = {}
        self.rows: list[Row] = []

    def measured(self) -> tuple[dict[str, float], list[Row]]:
        """Every number of this seed, and a row for each time to half."""
        start = next(iter(self.rates))
        newborn = self._fresh(start)
        self.birth = self._influence(newborn, BIRTH, "birth")
        self._gradients(newborn)
        apart: dict[str, Float64[np.ndarray, " k"]] = {}
        for descent in self.rates:
            halves = np.array([self._one(self._fresh(descent), p, f"apart {p}") for p in self.apart])
            self._times("apart", descent, self.apart, self.birth[self.apart], halves)
            self.numbers[f"apart{FIRST}, {descent}"] = _elasticity(self.birth[self.apart][1:], halves[1:])
            apart[descent] = halves
        if self.settings.get("few"):
            few = self._taught(self._fresh(start), [np.array([p]) for p in self.apart], "few")
            slower = half_times(few) / apart[start]
            self._times("few together", start, self.apart, self.birth[self.apart], half_times(few))
            self.numbers[f"few together over apart, {start}"] = _geometric(slower)
            self.numbers[f"few together over apart{FIRST}, {start}"] = _geometric(slower[1:])
        self.numbers["spread at birth"] = _spread(self._binned(self.birth))
        for descent in self.rates:
            self._together(descent, apart[descent])
        return self.numbers, self.rows

    def _together(self, descent: Descent, apart: Float64[np.ndarray, " k"]) -> None:
        pupil, birth = self._fresh(descent), self._binned(self.birth)
        taken: list[Float64[np.ndarray, " L"]] = []
        leaving = lambda: taken.append(self._influence(pupil, LATER, "takeoff"))  # noqa: E731
        lesson = self._taught(pupil, self.bins, "together", leaving)
        half = half_times(lesson)
        self._times("together", descent, np.array([positions[0] for positions in self.bins]), birth, half)
        then = self._binned(taken[0]) if taken else np.full(len(self.bins), np.nan)
        numbers = self.numbers
        numbers[f"together on influence at takeoff, {descent}"] = _elasticity(then, half)
        numbers[f"spread at takeoff, {descent}"] = _spread(then)
        whole = Lesson(0, np.ones(1), lesson.right.sum(axis=1)[:, None], lesson.asked.sum(axis=1)[:, None])
        left = np.flatnonzero(whole.accuracy[:, 0] >= LEAVING)
        numbers[f"chance, {descent}"] = float(left[0] / whole.half[0]) if len(left) else math.nan
        generator = self._generator("unasked")
        shares = [
            float(pupil.right(self.task.draw(np.repeat(positions, UNASKED), self.length, generator)).mean())
            for positions in (self.apart, self.others)
        ]
        numbers[f"unasked over asked, {descent}"] = shares[0] / shares[1]
        if self.settings.get("after"):
            halves = np.array([self._one(_again(pupil), p, f"after {p}") for p in self.apart])
            self._times("after", descent, self.apart, self.birth[self.apart], halves)
            numbers[f"after over apart, {descent}"] = _geometric(halves / apart)

    def _gradients(self, newborn: Pupil) -> None:
        """Of the loss, and of the answer's part of it, at birth by position; and how much of that the question is."""
        generator, count = self._generator("loss"), int(self.settings["windows"])
        of_loss = [loss_gradient(newborn, self.task, int(p), self.length, count, generator) for p in self.apart]
        generator, count = self._generator("answer"), int(self.settings["signal_windows"])
        found = [first_gradient(newborn, self.task, int(p), self.length, count, generator) for p in self.apart]
        of_answer = [one.norm for one in found]
        birth = self.birth[self.apart]
        for name, sizes in (("loss gradient", of_loss), ("answer gradient", of_answer)):
            self.numbers[name] = _elasticity(birth, np.array(sizes))
            self.numbers[name + FIRST] = _elasticity(birth[1:], np.array(sizes)[1:])
        self.numbers["question in the answer gradient"] = sum(f.question for f in found) / sum(n**2 for n in of_answer)

    def _times(
        self, arm: str, descent: Descent, at: Int64[np.ndarray, " k"], birth: Float64[np.ndarray, " k"],
        halves: Float64[np.ndarray, " k"],
    ) -> None:
        name = f"{arm}, {descent}"
        self.numbers[name] = _elasticity(birth, halves)
        self.rows += [(name, int(p) + 1, float(b), float(h)) for p, b, h in zip(at, birth, halves, strict=True)]

    def _one(self, pupil: Pupil, position: int, words: str) -> float:
        return float(half_times(self._taught(pupil, [np.array([position])], words))[0])

    def _taught(
        self, pupil: Pupil, columns: Sequence[Int64[np.ndarray, " _"]], words: str,
        leaving: Callable[[], None] | None = None,
    ) -> Lesson:  # fmt: skip
        return taught(pupil, self.task, columns, self.length, int(self.settings["most"]), self._generator(words),
                      birth=np.ones(len(columns)), leaving=leaving)  # fmt: skip

    def _influence(self, pupil: Pupil, size: tuple[int, int], words: str) -> Float64[np.ndarray, " L"]:
        """On windows that ask about all positions alike."""
        generator, (windows, probes) = self._generator(words), size
        batch: Batch = self.task.draw(balanced(np.arange(self.length - 1), windows, generator), self.length, generator)
        return influence(pupil, batch, probes, derived_seed(self.seed, "probes", words))

    def _binned(self, profile: Float64[np.ndarray, " L"]) -> Float64[np.ndarray, " bin"]:
        """Log-mean over the positions asked about in each bin."""
        return np.array([_geometric(profile[positions]) for positions in self.bins])

    def _fresh(self, descent: Descent) -> Pupil:
        return fresh(self.config, self.seed, self.rates[descent], descent)

    def _generator(self, words: str) -> np.random.Generator:
        return np.random.default_rng(derived_seed(self.seed, "causes", words))


def _meaning(name: str) -> str:
    words = name.split(",")[0]
    return MEANINGS[words.removesuffix(FIRST)] + (FIRST if words.endswith(FIRST) else "")


def _again(pupil: Pupil) -> Pupil:
    """A copy that has learned as much and remembers no gradient."""
    other = copy.deepcopy(pupil)
    other.restart()
    return other


def _elasticity(x: Float64[np.ndarray, " k"], y: Float64[np.ndarray, " k"]) -> float:
    return float(slopes(list(x), np.log(y)[:, None])[0])


def _geometric(values: Sequence[float] | Float64[np.ndarray, " k"]) -> float:
    return float(np.exp(np.log(np.asarray(values, dtype=np.float64)).mean()))


def _spread(values: Float64[np.ndarray, " k"]) -> float:
    return float(values.max() / values.min())


def _over(name: str, values: Sequence[float], meaning: str) -> Reading:
    """Mean over the seeds that have the number."""
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2:
        return Reading(name, math.nan, meaning, reason="fewer than two networks learned every position")
    if len(known) < len(values):
        meaning += f"; {len(values) - len(known)} of {len(values)} networks did not get there"
    return over_networks(name, known, meaning)


STUDIES.register("learning-causes", learning_causes)
