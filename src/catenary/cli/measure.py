"""`catenary measure`: one measurement on one kind of input, stored as a run of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.terminal import observing, print_json


@app.command(
    epilog="""Examples:

- `catenary measure gpt2 --tokens random --nets 4` (untrained networks, random vectors)
- `catenary measure ./my-model --weights pretrained --tokens vanilla,chunked --documents ./texts`
- `catenary measure qwen2-0.5b --no-rope --probes 4`
- `catenary measure ./my-model --method exact --length 64` (all d cotangents)
- `catenary measure gpt2 --output logits --position 99 --length 128` (all logits of token 99)
- `catenary measure --grid grid.toml --jobs 8` (every model, length and seed in the file)
"""
)
def measure(
    context: typer.Context,
    model: options.MODEL_OR_GRID = None,
    weights: Annotated[str, typer.Option("--weights", help="untrained or pretrained.")] = "untrained",
    tokens: Annotated[
        str,
        typer.Option(
            "--tokens", help="Comma-separated: random, zipf (untrained only), vanilla, chunked, shuffled, uniform."
        ),
    ] = "random",
    length: options.LENGTH = 512,
    seed: options.SEED = 0,
    nets: Annotated[int, typer.Option("--nets", min=1, help="Untrained networks.")] = 1,
    windows: Annotated[int, typer.Option("--windows", min=1, help="Windows per network and kind of input.")] = 8,
    probes: Annotated[int, typer.Option("--probes", min=1, help="Gaussian cotangents per window.")] = 4,
    method: Annotated[
        str, typer.Option("--method", help="probes (default), exact (all cotangents) or scalar (the paper's).")
    ] = "probes",
    target_error: Annotated[
        float | None, typer.Option("--target-error", help="Relative error: picks the probes (untrained) or windows.")
    ] = None,
    position: Annotated[
        int, typer.Option("--position", help="Output position, from 0, or from the end when negative.")
    ] = -1,
    output: Annotated[
        str, typer.Option("--output", help="stream, logits, or the id of an answer token (its log-probability).")
    ] = "stream",
    source_layer: Annotated[
        int | None, typer.Option("--source-layer", help="Input: the stream entering this layer, from 0.")
    ] = None,
    target_layer: Annotated[
        int | None, typer.Option("--target-layer", help="Output: the stream entering this layer.")
    ] = None,
    relative: Annotated[bool, typer.Option("--relative", help="Norms times the rms of what enters.")] = False,
    out: options.OUT = None,
    documents: options.DOCUMENTS = None,
    chunk: options.CHUNK = None,
    bos: options.BOS = "tokenizer",
    init_std: options.INIT_STD = None,
    rope: options.ROPE = True,
    device: options.DEVICE = "cpu",
    dtype: options.DTYPE = "float32",
    attention: options.ATTENTION = "sdpa",
    batch_size: options.BATCH = 1,
    threads: options.THREADS = None,
    tokenizer: options.TOKENIZER = None,
    revision: options.REVISION = None,
    trust_remote_code: options.REMOTE_CODE = False,
    grid: Annotated[Path | None, typer.Option("--grid", help="TOML or JSON of models, lengths, seeds.")] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="With --grid: processes.")] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help="With --grid: tcp://HOST:PORT of Dask.")] = None,
    budget: Annotated[float | None, typer.Option("--budget", min=0, help="With --grid: minutes it may take.")] = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Measure the position profile of a network: ||d h_L / d e_j||_F for every position j."""
    given = dict(locals())
    if grid is not None:
        if model is not None:
            raise typer.BadParameter("--grid names its models itself: leave MODEL out")
        asked = {name for name in given if _on_command_line(context, name)}
        if ignored := asked - {"grid", "out", "jobs", "cluster", "budget", "overwrite", "json", "quiet"}:
            words = ", ".join("--" + name.replace("_", "-") for name in sorted(ignored))
            raise typer.BadParameter(f"with --grid the settings stand in its file: write {words} there")
        from catenary.cli.grid import measure_grid_file

        measure_grid_file(
            grid, out=out, jobs=jobs, cluster=cluster, budget=budget, overwrite=overwrite, json=json, quiet=quiet
        )
        return
    if model is None:
        raise typer.BadParameter("give a MODEL, or --grid FILE")
    if (jobs, cluster, budget) != (None, None, None):
        raise typer.BadParameter("--jobs, --cluster and --budget go with --grid")
    from catenary.cli.profile import folder_name
    from catenary.measure.aim import Aim
    from catenary.study.config import study_config
    from catenary.study.single import Request, measure_single

    config = study_config({**options.settings(given), "windows": 1, "probes": 1})
    options.use_threads(threads)
    aim = Aim(position, int(output) if output.isdecimal() else output, source_layer, target_layer, relative)
    request = Request(weights, tuple(tokens.split(",")), nets, windows, probes, method, target_error, aim)
    folder = out or Path("out") / f"{folder_name(model)}-{weights}"
    with observing(quiet) as observer:
        run = measure_single(config, request, folder, observer, overwrite=overwrite)
    if json:
        print_json(run.result)
        return
    from catenary.study.summary import summary

    typer.echo(summary(run))
    typer.echo(f"run: {run.folder}")


def _on_command_line(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
