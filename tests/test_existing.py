"""One rule for --out over all verbs: the same again gives the same bytes, and nothing finished is replaced unasked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import catenary.cli.main  # noqa: F401 - registers the verbs
from catenary import figures
from catenary.boundaries import Layout
from catenary.cli.app import app
from catenary.errors import InvalidInput
from catenary.provenance import versions
from catenary.sample import Sample
from catenary.store import read_run, write_json, write_run
from catenary.study.config import study_config
from catenary.study.deciding import deciding
from catenary.study.existing import check_folder, existing_run

SMALL = ("preset:toy", "-L", "16", "--quiet")
VERBS: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[str, ...]]] = {
    ("predict",): (SMALL, ("--theory", "null")),
    ("atlas",): (("toy", "-L", "32", "--no-knobs", "-q"), ("-L", "33")),
    ("measure",): ((*SMALL, "--windows", "1", "--probes", "1"), ("--seed", "1")),
    ("profile",): (
        (*SMALL, "--conditions", "", "--check-nets", "1", "--check-sequences", "1", "--probes", "1"), ("--seed", "1")
    ),
    ("pathways",): ((*SMALL, "--windows", "1", "--probes", "1"), ("--layers", "0")),
    ("rollout",): ((*SMALL, "--windows", "1", "--schedule", "0.5"), ("--schedule", "0.4")),
    ("strengths",): ((*SMALL, "--nets", "0"), ("-L", "17")),
    ("kinetic", "profile"): (("--time", "1"), ("--time", "2")),
    ("kinetic", "phase"): (("--cells", "6"), ("--cells", "7")),
    ("kinetic", "simulate"): (("-N", "4", "--frames", "3"), ("--seed", "1")),
    ("kinetic", "correlate"): (("-N", "8", "--samples", "4", "--bins", "2"), ("--seed", "1")),
    ("kinetic", "bridge"): (("--layers", "6", "--layers", "12", "-L", "16"), ("--c", "1.5")),
    ("boundaries",): (("RUN",), ("--seed", "1")),
    ("report",): (("RUN",), ()),
    ("order",): (("CURVE", "--documents", "20"), ("--documents", "19")),
}  # fmt: skip
"""Each verb that writes: a quick call of it, and options that make it another one."""

OTHERWISE = {
    ("reproduce",): "its folder collects the results of many experiments, each told apart by its own settings",
    ("evolve",): "it trains, which takes longer than all the rest; it asks existing_run, as measure does",
    ("learn",): "it trains too; it asks finding_folder, as pathways does",
    ("retrieve",): "it asks networks; it asks check_folder, and its own tests do the same again",
}
"""Verbs with --out that have a rule of their own, and why."""


def verbs(command: Any, name: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every verb with --out."""
    inner = getattr(command, "commands", {})
    for key, below in inner.items():
        yield from verbs(below, (*name, key))
    if not inner and any(parameter.name == "out" for parameter in command.params):
        yield name


def test_every_verb_that_writes_has_a_row() -> None:
    found = set(verbs(typer.main.get_command(app)))
    assert found == {*VERBS, *OTHERWISE}


