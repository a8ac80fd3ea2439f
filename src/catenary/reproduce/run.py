"""Run: the experiments of papers one after the other; what is finished at the same settings is not run again."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from catenary.errors import invalid, unknown
from catenary.reproduce.experiment import Experiment
from catenary.reproduce.finding import STUDIES
from catenary.reproduce.result import is_current, result_file, write_result
from catenary.study.observer import Observer, Silent


def chosen(
    experiments: Sequence[Experiment], *, names: Iterable[str] = (), figure: str = "", claim: str = ""
) -> list[Experiment]:
    """Of some papers' experiments, those asked for by name, by a paper's figure, or by a claim's id; all by default.

    Raises:
        InvalidInput: a name, a figure or a claim that no experiment has, or that none of those asked for has.
    """
    wanted, known_names = set(names), {e.name for e in experiments}
    for name in wanted - known_names:
        raise unknown("experiment", name, known_names)
    found = [e for e in experiments if not wanted or e.name in wanted]
    if figure:
        known = sorted({c.figure for e in experiments for c in e.claims if c.figure})
        if figure not in known:
            raise invalid("figure", f"must be one of {', '.join(known)}" if known else "is for papers with figures in "
                          "the ledger", figure)  # fmt: skip
        found = [e for e in found if any(c.figure == figure for c in e.claims)]
    if claim:
        ids = {c.id for e in experiments for c in e.claims}
        if claim not in ids:
            raise unknown("claim", claim, ids)
        found = [e for e in found if any(c.id == claim for c in e.claims)]
    if not found:
        raise invalid("--experiment, --figure and --claim", "must leave an experiment that has all of them",
                      ", ".join(filter(None, [*sorted(wanted), figure, claim])))  # fmt: skip
    return found


def run_experiments(
    experiments: Iterable[Experiment], out: Path, *, full: bool = False, observer: Observer | None = None, jobs: int = 1
) -> list[Path]:
    """Run what is not finished in ``out`` at these settings; the files of all that have something to run.

    Each experiment is written whole when it ends, so a killed run loses what is in flight and resumes behind the rest.
    With ``jobs`` > 1 as many run at once, the longest first so that none is left alone at the end, each in a process
    of its own with one thread, and tell no progress within; the numbers are the same.

    Raises:
        InvalidInput: ``jobs`` below 1.
    """
    if jobs < 1:
        raise invalid("jobs", "must be >= 1", jobs)
    told = observer or Silent()
    chosen_ones = [experiment for experiment in experiments if experiment.study]
    files = [result_file(out, experiment) for experiment in chosen_ones]
    missing = []
    for experiment, file in zip(chosen_ones, files, strict=True):
        if is_current(file, experiment, experiment.at(full=full)):
            told.say(f"{experiment.paper}/{experiment.name}: finished before, kept")
        else:
            missing.append(experiment)
    if jobs == 1:
        for experiment in missing:
            told.say(_announced(experiment, full))
            told.say(f"  {_run(experiment, out, full, told):.0f} s")
    else:
        _at_once(missing, out, full, told, jobs)
    return files


def _at_once(experiments: Sequence[Experiment], out: Path, full: bool, told: Observer, jobs: int) -> None:
    from joblib import Parallel, delayed, parallel_config

    for experiment in experiments:
        told.say(_announced(experiment, full))
    with warnings.catch_warnings(), parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
        # A process that a large network has left large is replaced by a new one, which joblib warns of.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given to the executor")
        parallel = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=jobs)
        longest_first = sorted(experiments, key=lambda experiment: -experiment.seconds)
        tasks = (delayed(_named)(experiment, out, full) for experiment in longest_first)
        with closing(parallel(tasks)) as results:
            for name, seconds in results:
                told.say(f"{name}: finished in {seconds:.0f} s")


def _named(experiment: Experiment, out: Path, full: bool) -> tuple[str, float]:
    return f"{experiment.paper}/{experiment.name}", _run(experiment, out, full, Silent())


def _announced(experiment: Experiment, full: bool) -> str:
    cost = experiment.full.get("cost", "") if full else experiment.cost
    return f"{experiment.paper}/{experiment.name}: {experiment.title} ({cost or 'seconds'})"


def _run(experiment: Experiment, out: Path, full: bool, told: Observer) -> float:
    """Run and store one experiment; the seconds it took."""
    import catenary.reproduce.studies  # noqa: F401  registers every study

    settings, start = experiment.at(full=full), time.monotonic()
    write_result(out, experiment, settings, STUDIES[experiment.study](settings, told))
    return time.monotonic() - start
