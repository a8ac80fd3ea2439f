"""Rows: the JSON objects of a .jsonl or .jsonl.gz file, each with the file and line it stands in."""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catenary.errors import InvalidInput, MissingResource
from catenary.text.records import decode, is_unicode


@dataclass(frozen=True)
class Row:
    """One JSON object; ``where`` is ``FILE, line N`` and ``name`` is ``FILE:N``, lines counted from 1."""

    value: Mapping[str, Any]
    where: str
    name: str

    def first(self, names: Sequence[str]) -> Any:
        """The value of the first of these fields that is there, None if none is."""
        return next((self.value[name] for name in names if name in self.value), None)

    def wrong(self, said: str) -> InvalidInput:
        """The error that says what is wrong with this row."""
        return InvalidInput(f"{self.where}: {said}")

    def text(self, names: Sequence[str]) -> str:
        """The first of these fields as a text that is not empty."""
        value = self.first(names)
        if value is None:
            there = ", ".join(name for name, held in self.value.items() if held is not None)
            raise self.wrong(f"has no field {' or '.join(names)}; it has {there or 'none'}")
        return self.one(value, names[0])

    def one(self, value: object, name: str) -> str:
        """``value`` as a text that is not empty."""
        if not isinstance(value, str) or not value.strip() or not is_unicode(value):
            raise self.wrong(f"{name} must be a text that is not empty, got {ascii(value)[:60]}")
        return value

    def texts(self, names: Sequence[str]) -> tuple[str, ...]:
        """The first of these fields as texts, without white space around them: one text or a list of them."""
        value = self.first(names)
        if value is None or value == []:
            raise self.wrong(f"has no {' or '.join(names)}")
        values = value if isinstance(value, list) else [value]
        return tuple(dict.fromkeys(self.one(each, names[0]).strip() for each in values))


def read_rows(path: Path) -> list[Row]:
    """All rows of a file; blank lines are passed over.

    Raises ``MissingResource`` if it cannot be read, ``InvalidInput`` with file and line for what is no JSON object.
    """
    rows = []
    if path.is_dir():
        raise InvalidInput(f"{path}: is a folder; name a .jsonl or .jsonl.gz file")
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                where = f"{path}, line {number}"
                text = decode(raw)
                if text is None:
                    raise InvalidInput(f"{where}: is not UTF-8")
                if not text.strip():
                    continue
                try:
                    value = json.loads(text)
                except (ValueError, RecursionError) as problem:
                    raise InvalidInput(f"{where}: is not JSON ({problem})") from problem
                if not isinstance(value, dict):
                    raise InvalidInput(f"{where}: must be a JSON object {{...}}, got {text.strip()[:40]!a}")
                rows.append(Row(value, where, f"{path.name}:{number}"))
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise InvalidInput(f"{path}: is damaged ({problem}); fetch it again") from problem
    except OSError as problem:
        raise MissingResource(f"cannot read {str(path)!a} ({problem.strerror or problem})") from problem
    if not rows:
        raise InvalidInput(f"{path}: holds no records")
    return rows


def find_files(names: str | Sequence[str]) -> list[Path]:
    """The files of a path, a pattern with ``*``, or a list of them; a folder stands for its .jsonl(.gz) files.

    Raises ``MissingResource`` for one that names no file.
    """
    found: dict[Path, None] = {}
    for name in [names] if isinstance(names, str) else names:
        path = Path(name)
        if path.is_dir():
            here = sorted(each for each in path.iterdir() if each.name.endswith((".jsonl", ".jsonl.gz")))
        elif path.exists():
            here = [path]
        else:
            here = [Path(each) for each in sorted(glob.glob(name))]
        if not here:
            raise MissingResource(f"no .jsonl or .jsonl.gz file {name!a} (looked in {str(Path.cwd())!a})")
        found.update(dict.fromkeys(here))
    return list(found)


def digest(paths: Iterable[Path]) -> str:
    """sha256 of the files, one after the other."""
    total = hashlib.sha256()
    for path in paths:
        total.update(path.read_bytes())
    return total.hexdigest()


def chosen(total: int, count: int, seed: int, what: str) -> list[int]:
    """Which of ``total`` rows are the samples: all in order for ``count`` 0, else the first of a seeded shuffle.

    Raises ``InvalidInput`` if there are fewer.
    """
    if count == 0:
        return list(range(total))
    if count > total:
        raise InvalidInput(f"count: {count} samples were asked for and {what} holds {total}; ask for at most {total}")
    return [int(at) for at in np.random.default_rng(seed).permutation(total)[:count]]
