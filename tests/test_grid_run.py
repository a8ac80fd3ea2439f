"""A grid gives the same bytes over any workers, whoever of them is killed, and is resumed at the unit."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from catenary.errors import InvalidInput, MissingResource
from catenary.sample import Sample
from catenary.store import Run, read_run
from catenary.study.config import study_config
from catenary.study.grid import Grid, grid, read_grid
from catenary.study.grid_run import measure_grid
from catenary.study.inputs import build_windows
from catenary.study.observer import Silent
from catenary.study.single import Request, measure_single
from catenary.study.source import find_source
from catenary.study.workers import Workers

SAME = ("result.json", "profiles.nc", "profile.csv", "grid.csv")
TWO = {"models": ["preset:toy"], "lengths": [24, 32], "seeds": [0, 3], "windows": 2, "probes": 1}


class After(Silent):
    """Does something once, when the first unit is done."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act

    def advance(self, windows: int) -> None:
        act, self.act = self.act, None
        if act is not None:
            act()


def same_bytes(a: Path, b: Path) -> None:
    for name in SAME:
        assert (a / name).read_bytes() == (b / name).read_bytes(), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return measure_grid(grid(TWO), tmp_path_factory.mktemp("whole"))


def test_a_cell_is_what_measure_measures(whole: Run, tmp_path: Path) -> None:
    config = study_config({"model": "preset:toy", "length": 32, "seed": 3, "windows": 1, "probes": 1})
    alone = measure_single(config, Request("untrained", ("random",), 1, 2, 1, "probes", None), tmp_path, Silent())
    together, single = whole.curves["toy-L32"], alone.curves["untrained"]
    assert isinstance(together, Sample)
    assert isinstance(single, Sample)
    assert together.energy.shape == (1, 1, 2, 2, 1, 32)
    assert together.energy[:, :, 1] == pytest.approx(single.energy[:, :, 0], rel=1e-6)
    assert together.provenance["network_seeds"] == [0, 3]


def test_every_unit_is_what_a_direct_call_measures(whole: Run) -> None:
    """The cell's own seed decides networks, windows and probes, wherever in the list of tasks a unit stands."""
    from catenary import load, measure_jacobian

    for curve in grid(TWO).curves():
        stored = whole.curves[curve.name]
        assert isinstance(stored, Sample)
        for number, cell in enumerate(curve.cells):
            seed = cell.config.seed
            windows = build_windows("random", cell.config, find_source(cell.config), cell.part)
            model = load("preset:toy", seed=seed, vocabulary=16)
            direct, other = (measure_jacobian(model, windows, probes=1, seed=s).energy[0, 0, 0] for s in (seed, 1))
            assert stored.energy[0, 0, number] == pytest.approx(direct, rel=1e-5)
            assert not np.allclose(direct, other, rtol=0.1)


def test_estimated_and_actual_cost_are_stored_beside_the_run(whole: Run) -> None:
    cost = json.loads((whole.folder / "run.json").read_text())["cost"]
    assert cost["share_measured_now"] == 1
    for kind in ("estimated", "actual"):
        assert cost[kind]["processor_seconds"] > 0
        assert cost[kind]["peak_bytes"] > 100 * 2**20


def test_a_finished_grid_is_not_measured_again_and_another_is_refused(whole: Run) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in whole.folder.rglob("*.npy")}
    assert len(before) == 2 * 2 * 2
    measure_grid(grid(TWO), whole.folder)
    assert before == {path.name: path.stat().st_mtime_ns for path in whole.folder.rglob("*.npy")}
    with pytest.raises(InvalidInput, match="another config"):
        measure_grid(grid({**TWO, "probes": 2}), whole.folder)


def test_a_full_disk_loses_the_unit_in_flight_alone(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, written = os.fsync, [0]

    def full(handle: int) -> None:
        written[0] += 1
        if written[0] > 4:  # the plan and three units
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match=r"no space left .* free some space and run the same command again"):
        measure_grid(grid(TWO), tmp_path)
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "units").iterdir()}
    assert len(kept) == 3
    monkeypatch.setattr(os, "fsync", fsync)
    measure_grid(grid(TWO), tmp_path)
    assert kept.items() <= {path.name: path.stat().st_mtime_ns for path in (tmp_path / "units").iterdir()}.items()
    same_bytes(whole.folder, tmp_path)
    assert json.loads((tmp_path / "run.json").read_text())["cost"]["share_measured_now"] == 5 / 8


