"""Lengths on the command line: whole numbers as people write them, refused with the rule where they are none."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from catenary.cli.main import app
from catenary.cli.whole import whole_from


@pytest.mark.parametrize(
    ("text", "number"),
    [("1024", 1024), ("1_000_000", 1_000_000), ("1e6", 10**6), ("1.5e3", 1500), ("1E2", 100), ("16", 16), (512, 512)],
)
def test_whole_numbers(text: str | int, number: int) -> None:
    found = whole_from(16)(text)
    assert found == number
    assert type(found) is int


@pytest.mark.parametrize("text", ["1.5e0", "15", "abc", "", "nan", "inf", "-1e6", "1e999999999", "1e6 tokens", "0x40"])
def test_other_texts_are_refused_with_the_rule(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="must be a whole number of at least 16, written as 1024, 1_000"):
        whole_from(16)(text)


def test_predict_takes_a_length_with_an_exponent() -> None:
    short, long = (
        CliRunner().invoke(app, ["predict", "toy", "--length", text, "--json"]).stdout for text in ("1e2", "100")
    )
    assert short
    assert short == long
    refused = CliRunner().invoke(app, ["predict", "toy", "--length", "1.5e0"])
    assert refused.exit_code == 2


def test_what_a_config_leaves_out_is_said() -> None:
    shown = CliRunner().invoke(app, ["predict", "gpt2", "--length", "32"]).stdout
    assert "assumed: n_inner = 3072 (left out or null: 4 n_embd)" in shown
