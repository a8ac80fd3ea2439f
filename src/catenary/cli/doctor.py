"""`catenary doctor`: what this machine can do, and what one MODEL is, before anything is measured."""

from __future__ import annotations

from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.terminal import print_json

_MARKS = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


@app.command(
    epilog="""Examples:

- `catenary doctor`
- `catenary doctor ./my-model`
- `catenary doctor qwen2-0.5b --json`
"""
)
def doctor(
    model: Annotated[str | None, typer.Argument(help="Hub id, model folder, config.json or preset.")] = None,
    length: options.LENGTH = 512,
    tokenizer: options.TOKENIZER = None,
    revision: options.REVISION = None,
    trust_remote_code: options.REMOTE_CODE = False,
    attention: options.ATTENTION = "sdpa",
    json: options.JSON = False,
) -> None:
    """Check the environment and, with MODEL, its config, weights, tokenizer, BOS, attention and windows."""
    given = dict(locals())
    from catenary.study.checkup import check_environment, check_model, worst
    from catenary.study.config import study_config

    findings = list(check_environment())
    if model is not None:
        findings += check_model(study_config(options.settings(given)))
    if json:
        print_json({"findings": [vars(finding) for finding in findings], "worst": worst(findings)})
    else:
        width = max(len(finding.topic) for finding in findings)
        for finding in findings:
            typer.echo(f"{_MARKS[finding.status]}  {finding.topic:<{width}}  {finding.text}")
    if worst(findings) == "problem":
        raise typer.Exit(2)
