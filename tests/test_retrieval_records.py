"""Outcomes as files: the same numbers bit for bit, reasons kept, clear words for what cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from catenary.errors import InvalidInput, MissingResource
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.records import MeanCurve, outcomes_record, read_curve, read_outcomes, write_outcomes


def outcomes() -> Outcomes:
    values = np.random.default_rng(0).normal(size=(3, 4)) / 3
    values[1, 2] = np.nan
    skipped = [["" for _ in range(4)] for _ in range(3)]
    skipped[1][2] = "prompt of 4,213 tokens is longer than the context, 2,048"
    exact = np.where(np.isnan(values), np.nan, (values > 0).astype(np.float64))
    return Outcomes(
        task="key-value", samples=("a", "β", "c"), slots=(0, 2, 5, 9), of=10, values={"logp": values, "exact": exact},
        skipped=skipped, answers=[["", "日本", 'a "quoted"\nline', "\u2028"]] * 3, tokens=[[5, 6, 0, 8]] * 3,
        baselines={"closed book": {"logp": np.array([-1.5, np.nan, 0.1 + 0.2])}, "oracle": {}},
        provenance={"model": "x", "seed": 3, "nested": {"bos": None}},
    )  # fmt: skip


def test_round_trip_is_exact(tmp_path: Path) -> None:
    before = outcomes()
    write_outcomes(before, tmp_path / "sub" / "outcomes.json")
    after = read_outcomes(tmp_path / "sub" / "outcomes.json")
    assert (after.task, after.samples, after.slots, after.of) == ("key-value", ("a", "β", "c"), (0, 2, 5, 9), 10)
    for name in ("logp", "exact"):
        assert after.values[name].tobytes() == np.asarray(before.values[name]).tobytes()
    assert [list(row) for row in after.skipped] == before.skipped
    assert [list(row) for row in after.answers] == before.answers
    assert [list(row) for row in after.tokens] == before.tokens
    np.testing.assert_array_equal(after.baselines["closed book"]["logp"], [-1.5, np.nan, 0.1 + 0.2])
    assert after.baselines["oracle"] == {}
    assert after.provenance == before.provenance
    again = tmp_path / "again.json"
    write_outcomes(after, again)
    assert again.read_bytes() == (tmp_path / "sub" / "outcomes.json").read_bytes()
    assert isinstance(read_curve(again), Outcomes)


def test_nan_is_null_in_the_file(tmp_path: Path) -> None:
    write_outcomes(outcomes(), tmp_path / "o.json")
    record = json.loads((tmp_path / "o.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert record["values"]["logp"][1][2] is None
    assert record["skipped"][1][2].startswith("prompt of 4,213")


def test_infinite_values_are_refused() -> None:
    broken = outcomes()
    broken.values["logp"][0, 0] = -np.inf
    with pytest.raises(InvalidInput, match="logp must be finite"):
        outcomes_record(broken)


def test_published_curves(tmp_path: Path) -> None:
    path = tmp_path / "curve.json"
    path.write_text(json.dumps({"slots": [0, 4, 9], "means": [0.7, 0.5, 0.6], "n": 2655}))
    assert read_curve(path) == MeanCurve((0, 4, 9), (0.7, 0.5, 0.6), 2655, 10)
    path.write_text(json.dumps({"means": [-1.5, -2], "n": 30, "of": 4, "binary": False, "sd": [1, 1], "name": "m"}))
    assert read_curve(path) == MeanCurve((0, 1), (-1.5, -2.0), 30, 4, False, (1.0, 1.0), "m")


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("[1]", "must hold an object"),
        ("{", "is not JSON"),
        ("{}", "schema must be"),
        ('{"means": [0.5]}', "how many samples"),
        ('{"means": [0.5, 1.5], "n": 4}', "shares in"),
        ('{"means": [0.5], "slots": [0, 1], "n": 4}', "one number for each of 2 slots"),
        ('{"means": [0.5, 0.6], "slots": [1, 0], "n": 4}', "must rise"),
        ('{"means": [0.5, "x"], "n": 4}', "lists of numbers"),
        ('{"means": [0.5], "n": 4, "colour": 1}', "colour"),
        ('{"means": [], "n": 4}', "one number"),
        ('{"schema": "catenary-outcomes/1", "task": "x"}', "none of samples"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, record: str, words: str) -> None:
    (tmp_path / "x.json").write_text(record)
    with pytest.raises(InvalidInput, match=words):
        read_curve(tmp_path / "x.json")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match="cannot read"):
        read_outcomes(tmp_path / "none.json")


def test_parts_of_another_kind(tmp_path: Path) -> None:
    record = outcomes_record(outcomes())
    for part, value in (("values", 3), ("values", {"logp": [["a"]]}), ("tokens", 5), ("slots", "ab")):
        (tmp_path / "x.json").write_text(json.dumps({**record, part: value}))
        with pytest.raises(InvalidInput):
            read_outcomes(tmp_path / "x.json")
