"""Write the generated docs: the command line's help and the ledger. ``--check`` fails when one is not current."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VERBS = (
    ("profile",), ("predict",), ("atlas",), ("measure",), ("compare",), ("report",), ("doctor",),
    ("strengths",), ("pathways",), ("rollout",), ("boundaries",), ("evolve",), ("learn",), ("order",), ("retrieve",),
    ("reproduce",), ("kinetic",),
    *(("kinetic", verb) for verb in ("profile", "phase", "simulate", "correlate", "bridge")),
)  # fmt: skip
DOCS = Path(__file__).parent.parent / "docs"


def help_of(*verb: str) -> str:
    from typer.testing import CliRunner

    from catenary.cli.main import app

    shown = CliRunner().invoke(app, [*verb, "--help"], prog_name="catenary", catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    return "\n".join(line.rstrip() for line in shown.stdout.strip().splitlines())


def command_line() -> str:
    parts = ["# Command line\n\nGenerated from the program's own help.\n", f"```text\n{help_of()}\n```\n"]
    parts += [f"## catenary {' '.join(verb)}\n\n```text\n{help_of(*verb)}\n```\n" for verb in VERBS]
    return "\n".join(parts)


def ledger() -> str:
    from catenary.reproduce.experiment import PAPERS, read_experiments
    from catenary.reproduce.ledger import page, rows_of

    return page({paper: rows_of(read_experiments(paper), DOCS / "ledger") for paper in PAPERS})


def main() -> None:
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "_TYPER_FORCE_DISABLE_TERMINAL": "1"}
    pages = {"cli.md": command_line, "claims.md": ledger}
    for name, make in pages.items():
        target, text = DOCS / name, make()
        if "--check" not in sys.argv[1:]:
            target.write_text(text, encoding="utf-8")
        elif target.read_text(encoding="utf-8") != text:
            sys.exit(f"docs/{name} is not current: run scripts/generate_docs.py and commit it")


if __name__ == "__main__":
    main()
