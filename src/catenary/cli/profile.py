"""`catenary profile`: the main job, from a model's name to a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.terminal import observing, print_json


@app.command(
    epilog="""Examples:

- `catenary profile HuggingFaceTB/SmolLM2-135M`
- `catenary profile ./my-model --documents ./texts --length 1024 --device cuda --dtype bfloat16`
- `catenary profile ./config.json` (no weights: prediction and untrained networks)
- `catenary profile --rerun out/my-model/result.json --out out/again`
"""
)
def profile(
    model: Annotated[str | None, typer.Argument(help="Hub id, model folder, config.json or preset.")] = None,
    length: options.LENGTH = 512,
    seed: options.SEED = 0,
    out: options.OUT = None,
    documents: options.DOCUMENTS = None,
    conditions: Annotated[
        str, typer.Option("--conditions", help="Comma-separated: vanilla, chunked, shuffled, uniform; zipf (untrained)")
    ] = "vanilla,chunked",
    windows: Annotated[int, typer.Option("--windows", min=1, help="Document windows per condition.")] = 24,
    nets: Annotated[int, typer.Option("--nets", min=1, help="Untrained networks that share the windows.")] = 8,
    probes: Annotated[int, typer.Option("--probes", min=1, help="Probes per window of untrained networks.")] = 2,
    trained_probes: Annotated[int, typer.Option("--trained-probes", min=1, help="Probes per window, trained.")] = 1,
    check_nets: Annotated[int, typer.Option("--check-nets", min=1, help="Networks fed random vectors.")] = 4,
    check_sequences: Annotated[int, typer.Option("--check-sequences", min=1, help="Random sequences per network.")] = 2,
    chunk: options.CHUNK = None,
    bos: options.BOS = "tokenizer",
    init_std: options.INIT_STD = None,
    rope: options.ROPE = True,
    device: options.DEVICE = "cpu",
    dtype: options.DTYPE = "float32",
    attention: options.ATTENTION = "sdpa",
    batch_size: options.BATCH = 1,
    threads: options.THREADS = None,
    budget: options.BUDGET = 10.0,
    tokenizer: options.TOKENIZER = None,
    revision: options.REVISION = None,
    trust_remote_code: options.REMOTE_CODE = False,
    rerun: Annotated[Path | None, typer.Option("--rerun", help="Repeat the run stored in this result.json.")] = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Predict, measure untrained and trained, compare, and write one page about MODEL."""
    given = dict(locals())
    from catenary.study.config import stored_config, study_config
    from catenary.study.run import profile_model

    config = stored_config(rerun) if rerun is not None else study_config(options.settings(given))
    options.use_threads(threads)
    folder = out or Path("out") / folder_name(config.model)
    with observing(quiet) as observer:
        study = profile_model(config, folder, budget_minutes=budget, overwrite=overwrite, observer=observer)
    if json:
        print_json({**study.run.result, "report": str(study.report), "reused": study.reused})
        return
    from catenary.study.summary import summary

    typer.echo(summary(study.run))
    typer.echo(f"report: {study.report}")


def folder_name(model: str) -> str:
    """A directory name for a MODEL argument."""
    tail = model.removeprefix("preset:").removeprefix("hub:").rstrip("/").removesuffix("/config.json").split("/")[-1]
    return "".join(c if c.isalnum() or c in "-._" else "-" for c in tail).strip(".") or "model"
