"""The gallery: its pictures are there and light, its commands are the script's and parse, its curves are true."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from catenary.cli.main import app

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import draw_gallery  # noqa: E402
import theory_pictures  # noqa: E402

DOCS = ROOT / "docs"
PAGE = (DOCS / "gallery.md").read_text("utf-8")
PICTURE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("catenary ")]
LARGEST_PHOTOGRAPH = 200_000


def test_every_picture_is_there_and_light() -> None:
    shown = PICTURE.findall(PAGE)
    assert len(shown) == len(set(shown)) > 30
    for name in shown:
        largest = draw_gallery.LARGEST if name.endswith(".svg") else LARGEST_PHOTOGRAPH
        assert (DOCS / name).stat().st_size <= largest, name


def test_every_picture_of_the_script_is_drawn_and_shown() -> None:
    held = {path.name for path in draw_gallery.GALLERY.iterdir()}
    assert held == set(draw_gallery.pictures())
    shown = {name for page in DOCS.glob("*.md") for name in PICTURE.findall(page.read_text("utf-8"))}
    assert {f"img/gallery/{name}" for name in held} <= shown


def test_every_picture_is_followed_by_the_command_that_draws_it() -> None:
    commands = {command for run in draw_gallery.RUNS.values() for command in run.commands}
    assert commands <= set(COMMANDS)
    by_picture = {picture: run for run in draw_gallery.RUNS.values() for picture in run.pictures.values()}
    seen: list[str] = []
    for line in PAGE.splitlines():
        seen += PICTURE.findall(line)
        if line.startswith("catenary "):
            for run in (by_picture[Path(name).name] for name in seen if Path(name).name in by_picture):
                assert line in run.commands, (seen, line)
            seen = []
    assert not seen, f"no command behind {seen}"


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_parses(line: str) -> None:
    """Nothing is run: options, their types and the verbs are what the program has."""
    words = shlex.split(line)[1:]
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    assert command.make_context(command.name, words).params


def test_kernel_rows_are_the_averages_that_their_names_say() -> None:
    found = theory_pictures.kernel_rows()
    seen = np.arange(1, theory_pictures.LENGTH + 1)
    behind = theory_pictures.QUERY - seen
    fading = np.where(behind >= 0, np.exp(-behind / 16), 0)
    expected = {
        "Causal()": (behind >= 0) / 96, "Window(32)": ((behind >= 0) & (behind < 32)) / 32,
        "Chunk(40)": ((behind >= 0) & (seen > 80)) / 16, "Alibi(1/16)": fading / fading.sum(),
        "Prefix(112)": (seen <= 112) / 112,
    }  # fmt: skip
    for name, row in found.items():
        np.testing.assert_allclose(row, expected[name], rtol=1e-12, atol=1e-300, err_msg=name)


def test_regimes_are_what_their_labels_say() -> None:
    from catenary.kinetic import regime

    for label, (lam, beta, t) in theory_pictures.REGIMES.items():
        assert regime(lam=lam, beta=beta, t=t, M=8) == label.split(":")[0]


def test_the_page_of_a_heavy_picture_is_refused() -> None:
    with pytest.raises(SystemExit, match="below 150000 bytes"):
        draw_gallery.save("x" * (draw_gallery.LARGEST + 1), "too-heavy.svg")
