"""`catenary atlas`: the birth profiles of public models on one page. Needs no weights and no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.terminal import observing, print_json


@app.command(
    epilog="""Examples:

- `catenary atlas --out out/atlas` surveys every shipped preset and writes the page
- `catenary atlas gpt2 qwen2-0.5b llama-3-8b --length 8192`
- `catenary atlas --no-knobs --json`
"""
)
def atlas(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="Presets, hub ids or paths. Default: every preset.")
    ] = None,
    length: options.LENGTH = 2048,
    knobs: Annotated[
        bool, typer.Option("--knobs/--no-knobs", help="Find the field that moves each index most (slower).")
    ] = True,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Predict the birth profiles of many models and set them side by side."""
    from catenary.explore.atlas import public_presets, survey
    from catenary.study.existing import check_folder

    names = list(models) if models else public_presets()
    asked = {"models": names, "length": length, "knobs": knobs}
    if out is not None:
        check_folder(out, ["atlas.json"], asked, overwrite=overwrite)
    with observing(quiet) as observer:
        observer.begin("models", len(names))
        found = survey(names, length=length, knobs=knobs, progress=lambda *_: observer.advance(1))
        observer.end()
    page: Path | None = None
    if out is not None:
        from catenary.page.atlas import write_atlas

        page = write_atlas(found, out, config=asked)
    if json:
        print_json({"length": found.length, "rows": found.records(), "page": str(page) if page else None})
        return
    typer.echo(found.table())
    if page is not None:
        typer.echo(f"page: {page}")
