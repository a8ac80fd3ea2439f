"""Where the demo model and documents lie: a setting that begins with ``demo/`` is a path inside that folder."""

from __future__ import annotations

import os
from pathlib import Path

from catenary.errors import MissingResource

PREFIX = "demo/"


def demo_path(name: str) -> str:
    """The path behind ``demo/...``, inside CATENARY_DEMO or .cache/demo; any other name as it stands.

    Raises:
        MissingResource: it is not there, with the command that fetches it.
    """
    if not name.startswith(PREFIX):
        return name
    folder = Path(os.environ.get("CATENARY_DEMO") or Path(".cache") / "demo")
    path = folder / name.removeprefix(PREFIX)
    if not path.exists():
        raise MissingResource(
            f"the demo model and documents were looked for in {path}; run `make fetch`, or set CATENARY_DEMO to the "
            "folder that holds them"
        )
    return str(path)
