"""`catenary boundaries` on a stored run: the words claim what the interval and the alignments support."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from catenary.cli.main import app
from catenary.errors import InvalidInput
from catenary.profile import Profile
from catenary.quantity import JACOBIAN_NORM
from catenary.sample import Sample
from catenary.store import read_run, write_run
from catenary.study.joins import join_effects
from samples import noise

LENGTH, CHUNK = 256, 32
RESULT = {"windows": {"trained": {"chunked": {"report": {"chunk": CHUNK}}, "vanilla": {"report": {}}}}}


def stored(folder: Path, height: float, token: float = 0.2) -> Path:
    """A run of twelve sequences whose chunked curve has its boundary tokens ``height`` dex up."""
    log10 = noise(24, LENGTH, token).reshape(2, 12, LENGTH)
    log10[0, :, CHUNK::CHUNK] += height
    energy = (10 ** (2 * log10))[:, None, None, :, None, :]
    write_run(folder, {"trained": Sample(energy, ("chunked", "vanilla"), label="trained")}, RESULT)
    return folder


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["boundaries", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize(
    ("height", "words"), [(0.3, "a spike at joins"), (-0.3, "a dip at joins"), (0.0, "can be told from noise")]
)
def test_the_verdict_says_what_was_planted(tmp_path: Path, height: float, words: str) -> None:
    output = invoke(str(stored(tmp_path / "run", height)))
    first, second = output.splitlines()[:2]
    assert words in first
    assert "vanilla: no spike at joins" in second
    assert (tmp_path / "run" / "boundaries.html").read_text().count("<figure") == 2


def test_an_effect_that_other_places_share_is_not_laid_to_joins(tmp_path: Path) -> None:
    log10 = noise(12, LENGTH, 0.05)
    log10[:, CHUNK::CHUNK] += 0.1
    log10[:, CHUNK + 16 :: CHUNK] += 0.2
    sample = Sample((10 ** (2 * log10))[None, None, None, :, None, :], ("chunked",), label="trained")
    write_run(tmp_path, {"trained": sample}, RESULT)
    assert "joins are not the reason" in invoke(str(tmp_path)).splitlines()[0]


def test_json_holds_the_numbers_and_the_table_stands_beside_the_page(tmp_path: Path) -> None:
    run, out = stored(tmp_path / "run", 0.3), tmp_path / "page"
    record = json.loads(invoke(str(run), "--json", "--out", str(out)))
    effect = join_effects(read_run(run))["trained/chunked"]
    held = {r["name"]: r for r in record["results"]["trained/chunked"]["readings"]}
    assert held["boundary ratio"]["value"] == effect["boundary ratio"].value
    assert len((out / "boundaries.csv").read_text().splitlines()) == 1 + 2 * CHUNK
    assert json.loads((out / "boundaries.json").read_text()) | {"page": str(out / "boundaries.html")} == record


def test_the_curves_with_joins_come_first(tmp_path: Path) -> None:
    assert list(join_effects(read_run(stored(tmp_path, 0.0)))) == ["trained/chunked", "trained/vanilla"]


def test_runs_without_chunks_or_measurements_are_refused_in_words(tmp_path: Path) -> None:
    predicted = Profile(np.ones(LENGTH), JACOBIAN_NORM, "predicted")
    write_run(tmp_path / "p", {"predicted-random": predicted}, {})
    with pytest.raises(InvalidInput, match="must hold chunked windows"):
        join_effects(read_run(tmp_path / "p"))
    with pytest.raises(InvalidInput, match="predictions only"):
        join_effects(read_run(tmp_path / "p"), chunk=16)
