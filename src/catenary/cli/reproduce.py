"""`catenary reproduce`: rerun a paper's experiments and say of each claim whether it replicates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.terminal import observing, print_json


@app.command(
    epilog="""Examples:

- `catenary reproduce 2603.10123 --list`
- `catenary reproduce 2603.10123 --claim discrete-formula`
- `catenary reproduce 2603.10123 --figure 2 --out out/reproduce`
- `catenary reproduce --jobs 2`
"""
)
def reproduce(
    papers: Annotated[
        list[str] | None, typer.Argument(metavar="PAPER", help="2603.10123, 2605.09213, 2602.16837; default all.")
    ] = None,
    experiment: Annotated[
        list[str] | None, typer.Option("--experiment", help="Run this one only; may be given again.")
    ] = None,
    figure: Annotated[str, typer.Option("--figure", help="Run what the paper's figure rests on.")] = "",
    claim: Annotated[str, typer.Option("--claim", help="Run what decides this claim.")] = "",
    full: Annotated[bool, typer.Option("--full", help="At full size; --list shows what it costs.")] = False,
    check: Annotated[
        Path | None, typer.Option("--check", help="Committed results the rerun must agree with, else exit 2.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Experiments that run at once, one thread each.")] = 1,
    listing: Annotated[bool, typer.Option("--list", help="Show experiments, claims and costs; run nothing.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the results.")] = Path("out/reproduce"),
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Rerun papers' experiments, and say claim by claim whether it replicates, differs and why, or is not testable.

    What is finished in --out at the same settings is kept, so a run that was killed goes on where it stopped.
    """
    from catenary.errors import InvalidInput, invalid
    from catenary.reproduce.experiment import PAPERS, read_experiments
    from catenary.reproduce.ledger import explained, rows_of
    from catenary.reproduce.result import disagreements, read_result, result_file
    from catenary.reproduce.run import chosen, run_experiments

    known = [entry for paper in dict.fromkeys(papers or PAPERS) for entry in read_experiments(paper).values()]
    wanted = chosen(known, names=experiment or (), figure=figure, claim=claim)
    about = dict.fromkeys(entry.paper for entry in wanted)
    if listing:
        for entry in wanted:
            price = f"{entry.cost or 'nothing to run'}" + (f"; full size: {entry.full['cost']}" if entry.full else "")
            typer.echo(f"{entry.name}: {entry.title} ({price})")
            for tested in entry.claims:
                typer.echo(f"  {tested.id}: {tested.claim} [{tested.where}]")
        return
    if check is not None:
        missing = [entry.name for entry in wanted if entry.study and not result_file(check, entry).is_file()]
        if missing:
            raise invalid("--check", "must be a folder that holds what is rerun, docs/ledger in a checkout",
                          f"{check}, without {', '.join(missing)}")  # fmt: skip
    with observing(quiet) as observer:
        run_experiments(wanted, out, full=full, observer=observer, jobs=jobs)
    rows = [
        row for paper in about
        for row in rows_of({entry.name: entry for entry in wanted if entry.paper == paper}, out)
        if claim in ("", row.claim.id)
    ]  # fmt: skip
    if json:
        print_json({
            row.claim.id: {"where": row.claim.where, "claim": row.claim.claim, "verdict": row.verdict,
                           "reading": None if row.reading is None else row.reading.to_dict()}
            for row in rows
        })  # fmt: skip
    else:
        for row in rows:
            shown = "" if row.reading is None else f" ({row.reading.text})"
            typer.echo(f"{row.claim.id}: {row.verdict}{shown}")
            if claim:
                typer.echo(explained(row))
        for paper in about:
            typer.echo(f"results: {out / paper}")
    if check is not None:
        said = [
            difference for entry in wanted if entry.study
            for difference in disagreements(
                entry, read_result(result_file(check, entry)), read_result(result_file(out, entry))
            )
        ]  # fmt: skip
        if said:
            raise InvalidInput(f"the rerun disagrees with {check}: " + "; ".join(said))
        typer.echo(f"agrees with {check} within the stated uncertainties", err=json)
