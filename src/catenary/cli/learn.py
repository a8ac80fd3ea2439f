"""`catenary learn`: how soon each part of the window is learned, against the profile at birth."""

from __future__ import annotations

from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.findings import default_folder, finding_folder, show_finding
from catenary.cli.terminal import observing


@app.command(
    epilog="""Examples:

- `catenary learn preset:toy` (a look-up by content: the same rule at every position)
- `catenary learn experiments/evolve/tiny-learned.json --task place --stride 4` (each position by itself)
"""
)
def learn(
    model: options.MODEL,
    task: Annotated[
        str, typer.Option("--task", help="lookup (the value beside the same key) or place (at a named position).")
    ] = "lookup",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Networks, from --seed on.")] = 3,
    most: Annotated[int, typer.Option("--most", min=1, help="Most updates of each.")] = 2000,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Windows per update.")] = 32,
    rate: Annotated[float, typer.Option("--rate", help="Learning rate of Adam.")] = 3e-3,
    bin: Annotated[int, typer.Option("--bin", min=2, help="Positions per bin.")] = 8,
    stride: Annotated[int, typer.Option("--stride", min=1, help="Ask about every so many positions.")] = 1,
    length: options.LENGTH = 64,
    seed: options.SEED = 0,
    init_std: options.INIT_STD = None,
    rope: options.ROPE = True,
    device: options.DEVICE = "cpu",
    attention: options.ATTENTION = "sdpa",
    threads: options.THREADS = None,
    revision: options.REVISION = None,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Train a small decoder on a task from scratch and time, by position, the way to half accuracy.

    Were the rate of learning at a position proportional to its influence at birth, as arXiv 2603.10123 says, steps to
    half accuracy would go as its inverse: elasticity -1.
    """
    given = dict(locals())
    from catenary.page.learning import learning_exhibit
    from catenary.study.config import study_config, validated
    from catenary.study.deciding import deciding
    from catenary.study.learning import Assignment, learn_by_position

    config = study_config({**options.settings(given), "windows": 1, "probes": 1, "batch_size": 1})
    assignment = validated(Assignment, {name: given[name] for name in Assignment.model_fields})
    record = {**deciding(config, ["untrained"], ["random"], "rope"), "assignment": assignment.model_dump(mode="json")}
    name = f"learning-{assignment.task}"
    folder = finding_folder(out or default_folder(model, name), name, record, overwrite=overwrite)
    options.use_threads(threads)
    with observing(quiet) as observer:
        found = learn_by_position(config, assignment, folder, observer)
    show_finding(learning_exhibit(found, record), folder, json=json)
