"""`catenary boundaries`: what the joins of a run's chunked windows do to its profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.findings import finding_folder, show_finding


@app.command(
    epilog="""Examples:

- `catenary measure ./my-model --weights pretrained --tokens chunked,vanilla,shuffled,uniform --windows 48 --out out/m`,
  then `catenary boundaries out/m`
- `catenary boundaries out/qwen --chunk 64 --out out/qwen-joins`
"""
)
def boundaries(
    run: Annotated[Path, typer.Argument(metavar="RUN_DIRECTORY", help="A finished run with chunked windows.")],
    chunk: Annotated[
        int | None, typer.Option("--chunk", min=4, help="Tokens per chunk; default: as the run's windows have it.")
    ] = None,
    seed: options.SEED = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder of the page; default: the run's own.")] = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
) -> None:
    """Whether the first token after a join stands out of its neighbours, and the curve inside chunks."""
    from catenary.page.boundaries import boundary_exhibit
    from catenary.store import read_run
    from catenary.study.joins import join_effects

    stored = read_run(run)
    parameters = {"config": stored.result.get("config", {}), "chunk": chunk, "seed": seed}
    folder = finding_folder(out or stored.folder, "boundaries", parameters, overwrite=overwrite, beside=stored.folder)
    found = join_effects(stored, chunk, seed=seed)
    show_finding(boundary_exhibit(found, parameters), folder, json=json)