def call(*arguments: object) -> None:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Files by name, but for the one with clocks."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "run.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    energy = np.exp(np.random.default_rng(0).normal(size=(1, 1, 1, 8, 1, 64)))
    windows = {"trained": {"chunked": {"report": {"chunk": 16}}}}
    result = {"config": {"seed": 0}, "windows": windows, "versions": versions()}
    write_run(folder, {"trained": Sample(energy, ("chunked",), label="trained")}, result)
    assert Layout.of(64, 16).places().size
    return folder


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_the_same_again_is_fine_and_another_is_refused(
    verb: tuple[str, ...], run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FORMATS", {".svg": figures.FORMATS[".svg"]})  # the others take most of the time
    given, other = VERBS[verb]
    curve = tmp_path / "curve.json"
    curve.write_text(json.dumps({"slots": [0, 9, 18], "means": [0.76, 0.54, 0.63], "n": 2655}))
    files = {"RUN": str(run_folder), "CURVE": str(curve)}
    command = [*verb, *(files.get(word, word) for word in given), "--out", tmp_path / "out"]
    call(*command)
    before = bytes_of(tmp_path / "out")
    call(*command)
    assert bytes_of(tmp_path / "out") == before
    if other:
        with pytest.raises(InvalidInput, match=r"out holds a finished .* of another config \(different: .*--overwrite"):
            call(*command, *other)
    foreign = tmp_path / "out" / "other.json"
    write_json(foreign, {"versions": {}, "config": {}})
    with pytest.raises(InvalidInput, match=r"another command \(other\.json\).*--overwrite"):
        call(*command, *other)
    assert bytes_of(tmp_path / "out") == before | {"other.json": foreign.read_bytes()}
    call(*command, *other, "--overwrite")


def test_a_page_read_off_a_run_may_share_its_folder(run_folder: Path, tmp_path: Path) -> None:
    call("boundaries", run_folder)
    config = read_run(run_folder).result["config"]
    assert existing_run(run_folder, config, overwrite=False) is not None
    call("report", run_folder)
    with pytest.raises(InvalidInput, match=r"another command \(boundaries\.json, result\.json\)"):
        call("kinetic", "profile", "--out", run_folder)
    call("boundaries", run_folder, "--out", tmp_path)
    with pytest.raises(InvalidInput, match=r"another command \(boundaries\.json\)"):
        existing_run(tmp_path, config, overwrite=False)


def test_files_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "transformers_version": "5"}))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")
    assert not check_folder(tmp_path, ("a.json",), {}, overwrite=False)
    assert not check_folder(tmp_path / "nowhere", ("a.json",), {}, overwrite=False)


def test_versions_count_and_lists_are_tuples(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"versions": versions(), "parameters": {"x": [1, 2]}})
    assert check_folder(tmp_path, ("a.json",), {"x": (1, 2)}, overwrite=False)
    with pytest.raises(InvalidInput, match="different: x, y"):
        check_folder(tmp_path, ("a.json",), {"x": (1, 3), "y": None}, overwrite=False)
    write_json(tmp_path / "a.json", {"versions": {"python": "2"}, "config": {}})
    with pytest.raises(InvalidInput, match="other package versions"):
        check_folder(tmp_path, ("a.json",), {}, overwrite=False)
    assert not check_folder(tmp_path, ("a.json",), {}, overwrite=True)
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(InvalidInput, match="is not JSON"):
        check_folder(tmp_path, ("a.json",), {}, overwrite=False)


@pytest.mark.parametrize(
    ("weights", "tokens", "kept", "left"),
    [
        ("untrained", "random", {"init_std"}, {"documents", "bos", "tokenizer", "chunk"}),
        ("untrained", "zipf", {"init_std"}, {"documents", "bos", "tokenizer", "chunk"}),
        ("pretrained", "vanilla", {"documents", "bos", "tokenizer"}, {"init_std", "chunk"}),
        ("pretrained", "chunked", {"documents", "chunk"}, {"init_std"}),
        ("pretrained", "shuffled", {"documents", "chunk"}, {"init_std"}),
        ("pretrained", "uniform", {"bos", "tokenizer"}, {"documents", "chunk"}),
    ],
)
def test_a_record_holds_what_decides_its_numbers(weights: str, tokens: str, kept: set[str], left: set[str]) -> None:
    found = deciding(study_config({"model": "toy"}), [weights], [tokens], "rope")
    assert found.keys() >= kept | {"model", "length", "seed", "dtype", "rope"}
    counts = {"windows", "probes", "trained_probes", "nets", "check_nets", "check_sequences", "conditions"}
    assert not found.keys() & (left | counts)
