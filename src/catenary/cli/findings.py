"""What verbs with a page of one finding share: the folder it goes to, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from catenary.cli.terminal import print_json

if TYPE_CHECKING:
    from catenary.page.exhibit import Exhibit


def finding_folder(
    model: str, name: str, words: str, out: Path | None, record: Mapping[str, Any], *, overwrite: bool
) -> Path:
    """The folder for the finding ``name`` of a model, made; refused where it holds one of other parameters."""
    from catenary.cli.profile import folder_name
    from catenary.errors import invalid
    from catenary.store import make_folder, read_record

    folder = out or Path("out") / f"{folder_name(model)}-{name}"
    stored = folder / f"{name}.json"
    if stored.exists() and not overwrite and read_record(stored).get("parameters") != record:
        raise invalid("out", f"must not hold {words}", str(folder), "choose another, or give --overwrite")
    make_folder(folder)
    return folder


def show_finding(exhibit: Exhibit, folder: Path, *, json: bool) -> None:
    """Write the page into the folder, and print the finding as text with the page's path, or as JSON."""
    from catenary.page.exhibit import write_exhibit

    page = write_exhibit(exhibit, folder)
    if json:
        print_json(exhibit.record())
        return
    typer.echo(exhibit.text())
    typer.echo(f"page: {page}")
