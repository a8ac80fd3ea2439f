"""`catenary order`: in what order to put documents, from a measured curve. Needs no model and no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.findings import default_folder, finding_folder, show_finding


@app.command(
    epilog="""Examples:

- `catenary order out/my-model-retrieve/outcomes.json --scores relevance.json`
- `echo '{"a.txt": 0.9, "b.txt": 0.4, "c.txt": 0.7}' | catenary order outcomes.json --scores -`
- `catenary order published.json --documents 20` with `{"slots": [0, 9, 19], "means": [0.76, 0.54, 0.63], "n": 2655}`
"""
)
def order(
    curve: Annotated[
        Path, typer.Argument(metavar="CURVE", help="Outcomes of `catenary retrieve`, or means by slot, as JSON.")
    ],
    scores: Annotated[
        str | None,
        typer.Option("--scores", help="Relevance: a JSON list, or an object {document: score}; - for standard input."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="logp, exact, contains or best_subspan. Default: logp, else best_subspan."),
    ] = None,
    documents: Annotated[
        int | None, typer.Option("--documents", min=1, help="Documents to place. Default: as scored, else as measured.")
    ] = None,
    separation: Annotated[
        float, typer.Option("--separation", min=0, help="Retriever's strength d' of the verdict; inf: perfect.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of halves and bootstrap.")] = 0,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
) -> None:
    """Assign documents to slots: the most relevant where a fact is used best, and so on down both.

    Gains are of samples that did not choose the order. The verdict says when a plain order is as good or nothing is
    to be gained.
    """
    from catenary.errors import invalid
    from catenary.page.order import order_exhibit
    from catenary.retrieval.order.advice import advise
    from catenary.retrieval.order.gain import separation_name
    from catenary.retrieval.order.scores import read_scores_file
    from catenary.retrieval.outcomes import Outcomes
    from catenary.retrieval.records import read_curve
    from catenary.retrieval.statistics import metrics_of

    measured = read_curve(curve)
    scored = None if scores is None else read_scores_file(scores)
    if metric is not None and not isinstance(measured, Outcomes):
        raise invalid("metric", "is of outcomes: a published curve has one score", metric, "leave it out")
    if metric is None and isinstance(measured, Outcomes):
        metric = next((name for name in ("logp", "best_subspan") if name in measured.values), metrics_of(measured)[0])
    advice = advise(measured, scored, metric=metric or "logp", documents=documents, separation=separation, seed=seed)
    record = {
        "curve": _digest(curve), "metric": advice.metric, "documents": advice.documents, "seed": seed,
        "scores": None if scored is None else dict(zip(scored.names, scored.relevance, strict=True)),
        "separation": separation_name(separation),
    }  # fmt: skip
    folder = finding_folder(out or default_folder(curve.stem, "order"), "order", record, overwrite=overwrite)
    show_finding(order_exhibit(advice, record), folder, json=json)


def _digest(path: Path) -> str:
    """First 16 hex digits of the file's SHA-256."""
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
