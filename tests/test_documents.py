"""Reading documents: every kind of source, every reason to pass one over, and bounded memory."""

from __future__ import annotations

import gzip
import json
import os
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from catenary.errors import InvalidInput, MissingResource
from catenary.text.documents import Document, read_documents

HOSTILE = "null \x00 bell \x07 line\u2028paragraph\u2029 <script>alert(1)</script> \"quoted\" \r\n tab\t é 🙂"


def read(source: str | Path, **options: Any) -> tuple[list[Document], Counter[str]]:
    skipped: Counter[str] = Counter()
    return list(read_documents(source, **options).read(skipped)), skipped


@pytest.mark.parametrize("name", ["one.txt", "one.md", "ONE.TXT"])
def test_a_text_file_is_one_document_kept_to_the_byte(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(HOSTILE.encode())
    documents, skipped = read(path)
    assert [d.text for d in documents] == [HOSTILE]
    assert documents[0].name == name
    assert documents[0].origin == str(path)
    assert not skipped


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_lines_of_json_are_documents_and_bad_ones_are_counted_by_reason(tmp_path: Path, suffix: str) -> None:
    lines = [
        b"\xef\xbb\xbf" + json.dumps({"text": "first"}).encode(),  # a byte-order mark
        json.dumps({"text": HOSTILE}, ensure_ascii=False).encode(),
        b"",
        b"{not json",
        b"[" * 100_000,  # nested too deeply to parse
        json.dumps({"body": "x"}).encode(),
        json.dumps(["text"]).encode(),
        json.dumps({"text": 3}).encode(),
        json.dumps({"text": "  "}).encode(),
        b'{"text": "half \\ud800"}',
        b'{"text": "latin \xe9"}',
        json.dumps({"text": "y" * 200_000}).encode(),
        json.dumps({"text": "last"}).encode(),  # no line end
    ]
    path = tmp_path / f"many{suffix}"
    whole = b"\n".join(lines)
    path.write_bytes(gzip.compress(whole) if suffix.endswith(".gz") else whole)
    documents, skipped = read(path, max_bytes=150_000)
    assert [d.text for d in documents] == ["first", HOSTILE, "last"]
    assert [d.name for d in documents] == [f"{path.name}:{n}" for n in (1, 2, 13)]
    assert skipped == {
        "blank line": 1,
        "line is not JSON": 2,
        "no field 'text'": 2,
        "field 'text' is not a text": 1,
        "empty": 1,
        "not UTF-8": 2,
        "line over 150000 bytes": 1,
    }
    assert len(documents) + skipped.total() == len(lines)


def test_another_field_holds_the_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"body": "here"}\n')
    assert [d.text for d in read(path, field="body")[0]] == ["here"]


def test_a_folder_is_read_in_order_and_what_is_not_text_is_counted(tmp_path: Path) -> None:
    for name in ("b.txt", "a.md", "sub/c.jsonl", "sub/deeper/d.txt", ".hidden.txt", ".git/e.txt", "f.png", "g.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"text": "line"}\n' if name.endswith("jsonl") else name)
    (tmp_path / "g.txt").write_bytes("é".encode("utf-16"))
    (tmp_path / "h.txt").write_text(" \n")
    (tmp_path / "i.txt").write_text("long" * 100)
    os.mkfifo(tmp_path / "pipe.txt")  # opening it would wait for a writer
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere")
    documents, skipped = read(tmp_path, max_bytes=399)
    assert [d.name for d in documents] == ["a.md", "b.txt", "sub/c.jsonl:1", "sub/deeper/d.txt"]
    assert skipped == {
        "hidden file": 1,
        "hidden folder": 1,
        "not a text file, by its suffix": 1,
        "not UTF-8": 1,
        "empty": 1,
        "over 399 bytes": 1,
        "not a regular file": 2,
    }


def test_a_file_name_that_is_not_unicode_gets_a_printable_name(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("text")
    (document,) = read_documents(tmp_path)
    assert document.name == "caf\\xe9.txt"


def test_documents_can_be_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    documents = read_documents(tmp_path)
    assert list(documents) == list(documents) != []


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_one_endless_line_is_skipped_in_bounded_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"long{suffix}"
    with gzip.open(path, "wb", compresslevel=1) if suffix.endswith(".gz") else path.open("wb") as file:
        file.write(b'{"text": "')
        for _ in range(60):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n{"text": "after"}\n')
    tracemalloc.start()
    documents, skipped = read(path, max_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [d.text for d in documents] == ["after"]
    assert skipped == {"line over 1000000 bytes": 1}
    assert peak < 10_000_000  # the line has 60 MB


def test_reading_is_lazy(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text('{"text": "good"}\n' + "broken\n" * 10)
    skipped: Counter[str] = Counter()
    assert next(read_documents(path).read(skipped)).text == "good"
    assert not skipped


def test_a_damaged_archive_is_an_error_not_a_short_source(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    whole = gzip.compress(b"".join(json.dumps({"text": f"{n}" * 50}).encode() + b"\n" for n in range(2000)))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match="damaged"):
        list(read_documents(path))


def test_a_source_that_is_not_there_or_of_no_known_kind_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(MissingResource, match=r"no file or folder .*nowhere.* \(looked in"):
        read_documents(tmp_path / "nowhere")
    (tmp_path / "a.pdf").write_text("x")
    with pytest.raises(InvalidInput, match=r"\.txt, \.md, \.jsonl, \.jsonl\.gz, got 'a\.pdf'"):
        read_documents(tmp_path / "a.pdf")
    with pytest.raises(InvalidInput, match="max_bytes must be >= 1"):
        read_documents(tmp_path, max_bytes=0)


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("hf:user/name", ("user/name", None, "train", "text")),
        ("hf:user/name:test", ("user/name", None, "test", "text")),
        ("hf:user/name@small:test:body", ("user/name", "small", "test", "body")),
    ],
)
def test_a_dataset_is_streamed(
    monkeypatch: pytest.MonkeyPatch, source: str, call: tuple[str, str | None, str, str]
) -> None:
    calls = []

    def load_dataset(name: str, configuration: str | None, *, split: str, streaming: bool) -> Any:
        calls.append((name, configuration, split))
        assert streaming
        return iter([{call[3]: "good"}, {call[3]: None}, {"other": ""}, {call[3]: "x" * 101}])

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    documents, skipped = read(source, max_bytes=100)
    assert calls == [call[:3]]
    assert [(d.text, d.name) for d in documents] == [("good", "user/name:0")]
    assert skipped.total() == 3


def test_a_dataset_that_cannot_be_had_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for source in ("hf:", "hf:a:b:c:d", "hf:a::c"):
        with pytest.raises(InvalidInput, match="must be hf:dataset:split:field"):
            read_documents(source)

    def load_dataset(*_: object, **__: object) -> Any:
        raise ConnectionError("no route\nto host")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    with pytest.raises(MissingResource, match=r"^documents: could not open hf:a \(ConnectionError: no route\)$"):
        list(read_documents("hf:a"))
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingResource, match=r"pip install 'catenary\[datasets\]'"):
        list(read_documents("hf:a"))


def test_the_language_reference_of_this_python_is_a_source() -> None:
    documents = read_documents("python-docs")
    texts = list(documents)
    assert [d.name for d in texts] == sorted(d.name for d in texts)
    assert sum(len(d.text) > 4000 for d in texts) >= 24
    assert all(d.origin == f"python-docs:{d.name}" for d in texts)
