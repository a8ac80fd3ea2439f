"""One JSON object from a file that may be anything: size, encoding, nesting and duplicate keys are checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from catenary.configs.received import Words, received
from catenary.errors import InvalidInput, MissingResource, invalid

SIZE_LIMIT = 16 * 1024 * 1024
"""Bytes. The largest published configs (with quantisation tables per layer) are below 1 MB."""


def read_object(path: Path, *, limit: int = SIZE_LIMIT) -> dict[str, Any]:
    """The JSON object in the file ``path``.

    The size is checked before a byte is read, and at most ``limit`` + 1 bytes are read whatever the file system
    says. ``NaN`` and ``Infinity`` are accepted, as published configs hold them; the typed access of ``Fields``
    refuses them where a number is used.

    Raises:
        MissingResource: no such file, or it cannot be read.
        InvalidInput: not a regular file, too large, not UTF-8, not JSON, nested too deeply, a key given twice, or
            not an object.
    """
    too_large = invalid("file", f"must be at most {limit} bytes", Words("more"), "it is no config.json")
    try:
        if path.exists() and not path.is_file():
            raise invalid("file", "must be a regular file", Words("another kind"), "pass a config.json or its folder")
        if path.stat().st_size > limit:
            raise too_large
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise MissingResource(f"file cannot be read: {error.strerror or error}") from None
    if len(data) > limit:
        raise too_large
    return parse_object(data)


def parse_object(data: bytes) -> dict[str, Any]:
    """The JSON object in ``data``; the errors are those of ``read_object``."""
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_without_duplicates)
    except InvalidInput:
        raise
    except UnicodeDecodeError as error:
        raise invalid("file", "must be UTF-8 text", Words(f"byte {data[error.start]:#04x} at {error.start}")) from None
    except json.JSONDecodeError as error:
        where = Words(f"{error.msg} at line {error.lineno}, column {error.colno}")
        raise invalid("file", "must be JSON", where, "pass a model's config.json") from None
    except RecursionError:
        raise invalid("file", "must not be nested hundreds of levels deep", Words("deeper nesting")) from None
    except ValueError:
        # The interpreter refuses to convert integers of more than some thousand digits.
        raise invalid("file", "must hold numbers of ordinary size", Words("one of thousands of digits")) from None
    if not isinstance(value, dict):
        raise invalid("file", "must hold a JSON object", received(value), "pass a model's config.json")
    return value


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise invalid("file", "must give every key once", received(key), "remove all but one of them")
    return entries
