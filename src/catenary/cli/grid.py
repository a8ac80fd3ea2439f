"""`catenary measure --grid`: models, lengths and seeds in every combination, over processes or a cluster."""

from __future__ import annotations

from pathlib import Path

import typer

from catenary.cli.terminal import observing, print_json


def measure_grid_file(
    file: Path,
    *,
    out: Path | None,
    jobs: int | None,
    cluster: str | None,
    budget: float | None,
    overwrite: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Measure the grid in ``file`` and print its table."""
    from catenary.reading import align
    from catenary.study.grid import read_grid
    from catenary.study.grid_run import measure_grid, processes
    from catenary.study.report import report_run
    from catenary.study.summary import SHAPE_COLUMNS
    from catenary.study.workers import Workers

    folder = out or Path("out") / file.stem
    with observing(quiet) as observer:
        run = measure_grid(
            read_grid(file), folder, workers=Workers(jobs or processes(), cluster), budget_minutes=budget,
            overwrite=overwrite, observer=observer,
        )  # fmt: skip
        page = report_run(run)
    if json:
        print_json({**run.result, "report": str(page)})
        return
    shown = ("curve", "shape", "peak/trough", "last/mid")
    typer.echo(align([SHAPE_COLUMNS, *(tuple(str(row[key]) for key in shown) for row in run.result["table"])]))
    for entry in run.result["skipped"]:
        typer.echo(f"skipped {entry['name']}: {entry['reason']}")
    typer.echo(f"run: {run.folder}")
    typer.echo(f"report: {page}")
