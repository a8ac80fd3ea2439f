"""`catenary report`: write the page of a stored run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.terminal import print_json


@app.command(
    epilog="""Examples:

- `catenary report out/qwen`
- `catenary report out/qwen --title "Our 7B, before training"`
"""
)
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN_DIRECTORY", help="A finished run.")],
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the page; default: the run's own.")] = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
) -> None:
    """Write the page and the figures (SVG, PNG, PDF) of a stored run."""
    from catenary.store import read_run
    from catenary.study.existing import check_folder
    from catenary.study.report import report_run

    stored = read_run(run)
    if out is not None:
        check_folder(out, (), {}, overwrite=overwrite, beside=stored.folder)
    page = report_run(stored, title=title, out=out)
    if json:
        print_json({"report": str(page)})
        return
    typer.echo(f"report: {page}")
