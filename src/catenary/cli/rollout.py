"""`catenary rollout`: the rollout of a network's own attention, against its Jacobian profile."""

from __future__ import annotations

from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.findings import default_folder, finding_folder, show_finding
from catenary.cli.terminal import observing


@app.command(
    epilog="""Examples:

- `catenary rollout gpt2 --length 128` (an untrained network, random vectors)
- `catenary rollout ./my-model --weights pretrained --tokens vanilla --documents ./texts --windows 12`
- `catenary rollout ./my-model --schedule power:0.5:1`
- `catenary rollout ./my-model --schedule 1` (attention alone)
"""
)
def rollout(
    model: options.MODEL,
    weights: Annotated[str, typer.Option("--weights", help="untrained or pretrained.")] = "untrained",
    tokens: Annotated[
        str, typer.Option("--tokens", help="random, zipf (untrained only), vanilla, chunked, shuffled or uniform.")
    ] = "random",
    schedule: Annotated[
        str,
        typer.Option(
            "--schedule",
            help="Strength of attention per layer: measured, a number, constant:X, power:FIRST:EXPONENT, a list, "
            "or a strengths.json.",
        ),
    ] = "measured",
    monotonicity: Annotated[
        bool, typer.Option("--monotonicity", help="Count violations of monotonicity (at most 256 tokens).")
    ] = False,
    length: options.LENGTH = 256,
    seed: options.SEED = 0,
    windows: Annotated[int, typer.Option("--windows", min=1, help="Windows measured.")] = 8,
    probes: Annotated[int, typer.Option("--probes", min=1, help="Gaussian cotangents per window.")] = 1,
    documents: options.DOCUMENTS = None,
    chunk: options.CHUNK = None,
    bos: options.BOS = "tokenizer",
    init_std: options.INIT_STD = None,
    rope: options.ROPE = True,
    device: options.DEVICE = "cpu",
    dtype: options.DTYPE = "float32",
    attention: options.ATTENTION = "sdpa",
    threads: options.THREADS = None,
    tokenizer: options.TOKENIZER = None,
    revision: options.REVISION = None,
    trust_remote_code: options.REMOTE_CODE = False,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Roll out a network's own attention to one curve over positions, and hold it against the Jacobian profile.

    Writes a page with both curves and a map of sinks and diagonals per layer and head, a table and its data.
    """
    given = dict(locals())
    from catenary.cli.numbers import read_numbers
    from catenary.page.rollout import rollout_exhibit
    from catenary.study.config import study_config
    from catenary.study.deciding import deciding
    from catenary.study.rollout import study_rollout
    from catenary.theory.rollout.schedules import read_schedule

    chosen = None if schedule == "measured" else read_schedule(read_numbers("schedule", schedule))
    config = study_config({**options.settings(given), "windows": 1, "probes": 1})
    asked = {"weights": weights, "tokens": tokens, "windows": windows, "probes": probes, "schedule": schedule,
             "monotonicity": monotonicity}
    record = {**deciding(config, [weights], [tokens], "rope"), **asked}
    folder = finding_folder(out or default_folder(model, "rollout"), "rollout", record, overwrite=overwrite)
    options.use_threads(threads)
    with observing(quiet) as observer:
        found = study_rollout(
            config, observer, weights=weights, tokens=tokens, windows=windows, probes=probes, schedule=chosen,
            monotonicity=monotonicity, folder=folder,
        )
    exhibit = rollout_exhibit(found, record)
    show_finding(exhibit, folder, json=json)
