"""The ledger: configs, verdicts from intervals, results on disk, and that the committed page says what they say."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import catenary.reproduce.studies  # noqa: F401
from catenary.cli.main import app
from catenary.errors import InvalidInput
from catenary.reading import Reading
from catenary.reproduce import finding as findings
from catenary.reproduce.claim import Claim
from catenary.reproduce.experiment import PAPERS, read_experiment, read_experiments
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.ledger import gaps, page, rows_of
from catenary.reproduce.place import place_of
from catenary.reproduce.result import Result, disagreements, read_result, result_file, write_result
from catenary.reproduce.run import run_experiments
from catenary.study.observer import Observer, Silent

ROOT = Path(__file__).parent.parent
LEDGER = ROOT / "docs" / "ledger"

CONFIG = """
study = "two-numbers"
title = "Two numbers"
cost = "nothing"
[settings]
size = 3
[full]
size = 30
cost = "a night"
[[claims]]
id = "big"
where = "section 1"
claim = "it is at least 2"
figure = "1"
reading = "size"
expect = [2.0, inf]
[[claims]]
id = "unseen"
where = "section 2"
claim = "it holds on the moon"
untestable = "we have no moon"
"""


def claim(**changes: Any) -> Claim:
    entry: dict[str, Any] = {"id": "a", "where": "b", "claim": "c", "reading": "r", "expect": [1.0, 2.0]}
    return Claim.read({**entry, **changes}, "test.toml")


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (1.5, 1.2, 1.8, "replicates"),
        (1.5, 0.8, 1.8, "undecided at this size"),
        (3.0, 2.5, 3.5, "differs"),
        (0.5, 0.1, 0.9, "differs"),
        (1.9, 1.7, 2.1, "undecided at this size"),
    ],
)
def test_the_whole_interval_decides(value: float, low: float, high: float, expected: str) -> None:
    assert claim().verdict(Reading("r", value, "m", low, high)) == expected


def test_a_number_without_an_interval_is_exact_up_to_its_floor() -> None:
    assert claim().verdict(Reading("r", 1.5, "m", floor=0.1)) == "replicates"
    assert claim().verdict(Reading("r", 2.05, "m", floor=0.1)) == "undecided at this size"
    assert claim().verdict(Reading("r", 2.15, "m", floor=0.1)) == "differs"
    defined = claim(definition="by eye").verdict(Reading("r", 1.5, "m", floor=0.1))
    assert defined == "replicates under the stated definition"
    assert claim(reading="", untestable="no GPU").verdict(None) == "not testable here"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"expect": [-math.inf, math.inf]}, "anything would replicate"),
        ({"expect": [2.0, 1.0]}, "lowest, highest"),
        ({"untestable": "and a reading"}, "either a reading or a reason"),
        ({"reading": ""}, "either a reading or a reason"),
        ({"why": "because"}, "must name what shows"),
        ({"extra": 1}, "knows"),
        ({"where": ""}, "missing"),
    ],
)
def test_a_claim_that_could_not_fail_or_says_too_little_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        claim(**changes)


def test_a_number_must_say_how_sure_it_is() -> None:
    with pytest.raises(AssertionError, match="neither an interval nor a floor"):
        Finding("x", (Reading("r", 1.0, "m"),))


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def two_numbers(settings: Mapping[str, Any], observer: Observer) -> Finding:
        return Finding(f"size {settings['size']}", (Reading("size", float(settings["size"]), "given", floor=0.0),))

    entries = {**findings.STUDIES._entries, "two-numbers": two_numbers}
    monkeypatch.setattr(findings.STUDIES, "_entries", entries)
    file = tmp_path / "2603.10123" / "two.toml"
    file.parent.mkdir()
    file.write_text(CONFIG)
    return file


def test_results_are_written_kept_and_compared(config: Path, tmp_path: Path) -> None:
    experiment = read_experiment(config)
    out = tmp_path / "out"
    (file,) = run_experiments([experiment], out)
    before = file.read_bytes()
    said: list[str] = []

    class Listening(Silent):
        def say(self, text: str) -> None:
            said.append(text)

    run_experiments([experiment], out, observer=Listening())
    assert any("kept" in text for text in said)
    assert file.read_bytes() == before
    rows = rows_of({"two": experiment}, out)
    assert [row.verdict for row in rows] == ["replicates", "not testable here"]
    assert not gaps(rows)
    committed = read_result(file)
    changed = Finding("size 1", (Reading("size", 1.0, "given", floor=0.0),))
    rerun = read_result(write_result(tmp_path / "again", experiment, {"size": 1}, changed))
    assert disagreements(experiment, committed, committed) == []
    assert [said.split(":")[1].strip() for said in disagreements(experiment, committed, rerun)] == [
        "size was 3 (floor 0) and is 1 (floor 0)", "claim big was 'replicates' and is 'differs'",
    ]  # fmt: skip
    entry = json.loads(before)
    file.write_text(json.dumps({**entry, "readings": []}))  # of a program that read other numbers
    run_experiments([experiment], out)
    assert json.loads(file.read_bytes())["readings"] == entry["readings"]
    assert experiment.at(full=True) == {"size": 30}
    assert json.loads(run_experiments([experiment], out, full=True)[0].read_text())["ran"] == "size 30"


@pytest.mark.parametrize(
    ("shift", "exact", "agrees"), [(1e-7, False, True), (1e-4, False, False), (1e-7, True, False), (1e-10, True, True)]
)
def test_a_rerun_may_miss_an_interval_by_rounding_and_a_floor_by_nothing(
    shift: float, exact: bool, agrees: bool
) -> None:
    def of(value: float) -> Result:
        known = {"floor": 1e-9} if exact else {"low": value, "high": value}
        return Result("", "", {}, {"size": Reading("size", value, "m", **known)}, (), {})

    experiment = read_experiments("2603.10123")["proof_steps"]
    without = replace(experiment, claims=())
    for rerun in (of(3 + 3 * shift), of(3 - 3 * shift)):
        assert (disagreements(without, of(3.0), rerun) == []) is agrees


def test_experiments_at_once_write_the_same_files(tmp_path: Path) -> None:
    experiments = read_experiments("2603.10123")
    few = [experiments[name] for name in ("proof_steps", "printed_sum")]
    said: list[str] = []

    class Listening(Silent):
        def say(self, text: str) -> None:
            said.append(text)

    one, two = tmp_path / "one", tmp_path / "two"
    alone = run_experiments(few, one, observer=Listening())
    assert run_experiments(few[:1], two) == [two / "2603.10123" / "proof_steps.json"]
    said.clear()
    together = run_experiments(few, two, observer=Listening(), jobs=2)
    assert [file.read_bytes() for file in together] == [file.read_bytes() for file in alone]
    assert sum("kept" in text for text in said) == 1
    assert [text.split(":")[0] for text in said if "finished in" in text] == ["2603.10123/printed_sum"]
    with pytest.raises(InvalidInput, match="jobs"):
        run_experiments(few, two, jobs=0)


def test_what_a_ledger_lacks_is_said(config: Path, tmp_path: Path) -> None:
    experiment = read_experiment(config)
    assert "no result is stored" in gaps(rows_of({"two": experiment}, tmp_path))[0]
    other = Finding("x", (Reading("other", 1.0, "m", floor=0.0),))
    write_result(tmp_path, experiment, experiment.settings, other)
    assert "gives no reading 'size'" in gaps(rows_of({"two": experiment}, tmp_path))[0]
    differing = Finding("x", (Reading("size", 1.0, "m", floor=0.0),))
    write_result(tmp_path, experiment, experiment.settings, differing)
    assert gaps(rows_of({"two": experiment}, tmp_path)) == ["big: differs, and why is not said"]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_of_the_committed_ledger_has_a_number_or_a_reason(paper: str) -> None:
    experiments = read_experiments(paper)
    for experiment in experiments.values():
        assert not experiment.study or experiment.study in STUDIES, experiment.name
        assert not experiment.study or experiment.cost, f"{experiment.name} states no cost"
    assert gaps(rows_of(experiments, LEDGER)) == []
    for experiment in experiments.values():
        if experiment.study:
            stored = read_result(LEDGER / paper / f"{experiment.name}.json")
            assert stored.settings == dict(experiment.settings), f"{experiment.name} was run at other settings"


def test_every_reading_that_a_reason_names_is_stored() -> None:
    """Each quoted name of ``shown_by`` is a reading of an experiment that is named there."""
    named = 0
    for paper in PAPERS:
        experiments = read_experiments(paper)
        for claim in (claim for experiment in experiments.values() for claim in experiment.claims):
            stored: set[str] = set()
            for experiment in set(re.findall(r"`(\w+)`", claim.shown_by)) & set(experiments):
                stored |= set(read_result(result_file(LEDGER, experiments[experiment])).readings)
            quoted = set(re.findall(r"(?<!\w)'(.+?)'(?!\w)", claim.shown_by))
            assert quoted <= stored, f"{claim.id}: {sorted(quoted - stored)}"
            named += len(quoted)
    assert named > 100


def test_the_committed_page_is_what_the_results_say() -> None:
    text = page({paper: rows_of(read_experiments(paper), LEDGER) for paper in PAPERS})
    assert (ROOT / "docs" / "claims.md").read_text(encoding="utf-8") == text


def test_the_verb_lists_runs_and_checks(tmp_path: Path) -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["reproduce", "2603.10123", "--list"])
    assert shown.exit_code == 0
    assert "discrete-formula:" in shown.output
    asked = ["reproduce", "2603.10123", "--claim", "discrete-formula", "--out", str(tmp_path), "--check", str(LEDGER)]
    ran = runner.invoke(app, asked)
    assert ran.exit_code == 0, ran.output
    assert "discrete-formula: replicates" in ran.output
    assert "section 3.1, appendix A: the alternating binomial sum is the last row" in ran.output
    assert "asked: " in ran.output
    assert "discrete-formula-in-float64" not in ran.output  # another claim of the same experiment
    assert "agrees with" in ran.output


@pytest.mark.parametrize(
    ("cost", "seconds"), [("15 s", 15), ("18 min of one core", 1080), ("2 h", 7200), ("nothing", 0), ("", 0)]
)
def test_a_stated_cost_is_a_time(cost: str, seconds: float) -> None:
    experiment = next(iter(read_experiments("2605.09213").values()))
    assert replace(experiment, cost=cost).seconds == seconds


def test_the_longest_runs_first_where_several_run_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import joblib

    started: list[str] = []

    def parallel(**_: object) -> Any:
        return lambda tasks: (started.append(task[1][0].name) or (task[1][0].name, 0.0) for task in tasks)

    monkeypatch.setattr(joblib, "Parallel", parallel)
    experiments = read_experiments("2605.09213").values()
    run_experiments(experiments, tmp_path, jobs=2)
    times = {experiment.name: experiment.seconds for experiment in experiments}
    assert [times[name] for name in started] == sorted((times[e.name] for e in experiments if e.study), reverse=True)


def test_several_papers_are_run_by_one_command(tmp_path: Path) -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["reproduce", "2605.09213", "2602.16837", "--list"])
    assert shown.exit_code == 0
    assert shown.output.index("mean_field_rate:") < shown.output.index("published_strengths:")
    assert shown.output.count("not_here:") == 2  # both papers have one of that name
    unknown = runner.invoke(app, ["reproduce", "2603.10123", "2605.0921", "--list"])
    assert "2605.0921" in str(unknown.exception)
    everything = runner.invoke(app, ["reproduce", "--list"])
    assert all(f"{name}:" in everything.output for name in ("discrete-formula", "mean_field_rate", "rollout_ladder"))
    one = runner.invoke(app, ["reproduce", "--claim", "discrete-formula", "--list"])  # an id is enough
    assert one.output.count("\n") < everything.output.count("\n") / 10


def test_what_cannot_be_checked_or_chosen_is_said_before_anything_runs(tmp_path: Path) -> None:
    runner = CliRunner()
    base = ["reproduce", "2603.10123", "--out", str(tmp_path)]
    for more, words in (
        (["--claim", "discrete-formula", "--check", str(tmp_path / "nowhere")], "--check must be a folder"),
        (["--claim", "discrete-formula", "--experiment", "dead_zone"], "must leave an experiment that has all of them"),
        (["--figure", "99"], "figure must be one of 1"),
        (["--jobs", "0"], "greater than or equal to 1"),
    ):
        ran = runner.invoke(app, base + more)
        assert ran.exit_code != 0
        assert words in str(ran.exception) + ran.output
        assert not list(tmp_path.iterdir())
    ran = runner.invoke(app, ["reproduce", "2602.16837", "--figure", "1"])
    assert "is for papers with figures" in str(ran.exception)


def test_json_stays_json_beside_a_check(tmp_path: Path) -> None:
    asked = ["reproduce", "--claim", "discrete-formula", "--out", str(tmp_path), "--check", str(LEDGER), "--json", "-q"]
    ran = CliRunner().invoke(app, asked)
    assert json.loads(ran.stdout)["discrete-formula"]["verdict"] == "replicates"
    assert "agrees with" in ran.stderr


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("abstract, sections 1 and 5", "section 1"),
        ("section 2", "section 10, Figure 2"),
        ("section 4, Eq. 5", "section 4.1"),
        ("sections 4.2 and 6", "section 4.3, appendix H"),
        ("section 7, future work", "appendix A, inductive step"),
        ("appendix E.3, step 2", "appendix E.10"),
        ("appendix H", "tables, no residual"),
        ("Theorem 1.3", "section 7.1"),
        ("Lemma 1.4, Eq. 1.23", "Proposition 7.1, Eq. 7.7"),
    ],
)
def test_the_ledger_follows_the_paper(earlier: str, later: str) -> None:
    assert place_of(earlier)[:2] < place_of(later)[:2]


def test_rows_of_one_place_stand_together_under_its_heading() -> None:
    for paper in PAPERS:
        rows = rows_of(read_experiments(paper), LEDGER)
        headings = [heading for heading, _ in groupby(rows, key=lambda row: place_of(row.claim.where)[2])]
        assert len(headings) == len(set(headings)), headings
        assert any(row.claim.main for row in rows)
        text = page({paper: rows})
        for row in rows:
            assert text.count(f'<span id="{row.claim.id}">') == 1
            assert text.count(f"(#{row.claim.id})") == bool(row.claim.main)
