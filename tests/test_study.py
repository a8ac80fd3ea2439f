"""A study ends with the same bytes however often it was killed, reuses what is finished, and says what it skips."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from catenary.errors import InvalidInput
from catenary.sample import Sample
from catenary.store import read_run
from catenary.study.config import StudyConfig, stored_config, study_config
from catenary.study.curves import comparable_pairs, single_curves
from catenary.study.parts import wanted_parts
from catenary.study.plan import Estimate, make_plan, plan_once
from catenary.study.run import profile_model
from catenary.study.source import find_source

TINY = {
    "model": "preset:toy", "length": 32, "check_nets": 2, "check_sequences": 2, "probes": 2, "conditions": ("zipf",),
}  # fmt: skip
SAME = ("result.json", "profiles.nc", "profile.csv")


def config(**changes: object) -> StudyConfig:
    return study_config({**TINY, **changes})


def test_curves_and_words_of_a_config_alone(tmp_path: Path) -> None:
    study = profile_model(config(), tmp_path)
    single = single_curves(study.run.curves)
    assert list(single) == ["predicted-random", "predicted-zipf", "untrained-random/random", "untrained-random/zipf"]
    assert list(comparable_pairs(single)) == [
        ("predicted-random", "untrained-random/random"),
        ("predicted-zipf", "untrained-random/zipf"),
    ]
    assert study.report.is_file()
    assert [c["a"] for c in study.run.result["comparisons"]] == ["predicted-random", "predicted-zipf"]
    sample = study.run.curves["untrained-random"]
    assert isinstance(sample, Sample)
    assert sample.energy.shape == (2, 1, 2, 2, 2, 32)


def test_units_equal_one_direct_measurement(tmp_path: Path) -> None:
    """The grid of units puts every network, window and probe where a direct call puts it."""
    import catenary

    study = profile_model(config(), tmp_path)
    sample = study.run.curves["untrained-random"]
    assert isinstance(sample, Sample)
    from catenary.study.inputs import build_windows

    part = wanted_parts(config())[0]
    windows = build_windows("zipf", config(), find_source(config()), part)
    for net in range(2):
        model = catenary.load("preset:toy", seed=net, vocabulary=16)
        direct = catenary.measure_jacobian(model, windows, probes=2, seed=0, sequences=[2 * net, 2 * net + 1])
        assert np.allclose(sample.energy[1, 0, net], direct.energy[0, 0, 0], rtol=1e-5)
    assert not np.allclose(sample.energy[1, 0, 0], sample.energy[1, 0, 1], rtol=0.1)


def test_a_second_run_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = profile_model(config(), tmp_path)
    monkeypatch.setattr("catenary.study.run.measure_part", lambda *_: pytest.fail("measured again"))
    second = profile_model(config(), tmp_path)
    assert not first.reused
    assert second.reused


def test_more_networks_reuse_the_units_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile_model(config(conditions=()), tmp_path)
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "units").iterdir()}
    profile_model(config(conditions=(), check_nets=3), tmp_path, overwrite=True)
    after = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "units").iterdir()}
    assert len(before) == 4
    assert len(after) == 6
    assert before.items() <= after.items()


def test_another_config_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    profile_model(config(), tmp_path)
    kept = (tmp_path / "result.json").read_bytes()
    with pytest.raises(InvalidInput, match=r"another config \(different: seed\).*--overwrite"):
        profile_model(config(seed=1), tmp_path)
    assert (tmp_path / "result.json").read_bytes() == kept
    profile_model(config(seed=1), tmp_path, overwrite=True)
    assert read_run(tmp_path).result["config"]["seed"] == 1


def test_a_run_can_be_repeated_from_its_own_record(tmp_path: Path) -> None:
    profile_model(config(seed=3), tmp_path / "a")
    profile_model(stored_config(tmp_path / "a" / "result.json"), tmp_path / "b")
    for name in SAME:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


SCRIPT = """
import sys, json
from pathlib import Path
from catenary.study.config import study_config
from catenary.study.run import profile_model
profile_model(study_config(json.loads(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    values = {**TINY, "check_nets": 3, "check_sequences": 3}
    profile_model(study_config(values), tmp_path / "whole")
    arguments = [sys.executable, "-c", SCRIPT, json.dumps(values), str(tmp_path / "killed")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    units = tmp_path / "killed" / "units"
    for wanted in (1, 7):
        process = subprocess.Popen(arguments, env=environment)
        while process.poll() is None and len(list(units.glob("[!.]*.npy"))) < wanted:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "killed" / "result.json").exists()
    done = {p.name: p.stat().st_mtime_ns for p in units.glob("[!.]*.npy")}
    assert 7 <= len(done) < 18
    subprocess.run(arguments, env=environment, check=True)
    redone = {p.name: p.stat().st_mtime_ns for p in units.glob("[!.]*.npy")}
    assert done.items() <= redone.items(), "a finished unit was measured again"
    assert not list(units.glob(".*")), "an unfinished file was left behind"
    for name in SAME:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes(), name


def test_what_exceeds_budget_or_memory_is_skipped_in_words() -> None:
    study = config()
    source = find_source(study)
    slow = make_plan(study, source, lambda _: Estimate(601.0, 1e9), budget=600, memory=2e9)
    large = make_plan(study, source, lambda _: Estimate(1.0, 3e9), budget=600, memory=2e9)
    assert slow.parts == ()
    assert "10 min, and 10 min of the budget are left; give --budget" in slow.skipped[0].reason
    assert large.parts == ()
    assert "2.8 GiB, and 1.9 GiB are free" in large.skipped[0].reason


def test_a_skipped_measurement_still_leaves_the_prediction(tmp_path: Path) -> None:
    study = profile_model(config(), tmp_path, budget_minutes=0)
    assert list(study.run.curves) == ["predicted-random"]
    assert study.run.result["skipped"][0]["name"] == "untrained, random vectors"
    assert "budget" in study.report.read_text()


def test_the_plan_is_decided_once(tmp_path: Path) -> None:
    study = config()
    source = find_source(study)
    path = tmp_path / "plan.json"
    made = plan_once(path, study, 10, lambda: make_plan(study, source, lambda _: Estimate(1, 1), budget=9, memory=9))
    again = plan_once(path, study, 10, lambda: pytest.fail("planned again"))
    assert again == made
    other = plan_once(path, study, 1, lambda: make_plan(study, source, lambda _: Estimate(9, 1), budget=1, memory=9))
    assert other.parts == ()


def test_documents_need_a_tokenizer_and_weights_need_a_folder() -> None:
    plan = make_plan(
        config(conditions=("vanilla",)), find_source(config()), lambda _: Estimate(0, 0), budget=1, memory=1
    )
    assert [part.name for part in plan.parts] == ["untrained-random"]
    reasons = {skipped.name: skipped.reason for skipped in plan.skipped}
    assert "--tokenizer" in reasons["untrained, documents"]
    assert "holds no weights" in reasons["trained, documents"]


def test_without_torch_the_prediction_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torch" else object())
    plan = make_plan(config(), find_source(config()), lambda _: pytest.fail("estimated"), budget=9, memory=9)
    assert plan.parts == ()
    assert "pip install 'catenary[models]'" in plan.skipped[0].reason


@pytest.mark.parametrize(
    ("field", "value"),
    [("length", 3), ("length", "many"), ("seed", -1), ("dtype", "int8"), ("conditions", ("poem",)), ("model", ""),
     ("windows", 0), ("unheard_of", 1), ("init_std", 0.0)],
)  # fmt: skip
def test_bad_settings_name_the_field(field: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=field):
        study_config({**TINY, field: value})


@pytest.mark.demo
@pytest.mark.slow
def test_a_real_model_on_real_documents(demo_folder: Path, tmp_path: Path) -> None:
    study = profile_model(
        study_config(
            {
                "model": str(demo_folder / "smollm2-135m"), "documents": str(demo_folder / "documents"), "length": 80,
                "windows": 2, "nets": 1, "check_nets": 1, "check_sequences": 1, "probes": 1,
            }
        ),
        tmp_path,
        budget_minutes=60,
    )  # fmt: skip
    assert set(single_curves(study.run.curves)) == {
        "predicted-random", "predicted-vanilla", "predicted-chunked", "untrained-random/random", "untrained/vanilla",
        "untrained/chunked", "trained/vanilla", "trained/chunked",
    }  # fmt: skip
    trained = study.run.curves["trained"]
    assert trained.provenance["weights"] == "pretrained"
    assert study.run.result["windows"]["trained"]["vanilla"]["sources"][0]


@pytest.mark.demo
def test_documents_that_were_asked_for_must_work(demo_folder: Path, tmp_path: Path) -> None:
    model = str(demo_folder / "smollm2-135m")
    (tmp_path / "empty").mkdir()
    for documents, words in ((tmp_path / "nowhere", "no file or folder"), (tmp_path / "empty", "documents")):
        asked = study_config({"model": model, "documents": str(documents)})
        with pytest.raises(InvalidInput, match=words):
            profile_model(asked, tmp_path / "out", budget_minutes=99)
        assert not list((tmp_path / "out").glob("units/*"))


def test_a_hub_id_that_cannot_be_reached_is_not_measured_as_something_else(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be reached on the hub"):
        profile_model(config(model="Qwen/Qwen2-0.5B"), tmp_path)
