"""`catenary pathways`: a page, a table and its data, from one command."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import catenary.cli.main  # noqa: F401 - registers the verbs
from catenary.cli.app import app
from catenary.errors import InvalidInput
from tiny_models import TINY


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("pathways")
    config = base / "config.json"
    config.write_text(json.dumps(TINY["llama"]))
    common = ("pathways", config, "-L", 16, "--windows", 2, "--probes", 2, "--quiet")
    text = run(*common, "--out", base / "out")
    assert "S/(V+S)" in text
    assert "variance" in text
    with pytest.raises(InvalidInput, match=r"finished pathways\.json of another config \(different: seed\)"):
        run(*common, "--seed", 1, "--out", base / "out")
    with pytest.raises(InvalidInput, match="comma-separated"):
        run(*common, "--layers", "first", "--out", base / "other")
    return base / "out"


def test_a_page_and_its_data(folder: Path) -> None:
    page = (folder / "pathways.html").read_text()
    assert page.count("<svg") >= 2
    assert "half of what" in page
    record = json.loads((folder / "pathways.json").read_text())
    layers = record["results"]["layers"]
    assert [row["layer"] for row in layers] == [0, 1]
    assert record["results"]["log10_to_everything"]["value"] < 0
    with (folder / "pathways.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 16
    # the table's shares are sums over the data
    last = [row for row in rows if row["layer"] == "1"]
    share = sum(float(row["value"]) for row in last) / sum(float(row["whole"]) for row in last)
    assert share == pytest.approx(layers[1]["value"], rel=1e-6)
    assert {path.name for path in (folder / "figures").iterdir()} >= {"terms.svg", "paths.svg"}


def test_measure_takes_an_aim(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(TINY["llama"]))
    common = ("measure", config, "-L", 32, "--windows", 2, "--probes", 2, "--quiet", "--json")
    made = json.loads(run(*common, "--position", 19, "--output", "logits", "--relative", "--out", tmp_path / "a"))
    assert made["quantity"].startswith("Frobenius norm of the derivative of all logits")
    assert made["config"]["request"]["aim"] == {"position": 19, "output": "logits", "relative": True}
    made = json.loads(run(*common, "--output", "7", "--out", tmp_path / "b"))
    assert "log-probability" in made["quantity"]
    made = json.loads(run(*common, "--source-layer", 0, "--target-layer", 1, "--out", tmp_path / "c"))
    assert made["config"]["request"]["aim"] == {"source_layer": 0, "target_layer": 1}
