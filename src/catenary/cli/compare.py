"""`catenary compare`: two stored curves, or every pair of one run that is worth comparing."""

from __future__ import annotations

from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.terminal import print_json


@app.command(
    epilog="""Examples:

- `catenary compare out/qwen` compares every prediction with its measurement in that run
- `catenary compare out/qwen:predicted-random out/qwen:untrained-random/random`
- `catenary compare out/a:trained/vanilla out/b:trained/vanilla --json`
"""
)
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="RUN_DIRECTORY or RUN_DIRECTORY:CURVE.")],
    b: Annotated[str | None, typer.Argument(metavar="[B]", help="RUN_DIRECTORY:CURVE.")] = None,
    json: options.JSON = False,
) -> None:
    """Compare curves of the same quantity, with the measurement's noise floor beside every figure."""
    import catenary
    from catenary.study.stored import stored_pairs

    made = [(left, right, catenary.compare(x, y)) for left, x, right, y in stored_pairs(a, b)]
    if json:
        print_json({"comparisons": [{**c.to_dict(), "a": left, "b": right} for left, right, c in made]})
        return
    typer.echo("\n\n".join(comparison.table() for _, _, comparison in made))
