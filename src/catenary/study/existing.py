"""One rule for a folder that is not empty: the very same result may be written again, nothing else unasked.

A finished result is a JSON file that says with which versions it was made. Beside it lie its figures, tables and units,
which are not looked at, and files of other programs, which are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput
from catenary.provenance import canonical_json, versions
from catenary.store import Run, read_record, read_run

RUN = "result.json"

READ_OFF = ("boundaries.json", "evolve.json")
"""Results that are read off a run and may lie beside it."""


def check_folder(
    folder: Path, names: Sequence[str], config: Mapping[str, Any], *, overwrite: bool, beside: Path | None = None
) -> bool:
    """Whether ``folder`` holds the results ``names`` of this config and these versions already, all of them.

    Args:
        folder: where the results shall go; it need not be there.
        names: the files that say a result is finished, each JSON with its config and versions.
        config: everything that decides the numbers, as JSON values.
        overwrite: allow a result of another config, other versions or another command to be replaced or joined.
        beside: the folder of the run that the results are read off, which they may share.

    Raises:
        InvalidInput: the folder holds a finished result of another command, or one of ``names`` of another config or
            other versions, and ``overwrite`` is False; the message says which, and what differs.
    """
    shared = set(READ_OFF) if RUN in names and (folder / RUN).exists() else set()
    if beside is not None and folder.resolve() == beside.resolve():
        shared.add(RUN)
    other = [] if overwrite else sorted(set(_finished(folder)) - set(names) - shared)
    if other:
        raise InvalidInput(
            f"out holds a finished result of another command ({', '.join(other)}): {folder}; choose another --out, or "
            "give --overwrite"
        )
    there = [name for name in names if (folder / name).exists()]
    same = [name for name in there if _is_same(folder, name, config, overwrite)]
    return len(same) == len(names)


def existing_run(folder: Path, config: Mapping[str, Any], *, overwrite: bool) -> Run | None:
    """The finished run of this very config and these versions in ``folder``, or None where one may be written.

    Raises:
        InvalidInput: as ``check_folder``.
    """
    return read_run(folder) if check_folder(folder, (RUN,), config, overwrite=overwrite) else None


def _is_same(folder: Path, name: str, config: Mapping[str, Any], overwrite: bool) -> bool:
    record = read_record(folder / name)
    stored = record.get("config", record.get("parameters", {}))
    asked = json.loads(canonical_json(config))
    if stored == asked and record.get("versions") == versions():
        return True
    if overwrite:
        return False
    kind = "run" if name == RUN else name
    changed = sorted(key for key in {*asked, *stored} if stored.get(key, _NOTHING) != asked.get(key, _NOTHING))
    what = f"another config (different: {', '.join(changed)})" if changed else "other package versions"
    raise InvalidInput(f"out holds a finished {kind} of {what}: {folder}; choose another --out, or give --overwrite")


_NOTHING = object()
"""What stands for a field that is not there, which differs from one that is null."""


def _finished(folder: Path) -> list[str]:
    """Names of the JSON files in a folder that are results: they say with which versions they were made."""
    found = []
    for path in folder.glob("*.json"):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(record, dict) and isinstance(record.get("versions"), dict):
            found.append(path.name)
    return found
