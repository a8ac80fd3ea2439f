"""The page of strengths: every column by layer, predicted beside measured, and sums that are those of the law."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import catenary as ct
from catenary.cli.main import app
from catenary.reading import counted
from catenary.theory.strengths import predicted_strengths


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("strengths")
    arguments = ["strengths", "preset:toy", "-L", "32", "--windows", "2", "--quiet", "--out", str(out)]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Sum of strengths over 4 layers: attention ")
    return out


def test_sums_are_those_of_the_law_and_of_the_table(folder: Path) -> None:
    record = json.loads((folder / "strengths.json").read_text())
    predicted, measured = record["results"]["columns"]
    law = predicted_strengths(ct.read_config("preset:toy"), 32)
    with (folder / "strengths.csv").open() as file:
        rows = list(csv.DictReader(file))
    for branch in ("attention", "feed-forward"):
        assert predicted["sums"][branch]["strength"] == pytest.approx(law.total(branch))
        for column in (predicted, measured):
            total = sum(float(r["strength"]) for r in rows if (r["label"], r["branch"]) == (column["label"], branch))
            assert column["sums"][branch]["strength"] == pytest.approx(total)
            assert f"{total:.3g} " in record["verdict"]
    assert len(rows) == 2 * 2 * 4


def test_a_figure_for_each_branch_with_bars_where_errors_are_known(folder: Path) -> None:
    assert {path.stem for path in (folder / "figures").iterdir()} == {"attention", "feed-forward"}
    page = (folder / "strengths.html").read_text()
    assert page.count("<figure") == 2
    assert "untrained, random" in page
    assert "predicted, random" in page


def test_nothing_is_written_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["strengths", "toy", "-L", "32", "--nets", "0", "--quiet", "--json"])
    assert json.loads(done.output)["page"] is None
    assert not list(tmp_path.iterdir())


def test_numbers_of_things_in_words() -> None:
    assert [counted(1, "window"), counted(2, "window"), counted(0, "probe"), counted(3, "local process")] == [
        "1 window", "2 windows", "0 probes", "3 local processes",
    ]  # fmt: skip
