"""A retrieval study: samples scored at every position one by one, each kept, until there are enough or time is up."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catenary.errors import InvalidInput, invalid, unknown
from catenary.retrieval.case import Task
from catenary.retrieval.link.table import LinkTable
from catenary.retrieval.outcomes import METRICS, Outcomes
from catenary.retrieval.scoring.metrics import Disagreement, disagreements
from catenary.retrieval.scoring.rates import Rates, rates
from catenary.retrieval.scoring.scorer import Scorer
from catenary.retrieval.statistics import paired_sd, samples_for
from catenary.study.observer import Observer, Silent
from catenary.study.retrieve_left_out import left_out
from catenary.study.retrieve_units import Finished, Unit, collect, is_finished, make_unit, read_unit, score_unit

PILOT = 12
"""Samples before the first count of how many are needed; it is made anew at each doubling, and where it is reached."""


@dataclass(frozen=True, eq=False)
class RetrieveStudy:
    """What was found.

    Attributes:
        outcomes: paired results.
        rates: skipped, empty and truncated by position.
        disagreed: generations on which the metrics are not of one mind.
        notes: sentences on what was left out, and why.
        prompt: the first sample's prompt as the model got it, its fact at the first position.
        link: what held-out prompts show, None where none was asked for.
        link_notes: sentences on held-out prompts that were left out.
    """

    outcomes: Outcomes
    rates: Rates
    disagreed: tuple[Disagreement, ...]
    notes: tuple[str, ...]
    prompt: str
    link: LinkTable | None = None
    link_notes: tuple[str, ...] = ()


def chosen_slots(slots: int, positions: int) -> tuple[int, ...]:
    """``positions`` slots of a prompt, evenly from its first to its last; all of them where there are no more."""
    if positions < 1:
        raise invalid("positions", "must be at least 1", positions)
    return tuple(sorted({int(slot) for slot in np.round(np.linspace(0, slots - 1, min(positions, slots)))}))


def score_samples(
    task: Task,
    scorer: Scorer,
    folder: Path | None = None,
    *,
    samples: int,
    positions: int = 10,
    resolve: float | None = None,
    metric: str = "best_subspan",
    budget_minutes: float | None = None,
    provenance: Mapping[str, Any] | None = None,
    observer: Observer | None = None,
) -> RetrieveStudy:
    """Score samples of a task at evenly spread positions, and the baselines the task has.

    Args:
        task: what is asked.
        scorer: who answers.
        folder: where finished samples are kept; a second call with the same folder scores only what is missing, and
            gives the same outcomes. None keeps nothing.
        samples: most samples; no more than the task has.
        positions: slots that are visited, evenly from the first to the last.
        resolve: a difference of two positions in ``metric``; scoring stops where it would be seen with 80 % power.
        metric: what ``resolve`` is a difference of, and the verdict; not ``logp`` where the scorer gives text alone.
        budget_minutes: of the clock; no sample is begun that would not end in time. The first one always is.
        provenance: more about where outcomes come from, as JSON values.
        observer: told of progress.

    Raises:
        InvalidInput: sizes below 1, an unknown metric, a task that refuses a sample, a call that failed for good.
    """
    if samples < 1:
        raise invalid("samples", "must be at least 1", samples)
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    if metric == "logp" and not scorer.has_logp:
        raise invalid("metric", "can be 'logp' only for a network", metric, "a black box gives text alone")
    watch = observer or Silent()
    slots = chosen_slots(task.slots, positions)
    first = make_unit(task, 0, slots, {}, None)
    scorer.settle(first.cases)
    run = _Run(task, scorer, folder, slots, min(samples, len(task)), resolve, metric, budget_minutes, watch)
    finished, notes = run.finish()
    record = {
        "task": dict(task.record()), "scorer": scorer.record(), "longest": getattr(scorer, "max_length", None),
        "slots": list(slots), **(provenance or {}),
    }  # fmt: skip
    outcomes = collect(task, slots, finished, logp=scorer.has_logp, provenance=record)
    cells = [one.results[: len(slots)] for one in finished]
    notes[:0] = left_out(task.record())
    if samples > len(task):
        notes.insert(0, f"The task has {len(task)} samples, fewer than the {samples} asked for.")
    return RetrieveStudy(outcomes, rates(cells), disagreements(outcomes, task), tuple(notes), _prompt(scorer, first))


@dataclass
class _Run:
    """The loop over samples, and the reasons for which it stops."""

    task: Task
    scorer: Scorer
    folder: Path | None
    slots: tuple[int, ...]
    most: int
    resolve: float | None
    metric: str
    budget: float | None
    watch: Observer

    def finish(self) -> tuple[list[Finished], list[str]]:
        """Finished units from the first sample on, and what is to be said of those that are not."""
        identity = self.scorer.identity()
        finished: list[Finished] = []
        notes: list[str] = []
        started, fresh, wanted = time.monotonic(), 0, self.most
        self.watch.begin("samples", self.most)
        try:
            while len(finished) < wanted:
                unit = make_unit(self.task, len(finished), self.slots, identity, self.folder)
                if is_finished(unit):
                    finished.append(read_unit(unit))
                elif fresh and self._too_late(each := (time.monotonic() - started) / fresh, fresh):
                    notes.append(
                        f"{len(finished)} of {wanted} samples were scored: at {each:.1f} s each the next would not end "
                        f"within {self.budget:g} minutes."
                    )
                    break
                else:
                    finished.append(score_unit(self.scorer, unit))
                    fresh += 1
                    if fresh == 1:
                        self._say(time.monotonic() - started, wanted - len(finished))
                self.watch.advance(1)
                if self.resolve is not None and (_due(len(finished)) or len(finished) == wanted):
                    wanted = self._enough(finished, self.resolve)
        finally:
            self.watch.end()
        if self.resolve is not None:
            notes.append(self._resolved(finished, self.resolve))
        return finished, notes

    def _too_late(self, each: float, fresh: int) -> bool:
        return self.budget is not None and each * (fresh + 1) > 60 * self.budget

    def _say(self, seconds: float, left: int) -> None:
        budget = "" if self.budget is None else f", of a budget of {self.budget:g}"
        self.watch.say(
            f"one sample at {len(self.slots)} positions took {seconds:.1f} s; {left} more take about "
            f"{seconds * left / 60:.1f} minutes{budget}"
        )

    def _enough(self, finished: list[Finished], resolve: float) -> int:
        """Samples to score by what is known so far, at most twice as many as there are."""
        spread = self._spread(finished)
        if not spread:  # nothing is known, or nothing differs yet: that is no reason to stop
            return self.most
        there = len(finished)
        return min(self.most, max(there, min(samples_for(resolve, spread), 2 * there)))

    def _spread(self, finished: list[Finished]) -> float | None:
        outcomes = collect(self.task, self.slots, finished, logp=self.scorer.has_logp, provenance={})
        rows = outcomes.complete(self.metric)
        return paired_sd(rows) if len(rows) > 1 and len(self.slots) > 1 else None

    def _resolved(self, finished: list[Finished], resolve: float) -> str:
        spread = self._spread(finished)
        if spread is None:
            return f"How many samples resolve {resolve:g} is not known: no two were scored at every position."
        if not spread:
            return (
                f"How many samples resolve {resolve:g} is not known: none of {len(finished)} differs in {self.metric} "
                "between positions."
            )
        needed, there = samples_for(resolve, spread), len(finished)
        return (
            f"To see a difference of {resolve:g} in {self.metric} between two positions takes about {needed} samples; "
            f"{there} are {'enough' if needed <= there else 'not enough'}."
        )


def _due(count: int) -> bool:
    """Whether the samples needed are counted anew: at 12, 24, 48, ..."""
    return count >= PILOT and count % PILOT == 0 and (count // PILOT).bit_count() == 1


def _prompt(scorer: Scorer, first: Unit) -> str:
    encoder = getattr(scorer, "encoder", None)
    if encoder is None:
        return first.cases[0].text
    try:
        return str(encoder.rendered(first.cases[0]))
    except InvalidInput:
        return first.cases[0].text
