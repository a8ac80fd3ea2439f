"""`catenary doctor`: what this machine can do, what one MODEL is, and with --full what holds of its network."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.terminal import observing, print_json
from catenary.cli.whole import whole_from

_MARKS = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}
LENGTH, LENGTH_OF_CONTROLS = 512, 128


@app.command(
    epilog="""Examples:

- `catenary doctor`
- `catenary doctor ./my-model`
- `catenary doctor qwen2-0.5b --json`
- `catenary doctor ./my-model --full --documents ./texts`
"""
)
def doctor(
    context: typer.Context,
    model: Annotated[str | None, typer.Argument(help="Hub id, model folder, config.json or preset.")] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Run controls on the network: BOS, padding, windows, RoPE, dtype, seeds, ..."),
    ] = False,
    untrained: Annotated[
        bool, typer.Option("--untrained", help="With --full: a freshly initialised network, though there are weights.")
    ] = False,
    length: Annotated[
        int | None,
        typer.Option(
            "--length", "-L", parser=whole_from(16), metavar="<int>",
            help="Context length in tokens, 16 or more: 512, with --full 128.",
        ),
    ] = None,
    windows: Annotated[int, typer.Option("--windows", min=2, help="With --full: windows that are read.")] = 4,
    probes: Annotated[int, typer.Option("--probes", min=1, help="With --full: cotangents per window.")] = 1,
    seed: options.SEED = 0,
    documents: options.DOCUMENTS = None,
    bos: options.BOS = "tokenizer",
    init_std: options.INIT_STD = None,
    device: options.DEVICE = "cpu",
    dtype: options.DTYPE = "float32",
    attention: options.ATTENTION = "sdpa",
    threads: options.THREADS = None,
    tokenizer: options.TOKENIZER = None,
    revision: options.REVISION = None,
    trust_remote_code: options.REMOTE_CODE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Check the environment and, with MODEL, its config, weights, tokenizer, BOS, attention and windows.

    With --full the network is run, with its weights where there are some, and every claim that measuring rests on
    is checked. A claim that does not hold is something to know about the model, and no error.
    """
    given = dict(locals())
    from catenary.study.checkup import check_environment, check_model, worst
    from catenary.study.config import study_config

    if full and model is None:
        raise typer.BadParameter("--full needs a MODEL to run")
    findings = list(check_environment())
    chosen = length or (LENGTH_OF_CONTROLS if full else LENGTH)
    config = None
    if model is not None:
        config = study_config({**options.settings(given), "length": chosen, "windows": windows, "probes": probes})
        findings += check_model(config)
    result: dict[str, Any] = {"findings": [vars(finding) for finding in findings], "worst": worst(findings)}
    if not json:
        width = max(len(finding.topic) for finding in findings)
        for finding in findings:
            typer.echo(f"{_MARKS[finding.status]}  {finding.topic:<{width}}  {finding.text}")
    problem = worst(findings) == "problem"
    if full and config is not None and not problem:
        from catenary.study.controls import control_model, shown

        options.use_threads(threads)
        with observing(quiet) as observer:
            done = control_model(config, windows, probes, observer, untrained=untrained, debug=bool(context.obj))
        result["controls"] = done.to_dict()
        if not json:
            typer.echo(f"\nControls on {done.network},\n{done.windows}\n\n{shown(done.checks)}\n\n{done.counts()}")
    if json:
        print_json(result)
    if problem:
        if full:
            typer.echo("controls were not run: solve the problem first", err=True)
        raise typer.Exit(2)
