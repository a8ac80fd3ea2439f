"""Documents: texts read one at a time from a file, a folder or a dataset, with every skip counted."""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput, MissingResource, invalid
from catenary.text.records import Skip, bounded_lines, decode, field_of, text_of

# One document (a file, or a line of JSON) may be this long: far above any context window, far below any memory.
MAX_BYTES = 32 * 2**20
HUB = "hf:"
PYTHON_DOCS = "python-docs"
"""The language reference that every Python carries for ``help()``: English prose that is there without a network."""


@dataclass(frozen=True)
class Document:
    """One text, exactly as stored (line ends kept), a printable ``name`` and the ``origin`` it was read from."""

    text: str
    name: str
    origin: str


@dataclass(frozen=True)
class Documents:
    """A source of documents that can be read any number of times; nothing is read until it is iterated.

    Texts are UTF-8 (a byte-order mark is dropped). A text that is not is skipped and counted, never repaired:
    a replaced character would be a token the author did not write.
    """

    source: str
    field: str = "text"
    max_bytes: int = MAX_BYTES

    def __iter__(self) -> Iterator[Document]:
        """The documents, in the source's order; skips are not reported here, ``read`` reports them."""
        return self.read(Counter())

    def read(self, skipped: Counter[str]) -> Iterator[Document]:
        """The documents, in the source's order; adds to ``skipped`` one per thing passed over, by reason."""
        if self.source.startswith(HUB):
            return _dataset(self, skipped)
        if self.source == PYTHON_DOCS:
            return _topics()
        path = Path(self.source)
        if path.is_dir():
            return _folder(self, path, skipped)
        return _reader(path)(self, path, printable(path.name), skipped)


def read_documents(source: str | Path, *, field: str = "text", max_bytes: int = MAX_BYTES) -> Documents:
    """The documents of a file, a folder or a hub dataset, read one at a time.

    ``source`` is one of

    - a ``.txt`` or ``.md`` file: one document;
    - a ``.jsonl`` or ``.jsonl.gz`` file: one JSON object per line, its ``field`` is the text;
    - a folder: all such files below it, sorted by name, files of a folder before its subfolders; names that begin
      with a dot and other suffixes are skipped and counted, links to folders are not followed;
    - ``hf:dataset:split:field``, or ``hf:dataset@configuration:split:field``: streamed with the package ``datasets``;
      split and field may be left out (``train``, and ``field``);
    - ``python-docs``: the topics of the language reference in this Python's own ``pydoc_data``.

    A document of more than ``max_bytes`` bytes is skipped and counted, so memory stays bounded whatever the source.

    Raises ``MissingResource`` if the source is not there (or ``datasets`` is not installed), ``InvalidInput`` if it
    is of an unknown kind; while reading, ``InvalidInput`` if a compressed file is damaged.
    """
    if max_bytes < 1:
        raise invalid("max_bytes", "must be >= 1", max_bytes)
    name = os.fspath(source)
    if name.startswith(HUB):
        _parse_hub(name, field)
        return Documents(name, field, max_bytes)
    if name == PYTHON_DOCS:
        return Documents(name, field, max_bytes)
    path = Path(name)
    if not path.exists():
        raise MissingResource(f"documents: no file or folder {name!a} (looked in {str(Path.cwd())!a})")
    if not os.access(path, os.R_OK):
        raise MissingResource(f"documents: {name!a} is there but may not be read; change its permissions")
    if not path.is_dir():
        _reader(path)
    return Documents(name, field, max_bytes)


