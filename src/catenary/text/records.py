"""Records: bytes to text, lines of any length, and the text in a JSON record; what gives none says why."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO


@dataclass(frozen=True)
class Skip:
    """Why a record gives no document."""

    reason: str


def bounded_lines(file: IO[bytes] | gzip.GzipFile, limit: int) -> Iterator[tuple[int, bytes | Skip]]:
    """Lines numbered from 1, never holding more than ``limit`` bytes of one."""
    number = 0
    while raw := file.readline(limit + 1):
        number += 1
        if len(raw) <= limit or raw.endswith(b"\n"):
            yield number, raw
            continue
        while (rest := file.readline(limit + 1)) and not rest.endswith(b"\n"):
            pass
        yield number, Skip(f"line over {limit} bytes")


def text_of(raw: bytes, field: str) -> str | Skip:
    """The text in one line of JSON."""
    line = decode(raw)
    if line is None:
        return Skip("not UTF-8")
    if not line.strip():
        return Skip("blank line")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return Skip("line is not JSON")
    return field_of(record, field)


def field_of(record: object, field: str) -> str | Skip:
    """The text in ``field`` of a record."""
    if not isinstance(record, dict) or field not in record:
        return Skip(f"no field {field!a}")
    text = record[field]
    if not isinstance(text, str):
        return Skip(f"field {field!a} is not a text")
    if not text.strip():
        return Skip("empty")
    return text if is_unicode(text) else Skip("not UTF-8")  # JSON can spell half of a surrogate pair


def decode(raw: bytes) -> str | None:
    """UTF-8 with or without a byte-order mark, or None."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def is_unicode(text: str) -> bool:
    """Whether every code point of ``text`` is a character (no half of a surrogate pair)."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
