"""What to do with a directory that holds a finished run: reuse the very same one, never overwrite another unasked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catenary.errors import InvalidInput
from catenary.provenance import versions
from catenary.store import Run, read_run


def existing_run(folder: Path, config: Mapping[str, Any], *, overwrite: bool) -> Run | None:
    """The finished run of this very config and these versions in ``folder``, or None where one may be written.

    Raises:
        InvalidInput: the folder holds another finished run, and ``overwrite`` is False; the message says what
            differs.
    """
    if not (folder / "result.json").exists():
        return None
    run = read_run(folder)
    stored = run.result.get("config", {})
    if stored == config and run.result.get("versions") == versions():
        return run
    if overwrite:
        return None
    changed = sorted(key for key in {*config, *stored} if stored.get(key) != config.get(key))
    what = f"another config (different: {', '.join(changed)})" if changed else "other package versions"
    raise InvalidInput(f"out holds a finished run of {what}: {folder}; choose another --out, or give --overwrite")
