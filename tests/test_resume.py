"""Pathways, rollout and strengths go on from what was finished, and end with the bytes of an undisturbed run."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import catenary.cli.main  # noqa: F401 - registers the verbs
from catenary import figures
from catenary.cli.app import app
from catenary.errors import InvalidInput
from catenary.page import exhibit
from catenary.strengths import Strengths
from catenary.study.finished import Finished
from catenary.study.observer import Silent, counting
from catenary.text.synthetic import random_windows

COMMON = ("preset:toy", "-L", "16", "--quiet", "--windows", "2")
VERBS = {
    "pathways": (*COMMON, "--probes", "1", "--layers", "0,2"),
    "rollout": (*COMMON, "--monotonicity"),
    "strengths": (*COMMON, "--nets", "3"),
}
UNITS = {"pathways": 4, "rollout": 1 + 3 * 2, "strengths": 3}
"""Profiles by path and terms of 2 windows; strengths, and 2 windows each of rows, heads and Jacobian; 3 networks."""


def call(verb: str, out: Path, *more: str) -> None:
    done = CliRunner().invoke(app, [verb, *VERBS[verb], "--out", str(out), *more])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def units(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "units").glob("[!.]*")}


@pytest.fixture(scope="module", autouse=True)
def undrawn() -> object:
    """Drawing takes most of the time and says nothing here: a figure is its chart's JSON."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "FORMATS", {".svg": str.encode})
        for module in (figures, exhibit):
            patch.setattr(module, "to_svg", lambda chart: json.dumps(chart, sort_keys=True))
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def folder(verb: str) -> Path:
        if verb not in made:
            made[verb] = tmp_path_factory.mktemp(verb)
            call(verb, made[verb])
        return made[verb]

    return folder


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_loses_the_unit_in_flight_alone(
    verb: str, whole: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever file it fills up at, nothing half-written is left and the same command ends with the same bytes."""
    undisturbed = bytes_of(whole(verb))
    assert len(units(whole(verb))) == UNITS[verb]
    fsync = os.fsync
    in_a_unit, in_the_page = UNITS[verb] - 1, UNITS[verb] + 2
    for number, room in enumerate((in_a_unit, in_the_page)):
        folder, written = tmp_path / str(number), [0]

        def full(handle: int, room: int = room, written: list[int] = written) -> None:
            written[0] += 1
            if written[0] > room:
                raise OSError(errno.ENOSPC, "No space left on device")
            fsync(handle)

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InvalidInput, match=r"no space left .* free some space and run the same command again"):
            call(verb, folder)
        monkeypatch.setattr(os, "fsync", fsync)
        kept = units(folder)
        assert len(kept) == min(room, UNITS[verb])
        assert bytes_of(folder).items() <= undisturbed.items()
        call(verb, folder)
        assert kept.items() <= units(folder).items()
        assert bytes_of(folder) == undisturbed


@pytest.mark.parametrize("verb", VERBS)
def test_another_seed_finds_no_unit(verb: str, whole: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(whole(verb), tmp_path, dirs_exist_ok=True)
    call(verb, tmp_path, "--seed", "1", "--overwrite")
    assert len(units(tmp_path)) == 2 * UNITS[verb]


def test_more_networks_reuse_those_there_are(whole: Callable[[str], Path], tmp_path: Path) -> None:
    """With the same number of windows in all networks before, a network is fed the same ones."""
    shutil.copytree(whole("strengths"), tmp_path, dirs_exist_ok=True)
    before = units(tmp_path)
    call("strengths", tmp_path, "--nets", "4", "--overwrite")
    after = units(tmp_path)
    assert before.items() <= after.items()
    assert len(after) == 4


def test_nothing_is_kept_without_a_folder() -> None:
    windows = random_windows(16, 2, 0)
    keep = Finished(None, {}).windows("x", windows)
    assert keep([0], lambda: np.ones(2)).tolist() == [1, 1]
    assert Finished(None, {}).record("x", windows, lambda: {"a": 1}) == {"a": 1}


def test_a_unit_is_told_apart_by_all_that_decides_it(tmp_path: Path) -> None:
    windows, other = random_windows(16, 2, 0), random_windows(16, 2, 1)
    made = [0]

    def make() -> np.ndarray:
        made[0] += 1
        return np.array([float(made[0])])

    calls: list[Callable[[], np.ndarray]] = [
        lambda: Finished(tmp_path, {"w": 1}).windows("a", windows, probes=1)([0], make),
        lambda: Finished(tmp_path, {"w": 2}).windows("a", windows, probes=1)([0], make),
        lambda: Finished(tmp_path, {"w": 1}).windows("b", windows, probes=1)([0], make),
        lambda: Finished(tmp_path, {"w": 1}).windows("a", windows, probes=2)([0], make),
        lambda: Finished(tmp_path, {"w": 1}).windows("a", windows, probes=1)([1], make),
        lambda: Finished(tmp_path, {"w": 1}).windows("a", other, probes=1)([0], make),
    ]
    assert [float(one()[0]) for one in calls] == [1, 2, 3, 4, 5, 6]
    assert [float(one()[0]) for one in calls] == [1, 2, 3, 4, 5, 6]
    assert made == [6]
    records = [
        Finished(tmp_path, identity).record("a", fed, lambda: {"made": float(make()[0])}, net=net)["made"]
        for identity, fed, net in (({"w": 1}, windows, 0), ({"w": 2}, windows, 0), ({"w": 1}, other, 0),
                                   ({"w": 1}, windows, 1), ({"w": 1}, windows, 0))
    ]  # fmt: skip
    assert records == [7, 8, 9, 10, 7]


def test_strengths_come_back_from_json_number_for_number() -> None:
    import catenary as ct
    from catenary.measure.strengths import measure_strengths

    found = measure_strengths(ct.load("preset:toy", vocabulary=16), random_windows(16, 2, 0))
    found = replace(found, statements=("One thing.",))
    again = Strengths.from_dict(json.loads(json.dumps(found.to_dict())))
    assert (again.rows, again.sum_errors, again.label) == (found.rows, found.sum_errors, found.label)
    assert again.to_dict() == found.to_dict()


def test_progress_may_leap() -> None:
    told: list[int] = []
    observer = Silent()
    observer.advance = told.append  # type: ignore[method-assign]
    with counting(observer, "x", 4) as progress:
        progress(1, 4)
        progress(4, 4)
    assert told == [1, 3]


@pytest.mark.slow
def test_a_killed_process_goes_on(whole: Callable[[str], Path], tmp_path: Path) -> None:
    """SIGKILL while rollout measures; it writes no page, so that ``undrawn`` holds for all of them."""
    command = [sys.executable, "-m", "catenary", "rollout", *VERBS["rollout"], "--out", str(tmp_path)]
    process = subprocess.Popen(command)
    while process.poll() is None and len(units(tmp_path)) < 3:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = units(tmp_path)
    assert len(kept) >= 3
    assert not (tmp_path / "rollout.json").exists()
    call("rollout", tmp_path)
    assert kept.items() <= units(tmp_path).items()
    visible = {name: data for name, data in bytes_of(tmp_path).items() if not Path(name).name.startswith(".")}
    assert visible == bytes_of(whole("rollout"))


