"""What verbs with a page of one finding share: the folder it goes to, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from catenary.cli.terminal import print_json

if TYPE_CHECKING:
    from catenary.page.exhibit import Exhibit


def default_folder(model: str, name: str) -> Path:
    """Where the finding ``name`` of a model goes unless told otherwise."""
    from catenary.cli.profile import folder_name

    return Path("out") / f"{folder_name(model)}-{name}"


def finding_folder(
    folder: Path, name: str, record: Mapping[str, Any], *, overwrite: bool, beside: Path | None = None
) -> Path:
    """The folder for the finding ``name``, made; refused where it holds another result, see ``check_folder``."""
    from catenary.store import make_folder
    from catenary.study.existing import check_folder

    check_folder(folder, (f"{name}.json",), record, overwrite=overwrite, beside=beside)
    make_folder(folder)
    return folder


def show_finding(exhibit: Exhibit, folder: Path | None, *, json: bool) -> None:
    """Write the page into the folder, if there is one, and print the finding as text or JSON, with the page's path."""
    page = None
    if folder is not None:
        from catenary.page.exhibit import write_exhibit

        page = write_exhibit(exhibit, folder)
    if json:
        print_json(exhibit.record() | {"page": None if page is None else str(page)})
        return
    typer.echo(exhibit.text())
    if page is not None:
        typer.echo(f"page: {page}")
