"""Write the generated part of the docs: the command line's help. ``--check`` fails when the file is not current."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

VERBS = (
    ("profile",), ("predict",), ("atlas",), ("measure",), ("compare",), ("report",), ("doctor",),
    ("strengths",), ("pathways",), ("rollout",), ("boundaries",), ("kinetic",),
    *(("kinetic", verb) for verb in ("profile", "phase", "simulate", "correlate", "bridge")),
)  # fmt: skip
TARGET = Path(__file__).parent.parent / "docs" / "cli.md"


def help_of(*verb: str) -> str:
    plain = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "_TYPER_FORCE_DISABLE_TERMINAL": "1"}
    environment = {**os.environ, **plain}
    command = [sys.executable, "-m", "catenary", *verb, "--help"]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return "\n".join(line.rstrip() for line in shown.strip().splitlines())


def main() -> None:
    parts = ["# Command line\n\nGenerated from the program's own help.\n", f"```text\n{help_of()}\n```\n"]
    parts += [f"## catenary {' '.join(verb)}\n\n```text\n{help_of(*verb)}\n```\n" for verb in VERBS]
    page = "\n".join(parts)
    if "--check" in sys.argv[1:]:
        if TARGET.read_text(encoding="utf-8") != page:
            sys.exit("docs/cli.md is not current: run scripts/generate_docs.py and commit it")
        return
    TARGET.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
