"""catenary rollout end to end: the page's figures are those of the measured row against the Jacobian profile."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from catenary.cli.main import app
from catenary.deviation import between
from catenary.errors import InvalidInput
from tiny_models import TINY

RUN = CliRunner()


def called(folder: Path, *more: str) -> object:
    (folder / "config.json").write_text(json.dumps(TINY["llama"]))
    arguments = ["rollout", str(folder), "-L", "24", "--windows", "2", "--quiet", "--out", str(folder / "out"), *more]
    return RUN.invoke(app, arguments, catch_exceptions=True)


def test_page_table_and_data(tmp_path: Path) -> None:
    done = called(tmp_path, "--monotonicity", "--schedule", "0.5,0.2")
    assert done.exit_code == 0, done.output  # type: ignore[attr-defined]
    record = json.loads((tmp_path / "out" / "rollout.json").read_text())
    with (tmp_path / "out" / "rollout.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    row, profile = (np.array([float(part[name]) for part in rows]) for name in ("rollout", "jacobian"))
    assert row.sum() == pytest.approx(1, abs=1e-6)
    found = between(row / row.sum(), profile / profile.sum())
    assert record["results"]["figures"]["median shape"] == pytest.approx(found.median_shape, rel=1e-9)
    assert record["results"]["figures"]["W1 without last"] == pytest.approx(found.w1_without_last, rel=1e-9)
    assert record["results"]["strengths"] == [0.5, 0.2]
    assert len(record["results"]["heads"]) == 8
    assert len(record["results"]["violations"]) == 2
    page = (tmp_path / "out" / "rollout.html").read_text()
    assert page.count("<svg") >= 4
    assert "Mass on the sinks" in page
    again = called(tmp_path, "--schedule", "1")
    assert isinstance(again.exception, InvalidInput)  # type: ignore[attr-defined]
    assert "another config (different: monotonicity, schedule)" in str(again.exception)  # type: ignore[attr-defined]
