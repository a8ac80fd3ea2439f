"""`catenary predict --quantiles`: what is printed, what is stored, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import catenary
from catenary.cli.main import app
from catenary.errors import InvalidInput
from catenary.protocols import TokenLaw
from catenary.theory.sampled.quantiles import birth_quantiles, check_drawable

BASE = ["predict", "toy", "--length", "24", "--quantiles", "--networks", "3"]


def test_json_holds_the_quantiles() -> None:
    shown = json.loads(CliRunner().invoke(app, [*BASE, "--json", "--quiet"]).stdout)
    held = birth_quantiles(catenary.read_config("toy"), 24, TokenLaw(), networks=3)
    assert shown["quantiles"]["levels"] == [0.1, 0.5, 0.9]
    assert np.allclose(shown["quantiles"]["values"], held.values, rtol=1e-9)
    assert shown["values"] == catenary.predict(catenary.read_config("toy"), length=24).values.tolist()


def test_a_table_and_a_curve_with_its_band(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*BASE, "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["positions", "10", "%", "50", "%", "90", "%", "rms"] in lines
    assert "about 0 s on one core" in done.stderr
    curve = catenary.read_run(tmp_path / "run").curves["drawn"]
    assert isinstance(curve, catenary.Profile)
    held = birth_quantiles(catenary.read_config("toy"), 24, TokenLaw(), networks=3)
    assert curve.label == "median of 3 drawn networks"
    assert np.allclose(curve.values, np.median(held.norms, axis=0), rtol=1e-9)
    assert curve.low is not None
    assert np.allclose(curve.low, np.quantile(held.norms, 0.16, axis=0), rtol=1e-9)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--repeat-probability", "0.01"], "give ids"),
        (["--length", "60000"], "draw networks at length=9459 or shorter"),
        (["--theory", "null"], "quantiles go with --theory birth"),
        (["--vary", "num_hidden_layers=2,3"], "quantiles cannot go with --vary"),
    ],
)
def test_refusals(more: list[str], words: str) -> None:
    done = CliRunner().invoke(app, [*BASE, *more])
    assert done.exit_code != 0
    assert words in str(done.exception) + done.output
    assert "drawing" not in done.output


def recurrent(tmp_path: Path, name: str, **fields: object) -> str:
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps({"model_type": name, "hidden_size": 16, "num_hidden_layers": 3, **fields}))
    return str(path)


def test_networks_that_cannot_differ_are_not_drawn(tmp_path: Path) -> None:
    config = recurrent(tmp_path, "mamba", state_size=4)
    done = CliRunner().invoke(app, ["predict", config, *BASE[2:]])
    assert done.exit_code != 0
    assert "no layer has attention" in str(done.exception) + done.output


def test_layers_that_are_not_drawn_are_named(tmp_path: Path) -> None:
    mixed = recurrent(tmp_path, "recurrent_gemma", num_attention_heads=2, lru_width=16, intermediate_size=32)
    for config, said in ((mixed, True), ("toy", False)):
        done = CliRunner().invoke(app, ["predict", config, *BASE[2:], "--quiet"])
        assert done.exit_code == 0, done.output
        assert ("Heads of attention alone are drawn" in done.stdout) == said


def test_the_length_that_memory_allows_is_the_longest() -> None:
    architecture = catenary.read_config("toy")
    check_drawable(architecture, 9459, TokenLaw())
    with pytest.raises(InvalidInput, match="length=9459 or shorter"):
        check_drawable(architecture, 9460, TokenLaw())
