"""catenary order end to end: page, data, standard input, published curves, errors in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from catenary.cli.main import app
from catenary.errors import InvalidInput, MissingResource
from catenary.page.order import gains_chart
from catenary.retrieval.order.advice import advise
from catenary.retrieval.order.assign import SlotWeights
from catenary.retrieval.order.scores import read_scores, relevance_of
from catenary.retrieval.records import write_outcomes
from test_retrieval_statistics import logp_rows, outcomes_of

RUN = CliRunner()
SCORES = '{"a.txt": 0.1, "β": 0.9, "c": 0.5}'


@pytest.fixture
def curve(tmp_path: Path) -> Path:
    path = tmp_path / "outcomes.json"
    write_outcomes(outcomes_of(logp_rows(20)), path)
    return path


def test_page_data_and_order(curve: Path, tmp_path: Path) -> None:
    (tmp_path / "scores.json").write_text(SCORES, encoding="utf-8")
    out = tmp_path / "out"
    done = RUN.invoke(app, ["order", str(curve), "--scores", str(tmp_path / "scores.json"), "--out", str(out)])
    assert done.exit_code == 0, done.output
    record = json.loads((out / "order.json").read_text())
    expected = advise(outcomes_of(logp_rows(20)), read_scores(SCORES))
    assert record["results"] == json.loads(json.dumps(expected.to_dict()))
    assert record["verdict"] == expected.verdict.words
    assert f"First to last: {', '.join(expected.names)}" in done.stdout
    page = (out / "order.html").read_text()
    assert page.count("<svg") >= 2
    assert "β" in page
    again = RUN.invoke(app, ["order", str(curve), "--out", str(out)])
    assert isinstance(again.exception, InvalidInput)


def test_scores_from_standard_input_as_json(curve: Path, tmp_path: Path) -> None:
    arguments = ["order", str(curve), "--scores", "-", "--json", "--out", str(tmp_path / "out")]
    done = RUN.invoke(app, arguments, input="[3, 1, 2]")
    assert done.exit_code == 0, done.output
    held = json.loads(done.stdout)
    assert sorted(held["results"]["order_indices"]) == [0, 1, 2]
    assert held["results"]["gains"]["separations"] == ["0.5", "1", "2", "perfect"]


def test_a_published_curve_gives_an_order_and_no_gain(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps({"slots": [0, 9, 19], "means": [0.76, 0.54, 0.63], "n": 2655}))
    done = RUN.invoke(app, ["order", str(tmp_path / "p.json"), "--documents", "4", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "not reported" in done.stdout
    assert "First to last: rank 1, rank 3, rank 4, rank 2" in done.stdout


def test_errors(curve: Path, tmp_path: Path) -> None:
    for arguments, kind in (
        ([str(tmp_path / "none.json")], MissingResource), ([str(curve), "--metric", "exact"], InvalidInput),
        ([str(curve), "--scores", str(tmp_path / "none.json")], MissingResource),
    ):  # fmt: skip
        done = RUN.invoke(app, ["order", *arguments, "--out", str(tmp_path / "out")])
        assert isinstance(done.exception, kind)


def test_a_published_curve_has_no_choice_of_metric(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps({"slots": [0, 9, 19], "means": [0.76, 0.54, 0.63], "n": 2655}))
    done = RUN.invoke(app, ["order", str(tmp_path / "p.json"), "--metric", "exact", "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, InvalidInput)
    assert "a published curve has one score" in str(done.exception)


def test_without_log_probabilities_the_metric_is_that_of_retrieve(tmp_path: Path) -> None:
    held = outcomes_of(logp_rows(20))
    right = (held.values["logp"] > np.median(held.values["logp"])).astype(float)
    box = replace(held, values={"exact": np.zeros_like(right), "contains": right, "best_subspan": right}, baselines={})
    write_outcomes(box, tmp_path / "box.json")
    done = RUN.invoke(app, ["order", str(tmp_path / "box.json"), "--json", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["results"]["metric"] == "best_subspan"


def test_more_orders_than_colours_are_told_apart_by_shape() -> None:
    weights = SlotWeights((0.0, 0.5, 1.0), (3.0, 1.0, 2.0))
    advice = advise(outcomes_of(logp_rows(20)), predicted={f"by {n}": weights for n in range(3)})
    assert advice.gains is not None
    names = list(advice.gains.gain)
    chart = json.loads(json.dumps(gains_chart(advice.gains)))
    (gain,) = (layer for layer in find_layers(chart) if layer.get("name") == "gain")
    colours, shapes = (gain["encoding"][part]["scale"]["range"] for part in ("color", "shape"))
    assert len(names) == 8
    assert len(set(zip(colours, shapes, strict=True))) == 8


def find_layers(chart: object) -> list[dict[str, Any]]:
    """Every layer of a chart, wherever it is nested."""
    if isinstance(chart, list):
        return [layer for part in chart for layer in find_layers(part)]
    if not isinstance(chart, dict):
        return []
    return [*chart.get("layer", []), *(layer for part in chart.values() for layer in find_layers(part))]


def test_scores_of_documents_must_be_numbers() -> None:
    with pytest.raises(InvalidInput, match="must be numbers"):
        relevance_of(2, ["high", 0.5])  # type: ignore[list-item]  # what a framework's metadata may hold
