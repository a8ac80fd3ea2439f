"""`catenary evolve`: the profile of held-out text while a network trains, or over its published checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.findings import default_folder, show_finding
from catenary.cli.terminal import observing


@app.command(
    epilog="""Examples:

- `catenary evolve ./config.json --tokenizer ./tokenizer --documents ./texts --length 256 --every 4`
- `catenary evolve Qwen/Qwen2-0.5B --length 2048 --documents ./texts --device cuda`
- `catenary evolve EleutherAI/pythia-160m --revisions step0,step512,step4000,step143000`
- `catenary evolve ./run --revisions checkpoint-500,checkpoint-1000` (folders inside MODEL)
- `catenary evolve --rerun experiments/evolve/cpu.json --out out/evolve`
"""
)
def evolve(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="Hub id, model folder, config.json; not with --rerun.")
    ] = None,
    weights: Annotated[str, typer.Option("--weights", help="Start untrained (fresh, from --seed) or pretrained.")]
    = "untrained",
    steps: Annotated[int, typer.Option("--steps", min=1, help="Updates.")] = 100,
    every: Annotated[int, typer.Option("--every", min=1, help="A profile before every so many, and at the end.")] = 1,
    sequences: Annotated[int, typer.Option("--sequences", min=1, help="Held-out windows of each kind.")] = 10,
    probes: Annotated[int, typer.Option("--probes", min=1, help="Gaussian cotangents per window.")] = 1,
    revisions: Annotated[
        str, typer.Option("--revisions", help="Checkpoints in place of training: step0,step1000,main=143000.")
    ] = "",
    rate: Annotated[float, typer.Option("--rate", help="Learning rate at the start.")] = 5e-4,
    final_rate: Annotated[float, typer.Option("--final-rate", help="And at the end of the cosine.")] = 5e-5,
    weight_decay: Annotated[float, typer.Option("--weight-decay", help="Of AdamW.")] = 0.1,
    clip: Annotated[float, typer.Option("--clip", help="Largest norm of the gradient.")] = 1.0,
    training_batch: Annotated[int, typer.Option("--training-batch", min=1, help="Windows per update.")] = 1,
    training_documents: Annotated[int, typer.Option("--training-documents", min=1, help="Trained on.")] = 50,
    conditions: Annotated[str, typer.Option("--conditions", help="vanilla, chunked or both.")] = "vanilla,chunked",
    length: options.LENGTH = 512,
    seed: options.SEED = 0,
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
    budget: Annotated[float, typer.Option("--budget", min=0, help="Minutes; a longer run is refused.")] = 60.0,
    checkpoint_every: Annotated[
        int, typer.Option("--checkpoint-every", min=1, help="Updates between two checkpoints to resume from.")
    ] = 10,
    tokenizer: options.TOKENIZER = None,
    revision: options.REVISION = None,
    trust_remote_code: options.REMOTE_CODE = False,
    rerun: Annotated[
        Path | None, typer.Option("--rerun", help="Run the settings in this result.json or file of settings.")
    ] = None,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Train a network and measure held-out text before every k-th update, or measure published checkpoints.

    Recipe and defaults are those of arXiv 2603.10123: AdamW, a cosine from 5e-4 to 5e-5, weight decay .1, clip 1, one
    random window per update. Writes a page, `profiles.nc` with dims (condition, step, sequence, position), and the
    loss of every update. A run that was stopped goes on from its last checkpoint.
    """
    given = dict(locals())
    from catenary.page.evolve import evolve_exhibit
    from catenary.study.config import study_config, validated
    from catenary.study.course import Course, stored_course
    from catenary.study.evolve import evolve_model

    if rerun is not None:
        config, course = stored_course(rerun)
    else:
        config = study_config({**options.settings(given), "windows": 1, "probes": 1})
        course = validated(Course, {name: given[name] for name in Course.model_fields})
    options.use_threads(threads)
    folder = out or default_folder(config.model, "evolve")
    with observing(quiet) as observer:
        study = evolve_model(
            config, course, folder, observer, overwrite=overwrite, budget_minutes=budget,
            checkpoint_every=checkpoint_every,
        )
    exhibit = evolve_exhibit(study.sample, study.follow(), study.losses, study.run.result["config"])
    show_finding(exhibit, folder, json=json)
