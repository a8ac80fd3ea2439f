"""`catenary strengths`: how much each branch of each layer adds to the stream, at birth and after training."""

from __future__ import annotations

from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.findings import finding_folder, show_finding
from catenary.cli.terminal import observing


@app.command(
    epilog="""Examples:

- `catenary strengths gpt2 --nets 0` (predicted from the config alone, no torch)
- `catenary strengths ./my-model --windows 16 --out out/strengths`
- `catenary strengths preset:llama-3.2-1b --nets 1 --windows 2`
"""
)
def strengths(
    model: options.MODEL,
    length: options.LENGTH = 512,
    seed: options.SEED = 0,
    nets: Annotated[int, typer.Option("--nets", min=0, help="Untrained networks; 0 measures nothing.")] = 2,
    windows: Annotated[int, typer.Option("--windows", min=1, help="Windows per network.")] = 4,
    documents: options.DOCUMENTS = None,
    bos: options.BOS = "tokenizer",
    init_std: options.INIT_STD = None,
    device: options.DEVICE = "cpu",
    dtype: options.DTYPE = "float32",
    attention: options.ATTENTION = "sdpa",
    batch_size: options.BATCH = 1,
    threads: options.THREADS = None,
    tokenizer: options.TOKENIZER = None,
    revision: options.REVISION = None,
    trust_remote_code: options.REMOTE_CODE = False,
    out: options.OUT = None,
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Strengths |a|/(|x|+|a|) of attention and feed-forward per layer: predicted, untrained, trained; and their sums.

    Untrained networks are fed random vectors, and where there is a tokenizer documents, as the trained one is.
    """
    given = dict(locals())
    from catenary.page.strengths import strengths_exhibit
    from catenary.study.config import study_config
    from catenary.study.deciding import deciding
    from catenary.study.strengths import study_strengths

    config = study_config({**options.settings(given), "nets": max(nets, 1)})
    if nets:
        every = deciding(config, ("untrained", "pretrained"), ("random", "vanilla"), "batch_size")
        record = {**every, "nets": nets, "windows": windows}
        options.use_threads(threads)
    else:
        record = config.model_dump(mode="json", include={"model", "revision", "length", "init_std"}) | {"nets": 0}
    if out is not None:
        finding_folder(out, "strengths", record, overwrite=overwrite)
    with observing(quiet) as observer:
        found = study_strengths(config, nets, windows, observer, out)
    show_finding(strengths_exhibit(found, record), out, json=json)
