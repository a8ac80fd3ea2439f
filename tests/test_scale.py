"""Whole commands: estimates hold, short memory is met by recomputation, and long contexts take memory in line."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from catenary.measure.aim import Aim
from catenary.study import grid_run, single
from catenary.study.config import study_config
from catenary.study.estimate import STARTING_SECONDS, backward_passes, part_estimator
from catenary.study.grid import grid
from catenary.study.grid_run import measure_grid
from catenary.study.observer import Silent
from catenary.study.parts import Part
from catenary.study.plan import Estimate, fit_memory, make_plan, plan_once
from catenary.study.single import Request, measure_single
from catenary.study.source import find_source
from catenary.study.workers import Workers

sys.path.insert(0, str(Path(__file__).parent.parent / "experiments"))

CONFIG = study_config({"model": "preset:toy", "length": 64, "windows": 1, "probes": 1})
PART = Part("untrained", "untrained", "untrained", ("random",), 1, 2, 2)
REQUEST = Request("untrained", ("random",), 1, 2, 2, "probes", None)


def hungry(part: Part) -> Estimate:
    """2 GB, or 1 GB and more time with recomputation."""
    return Estimate(3.0, 1e9) if part.recompute else Estimate(2.0, 2e9)


def test_layers_are_recomputed_where_that_makes_a_part_fit() -> None:
    assert fit_memory(PART, hungry, 3e9) == (PART, Estimate(2.0, 2e9))
    part, cost = fit_memory(PART, hungry, 1.5e9)
    assert part.recompute
    assert cost == Estimate(3.0, 1e9)
    assert fit_memory(PART, hungry, 0.5e9) == (PART, Estimate(2.0, 2e9))


def test_a_resumed_plan_still_recomputes(tmp_path: Path) -> None:
    source = find_source(CONFIG)

    def plan() -> object:
        return make_plan(CONFIG, source, hungry, budget=60, memory=1.5e9)

    made = plan_once(tmp_path / "plan.json", CONFIG, 1, plan)  # type: ignore[arg-type]
    again = plan_once(tmp_path / "plan.json", CONFIG, 1, lambda: pytest.fail("planned again"))
    assert [part.recompute for part in made.parts] == [True]
    assert again == made


def test_a_run_with_recomputation_has_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_single(CONFIG, REQUEST, tmp_path / "plain", Silent())
    monkeypatch.setattr(single, "part_estimator", lambda *_: hungry)
    monkeypatch.setattr(single, "usable_memory", lambda *_: 1.5e9)
    said: list[str] = []
    observer = Silent()
    observer.say = said.append  # type: ignore[method-assign]
    measure_single(CONFIG, REQUEST, tmp_path / "again", observer)
    assert any("recomputing layers" in line for line in said)
    for name in ("result.json", "profiles.nc", "profile.csv"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_the_estimate_counts_windows_passes_and_networks() -> None:
    """Seconds are linear in windows x passes and in networks; memory depends on neither."""
    estimate = part_estimator(CONFIG, find_source(CONFIG))
    one, two, four = (estimate(replace(PART, windows=windows)) for windows in (2, 4, 8))
    assert four.seconds - two.seconds == pytest.approx(2 * (two.seconds - one.seconds))
    assert two.seconds > one.seconds
    few, more, most = (estimate(replace(PART, probes=probes)).seconds for probes in (1, 2, 4))
    assert most - more == pytest.approx(2 * (more - few))
    assert estimate(replace(PART, nets=10)).seconds == pytest.approx(10 * one.seconds)
    assert one.bytes == pytest.approx(four.bytes, rel=0.01)  # the process itself may have grown a little


@pytest.mark.slow
def test_peak_memory_of_a_command_is_within_thirty_per_cent(tmp_path: Path) -> None:
    """In a process of its own; time is not asserted, since other programs lengthen it."""
    command = ["-m", "catenary", "measure", "preset:toy", "--length", "1024", "--windows", "1", "--quiet"]
    subprocess.run([sys.executable, *command, "--out", str(tmp_path)], check=True, stdout=subprocess.DEVNULL)
    cost = json.loads((tmp_path / "run.json").read_text())["cost"]
    assert cost["estimated"]["peak_bytes"] == pytest.approx(cost["actual"]["peak_bytes"], rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_memory_of_long_contexts_is_linear(kind: str) -> None:
    """Resident memory beside the weights at 2k, 4k and 8k tokens, each in its own process: exponent at most 1.1."""
    from long_context import exponent, peak

    lengths = [2048, 4096, 8192]
    assert exponent(lengths, [peak(kind, length) for length in lengths]) <= 1.1
    assert exponent(lengths, [int(1e-2 * length**2) for length in lengths]) == pytest.approx(2, abs=0.01)


def test_the_estimate_counts_the_passes_of_the_output() -> None:
    """One for each entry of the output by the exact method, one for an answer; the vocabulary matrix is drawn."""
    source = find_source(CONFIG)
    width, vocabulary = source.architecture.width, source.architecture.vocabulary
    passes = {
        (method, output): backward_passes(
            source.architecture, replace(PART, method=method, probes=3, aim=Aim(output=output))
        )
        for method in ("probes", "exact") for output in ("stream", "logits", 7)
    }
    assert passes == {
        ("probes", "stream"): 3, ("exact", "stream"): width, ("probes", "logits"): 3, ("exact", "logits"): vocabulary,
        ("probes", 7): 1, ("exact", 7): 1,
    }  # fmt: skip
    estimate = part_estimator(CONFIG, source)
    exact = replace(PART, method="exact")
    stream, logits = (estimate(replace(exact, aim=Aim(output=output))) for output in ("stream", "logits"))
    assert vocabulary is not None
    assert logits.seconds > 0.5 * vocabulary / width * stream.seconds
    assert logits.bytes > stream.bytes + 4 * width * (vocabulary - 16)


def test_a_grid_says_what_its_workers_take_to_start_and_counts_in_words(tmp_path: Path) -> None:
    said: list[str] = []
    observer = Silent()
    observer.say = said.append  # type: ignore[method-assign]
    one = grid({"models": ["preset:toy"], "lengths": [24], "windows": 1, "probes": 1})
    measure_grid(one, tmp_path, observer=observer)
    assert any(line.startswith("to measure: 1 curve, 1 window on 1 local process; ") for line in said)
    cost = json.loads((tmp_path / "run.json").read_text())["cost"]
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert cost["estimated"]["processor_seconds"] == pytest.approx(plan["seconds"], abs=0.01)
    alone, pair, cluster = (grid_run._seconds(plan, w) for w in (Workers(1), Workers(2), Workers(2, "tcp://a:1")))
    assert (pair - alone, cluster - alone) == pytest.approx((2 * STARTING_SECONDS, 0))

