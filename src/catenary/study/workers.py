"""Measure units in several processes through joblib: local ones, or the workers of a Dask cluster.

Workers only measure. The parent writes each unit's file as its numbers arrive, so that workers need no common disk,
and what was finished before any of them (or the parent) died is not measured again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from catenary.errors import InvalidInput, MissingResource, invalid
from catenary.provenance import digest
from catenary.store import write_array
from catenary.study.config import StudyConfig
from catenary.study.measuring import load_net
from catenary.study.parts import Part
from catenary.study.spent import Meter
from catenary.study.units import Unit, measure_unit

if TYPE_CHECKING:
    from catenary.models.model import Model

ROUNDS = 3
"""How often in a row local workers may die without one finished unit between them before the run stops."""

ANSWER = 20.0
"""Seconds a scheduler has to answer: a busy one takes a few."""


@dataclass(frozen=True)
class Task:
    """One unit with what a worker needs to measure it."""

    config: StudyConfig
    part: Part
    unit: Unit


@dataclass(frozen=True, eq=False)
class Outcome:
    """A measured task, and the processor seconds and peak memory it took where it ran."""

    index: int
    energy: Float64[np.ndarray, "n K L"]
    seconds: float
    peak: int


@dataclass(frozen=True)
class Tally:
    """What all tasks of a run took: processor seconds in sum, the largest peak of memory, and windows measured."""

    seconds: float = 0.0
    peak: int = 0
    windows: int = 0


@dataclass(frozen=True)
class Workers:
    """Where tasks run: ``jobs`` local processes, or the Dask cluster at ``cluster`` (all of its workers)."""

    jobs: int = 1
    cluster: str | None = None

    def __post_init__(self) -> None:
        """Refuse fewer than one process."""
        if self.jobs < 1:
            raise invalid("jobs", "must be >= 1", self.jobs)

    def measure(self, tasks: Sequence[Task], advance: Callable[[int], None]) -> Tally:
        """Measure every unit that has no file yet, and write it; in whatever order they finish, the bytes are the same.

        Raises:
            InvalidInput: a file cannot be written, or workers keep dying; every finished unit is kept.
            MissingResource: joblib or dask is not installed, or no cluster answers.
        """
        for task in tasks:
            if task.unit.path.is_file():
                advance(len(task.unit.rows))
        idle, outcomes = 0, Tally()
        while missing := [task for task in tasks if not task.unit.path.is_file()]:
            before = len(missing)
            try:
                for task, outcome in self._round(missing):
                    write_array(task.unit.path, outcome.energy)
                    done = len(task.unit.rows)
                    outcomes = Tally(
                        outcomes.seconds + outcome.seconds, max(outcomes.peak, outcome.peak), outcomes.windows + done
                    )
                    advance(done)
            except _deaths() as error:
                left = sum(not task.unit.path.is_file() for task in tasks)
                idle = 0 if left < before else idle + 1
                if idle >= ROUNDS:
                    raise InvalidInput(
                        "workers were killed again and again, mostly for want of memory; every finished unit is kept: "
                        "run the same command again with fewer --jobs, a smaller batch_size or shorter lengths"
                    ) from error
        return outcomes

    def _round(self, missing: Sequence[Task]) -> Iterator[tuple[Task, Outcome]]:
        from joblib import Parallel, delayed

        with self._backend():
            parallel = Parallel(return_as="generator_unordered", batch_size=1)
            results: Any = parallel(delayed(run_task)(index, task) for index, task in enumerate(missing))
            with closing(results):
                for outcome in results:
                    yield missing[outcome.index], outcome

    @contextmanager
    def _backend(self) -> Iterator[None]:
        from joblib import parallel_config

        if self.cluster is None:
            local: dict[str, Any] = {"backend": "sequential"}
            if self.jobs > 1:
                local = {"backend": "loky", "n_jobs": self.jobs, "inner_max_num_threads": 1}
            with parallel_config(**local):
                yield
            return
        try:
            from distributed import Client
        except ModuleNotFoundError as absent:
            raise MissingResource("dask is not installed; a cluster needs: pip install 'catenary[cluster]'") from absent
        try:
            client: Any = Client(self.cluster, timeout=ANSWER)  # type: ignore[no-untyped-call]  # dask is untyped
        except (OSError, ValueError) as error:
            raise MissingResource(f"no Dask scheduler answers at cluster {self.cluster!r}: {error}") from error
        with client, parallel_config(backend="dask", client=client):
            yield


def _deaths() -> tuple[type[BaseException], ...]:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        from distributed.scheduler import KilledWorker
    except ModuleNotFoundError:
        return (TerminatedWorkerError,)
    return (TerminatedWorkerError, KilledWorker)


_ONE_AT_A_TIME = threading.Lock()
"""Drawing weights seeds torch's one generator for a moment: threads of one worker must take turns."""
_held: dict[str, Model] = {}
"""The network this process measured last."""


def run_task(index: int, task: Task) -> Outcome:
    """Measure one unit with one CPU thread, so that its bits do not depend on how many workers there are."""
    import torch

    with _ONE_AT_A_TIME:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        meter = Meter(task.config.device)
        try:
            energy = measure_unit(_network(task), task.unit, task.part, task.config.seed)
            return Outcome(index, energy, meter.seconds, meter.peak)
        finally:
            torch.set_num_threads(threads)


def _network(task: Task) -> Model:
    """The task's network; only the last one is held, so that memory stays that of one network."""
    key = digest({"config": task.config.model_dump(mode="json"), "weights": task.part.weights,
                  "tokens": list(task.part.tokens), "net": task.unit.net})
    if key not in _held:
        _held.clear()
        _held[key] = load_net(task.config, task.part, task.unit.net)
    return _held[key]
