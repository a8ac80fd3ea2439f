"""What to do with a directory that holds a finished run: reuse the very same one, never overwrite another unasked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput
from catenary.provenance import versions
from catenary.store import Run, read_record, read_run

RESULTS = ("result.json", "variation.json", "sensitivities.json", "atlas.json", "strengths.json")
"""Files whose presence says that a folder holds a finished result, by the verbs that share a report or a page."""


def existing_run(folder: Path, config: Mapping[str, Any], *, overwrite: bool) -> Run | None:
    """The finished run of this very config and these versions in ``folder``, or None where one may be written.

    Raises:
        InvalidInput: the folder holds another finished run, and ``overwrite`` is False; the message says what
            differs.
    """
    if not (folder / "result.json").exists():
        _refuse_other_kinds(folder, ("result.json",), overwrite)
        return None
    run = read_run(folder)
    stored = run.result.get("config", {})
    if stored == config and run.result.get("versions") == versions():
        return run
    if not overwrite:
        raise _other(folder, "run", stored, config)
    return None


def check_folder(folder: Path, names: Sequence[str], config: Mapping[str, Any], *, overwrite: bool) -> None:
    """Check that the results ``names``, each a JSON file with its config and versions, may be written into ``folder``.

    Raises:
        InvalidInput: the folder holds a finished result of another kind, or one of these of another config or
            other versions, and ``overwrite`` is False.
    """
    _refuse_other_kinds(folder, names, overwrite)
    for name in names:
        if overwrite or not (folder / name).exists():
            continue
        stored = read_record(folder / name)
        if stored.get("config") != config or stored.get("versions") != versions():
            raise _other(folder, name, stored.get("config", {}), config)


def _refuse_other_kinds(folder: Path, names: Sequence[str], overwrite: bool) -> None:
    found = [name for name in RESULTS if name not in names and (folder / name).exists()]
    if found and not overwrite:
        raise InvalidInput(
            f"out holds a finished result of another command ({', '.join(found)}): {folder}; choose another --out, or "
            "give --overwrite"
        )


def _other(folder: Path, kind: str, stored: Mapping[str, Any], config: Mapping[str, Any]) -> InvalidInput:
    changed = sorted(key for key in {*config, *stored} if stored.get(key) != config.get(key))
    what = f"another config (different: {', '.join(changed)})" if changed else "other package versions"
    return InvalidInput(f"out holds a finished {kind} of {what}: {folder}; choose another --out, or give --overwrite")
