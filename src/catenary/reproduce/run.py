"""Run: the experiments of a paper one after the other; what is finished at the same settings is not run again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from catenary.errors import invalid, unknown
from catenary.reproduce.experiment import Experiment
from catenary.reproduce.finding import STUDIES
from catenary.reproduce.result import is_current, result_file, write_result
from catenary.study.observer import Observer, Silent


def chosen(
    experiments: Mapping[str, Experiment], *, names: Iterable[str] = (), figure: str = "", claim: str = ""
) -> list[Experiment]:
    """Of a paper's experiments, those asked for by name, by the paper's figure, or by a claim's id; all by default.

    Raises:
        InvalidInput: a name, a figure or a claim that no experiment has.
    """
    wanted = list(names)
    for name in wanted:
        if name not in experiments:
            raise unknown("experiment", name, experiments)
    found = [experiments[name] for name in wanted] if wanted else list(experiments.values())
    if figure:
        known = sorted({c.figure for e in experiments.values() for c in e.claims if c.figure})
        if figure not in known:
            raise invalid("figure", f"must be one of {', '.join(known) or '(none)'}", figure)
        found = [e for e in found if any(c.figure == figure for c in e.claims)]
    if claim:
        ids = {c.id for e in experiments.values() for c in e.claims}
        if claim not in ids:
            raise unknown("claim", claim, ids)
        found = [e for e in found if any(c.id == claim for c in e.claims)]
    return found


def run_experiments(
    experiments: Iterable[Experiment], out: Path, *, full: bool = False, observer: Observer | None = None
) -> list[Path]:
    """Run what is not finished in ``out`` at these settings; the files of all that have something to run.

    Each experiment is written whole when it ends, so a killed run loses the one in flight and resumes behind the rest.
    """
    import catenary.reproduce.studies  # noqa: F401  registers every study

    told = observer or Silent()
    files = []
    for experiment in experiments:
        if not experiment.study:
            continue
        settings = experiment.at(full=full)
        file = result_file(out, experiment)
        files.append(file)
        if is_current(file, experiment, settings):
            told.say(f"{experiment.paper}/{experiment.name}: finished before, kept")
            continue
        cost = experiment.full.get("cost", "") if full else experiment.cost
        told.say(f"{experiment.paper}/{experiment.name}: {experiment.title} ({cost or 'seconds'})")
        start = time.monotonic()
        finding = STUDIES[experiment.study](settings, told)
        write_result(out, experiment, settings, finding)
        told.say(f"  {time.monotonic() - start:.0f} s")
    return files