def test_what_does_not_fit_the_budget_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from catenary.study import grid_run
    from catenary.study.plan import Estimate

    monkeypatch.setattr(grid_run, "part_estimator", lambda config, source: lambda part: Estimate(config.length, 1e6))
    run = measure_grid(grid(TWO), tmp_path, budget_minutes=1)  # 2 seeds at 24 s fit in 60 s, 2 at 32 s more do not
    assert list(run.curves) == ["toy-L24"]
    assert run.result["skipped"][0]["name"] == "toy-L32"
    with pytest.raises(InvalidInput, match="at least one curve"):
        measure_grid(grid(TWO), tmp_path / "none", budget_minutes=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # loky tells of the death, which is what is tested
def test_a_killed_local_worker_changes_no_byte(whole: Run, tmp_path: Path) -> None:
    import psutil

    def kill() -> None:
        busiest = max(psutil.Process().children(recursive=True), key=lambda child: child.memory_info().rss)
        busiest.kill()

    measure_grid(grid(TWO), tmp_path, workers=Workers(2), observer=After(kill))
    same_bytes(whole.folder, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # distributed tells of the death, which is what is tested
def test_a_killed_worker_of_a_cluster_changes_no_byte(whole: Run, tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        killed: list[int] = []

        def kill() -> None:
            with Client(cluster.scheduler_address) as client:
                killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

        workers = Workers(cluster=cluster.scheduler_address)
        measure_grid(grid(TWO), tmp_path, workers=workers, observer=After(kill))
    assert len(killed) == 2
    same_bytes(whole.folder, tmp_path)


SCRIPT = """
import sys, json
from pathlib import Path
from catenary.study.grid import grid
from catenary.study.grid_run import measure_grid
measure_grid(grid(json.loads(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_killed_parent_resumes_at_the_unit(whole: Run, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", SCRIPT, json.dumps(TWO), str(tmp_path)]
    units = tmp_path / "units"
    process = subprocess.Popen(arguments)
    while process.poll() is None and len(list(units.glob("[!.]*.npy"))) < 2:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "result.json").exists()
    done = {path.name: path.stat().st_mtime_ns for path in units.glob("[!.]*.npy")}
    assert 2 <= len(done) < 8
    measure_grid(grid(TWO), tmp_path)
    assert done.items() <= {path.name: path.stat().st_mtime_ns for path in units.glob("[!.]*.npy")}.items()
    same_bytes(whole.folder, tmp_path)


def test_no_cluster_is_one_clean_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from catenary.study import workers

    monkeypatch.setattr(workers, "ANSWER", 0.2)
    with pytest.raises(MissingResource, match=r"no Dask scheduler answers at cluster 'tcp://127\.0\.0\.1:1'"):
        measure_grid(grid(TWO), tmp_path, workers=Workers(cluster="tcp://127.0.0.1:1"))


def test_files_of_a_grid(tmp_path: Path) -> None:
    toml, other = tmp_path / "g.toml", tmp_path / "g.json"
    toml.write_text('models = "gpt2"\nlengths = [32, 64]\nseeds = "2:5"\ntokens = "zipf"\ndtype = "bfloat16"\n')
    other.write_text(json.dumps({"models": ["gpt2"], "lengths": [32, 64], "seeds": [2, 3, 4], "tokens": ["zipf"],
                                 "dtype": "bfloat16"}))  # fmt: skip
    made = read_grid(toml)
    assert made == read_grid(other)
    assert [curve.name for curve in made.curves()] == ["gpt2-L32", "gpt2-L64"]
    assert [cell.config.seed for cell in made.curves()[0].cells] == [2, 3, 4]
    assert made.curves()[0].cells[0].config.dtype == "bfloat16"


def test_models_of_one_name_are_told_apart() -> None:
    made = Grid(models=("a/net", "b/net", "c"))
    assert [curve.name for curve in made.curves()] == ["net.0-L512", "net.1-L512", "c-L512"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "models"), ({"models": []}, "models"), ({"models": ["a"], "seeds": "5:2"}, "seeds"),
        ({"models": ["a", "a"]}, "must not repeat"), ({"models": ["a"], "lengths": [4]}, "length"),
        ({"models": ["a"], "dtype": "int4"}, "dtype"), ({"models": ["a"], "length": 64}, "length is no field of"),
        ({"models": ["a"], "colour": 1}, "colour"), ({"models": ["a"], "method": "guess"}, "method"),
        ({"models": ["a"], "weights": "pretrained"}, "tokens must be vanilla"),
    ],
)  # fmt: skip
def test_bad_grids_name_the_field(values: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        grid(values)


def test_bad_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="must be a readable"):
        read_grid(tmp_path / "nowhere.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("models = [")
    with pytest.raises(InvalidInput, match="must be valid TOML"):
        read_grid(bad)
    bad.with_suffix(".json").write_text("[1]")
    with pytest.raises(InvalidInput, match="must be a table"):
        read_grid(bad.with_suffix(".json"))
    with pytest.raises(InvalidInput, match="jobs must be >= 1"):
        Workers(0)


def test_read_back(whole: Run) -> None:
    assert list(read_run(whole.folder).curves) == ["toy-L24", "toy-L32"]
    assert (whole.folder / "grid.csv").read_text().startswith("curve,model,length,condition,seeds,shape")