def printable(name: str) -> str:
    """A file name as valid Unicode: undecodable bytes in it become backslash escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _topics() -> Iterator[Document]:
    try:
        from pydoc_data.topics import topics
    except ImportError as problem:  # some distributions split it off
        raise MissingResource(
            "documents: this Python comes without pydoc_data; give a file or folder of texts"
        ) from problem
    for name, text in sorted(topics.items()):
        yield Document(text, name, f"{PYTHON_DOCS}:{name}")


def _folder(documents: Documents, folder: Path, skipped: Counter[str]) -> Iterator[Document]:
    def unreadable(_: OSError) -> None:
        skipped["unreadable folder"] += 1

    for root, folders, files in os.walk(folder, onerror=unreadable):
        hidden = [name for name in folders if name.startswith(".")]
        skipped.update({"hidden folder": len(hidden)} if hidden else {})
        folders[:] = sorted(set(folders) - set(hidden))
        for name in sorted(files):
            path = Path(root, name)
            if name.startswith("."):
                skipped["hidden file"] += 1
            elif not path.is_file():  # a socket, a pipe or a dead link: opening it could wait for ever
                skipped["not a regular file"] += 1
            elif (suffix := _suffix(path)) not in READERS:
                skipped["not a text file, by its suffix"] += 1
            else:
                label = printable(path.relative_to(folder).as_posix())
                try:
                    yield from READERS[suffix](documents, path, label, skipped)
                except PermissionError:
                    skipped["unreadable file"] += 1


def _text_file(documents: Documents, path: Path, name: str, skipped: Counter[str]) -> Iterator[Document]:
    with path.open("rb") as file:
        raw = file.read(documents.max_bytes + 1)
    if len(raw) > documents.max_bytes:
        skipped[f"over {documents.max_bytes} bytes"] += 1
        return
    text = decode(raw)
    reason = "not UTF-8" if text is None else "" if text.strip() else "empty"
    if reason:
        skipped[reason] += 1
    else:
        assert text is not None
        yield Document(text, name, printable(str(path)))


def _json_lines(documents: Documents, path: Path, name: str, skipped: Counter[str]) -> Iterator[Document]:
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            for number, raw in bounded_lines(file, documents.max_bytes):
                text = raw if isinstance(raw, Skip) else text_of(raw, documents.field)
                if isinstance(text, Skip):
                    skipped[text.reason] += 1
                else:
                    yield Document(text, f"{name}:{number}", f"{printable(str(path))}:{number}")
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise InvalidInput(f"documents: {str(path)!a} is damaged ({problem}); fetch it again") from problem


def _dataset(documents: Documents, skipped: Counter[str]) -> Iterator[Document]:
    dataset, configuration, split, field = _parse_hub(documents.source, documents.field)
    try:
        import datasets
    except ImportError as problem:
        raise MissingResource(
            f"documents: {documents.source} needs the package datasets; try: pip install 'catenary[datasets]'"
        ) from problem
    try:
        rows: Any = datasets.load_dataset(dataset, configuration, split=split, streaming=True)
    except Exception as problem:  # the loader raises many unrelated types: no such dataset, no network, no split
        said = f"{type(problem).__name__}: {next(iter(str(problem).splitlines()), '')}"
        raise MissingResource(f"documents: could not open {documents.source} ({said})") from problem
    for number, row in enumerate(rows):
        text = field_of(row, field)
        if not isinstance(text, Skip) and len(text) > documents.max_bytes:
            text = Skip(f"over {documents.max_bytes} bytes")
        if isinstance(text, Skip):
            skipped[text.reason] += 1
        else:
            yield Document(text, f"{dataset}:{number}", f"{documents.source}:{number}")


def _parse_hub(source: str, field: str) -> tuple[str, str | None, str, str]:
    parts = source.removeprefix(HUB).split(":")
    if len(parts) > 3 or not all(parts):
        raise invalid("documents", "must be hf:dataset:split:field", source, "e.g. hf:user/name:train:text")
    dataset, split, field = (*parts, *("", "train", field)[len(parts) :])
    dataset, _, configuration = dataset.partition("@")
    return dataset, configuration or None, split, field


Reader = Callable[[Documents, Path, str, Counter[str]], Iterator[Document]]
READERS: dict[str, Reader] = {
    ".txt": _text_file,
    ".md": _text_file,
    ".jsonl": _json_lines,
    ".jsonl.gz": _json_lines,
}


def _suffix(path: Path) -> str:
    """The part of the name that chooses the reader, in lower case; two suffixes where the last one is .gz."""
    return "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]).lower()


def _reader(path: Path) -> Reader:
    suffix = _suffix(path)
    if suffix not in READERS:
        raise invalid("documents", f"must be a folder or a file of the kind {', '.join(READERS)}", path.name)
    return READERS[suffix]
