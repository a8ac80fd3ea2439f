"""`catenary pathways`: which paths carry the influence, layer by layer and in the whole profile."""

from __future__ import annotations

from typing import Annotated

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.findings import default_folder, finding_folder, show_finding
from catenary.cli.terminal import observing


@app.command(
    epilog="""Examples:

- `catenary pathways gpt2 --length 128` (an untrained network, random vectors)
- `catenary pathways ./my-model --weights pretrained --tokens vanilla --windows 8 --probes 1`
- `catenary pathways qwen2-0.5b --at embeddings --layers 0,11,23`
"""
)
def pathways(
    model: options.MODEL,
    weights: Annotated[str, typer.Option("--weights", help="untrained or pretrained.")] = "untrained",
    tokens: Annotated[
        str, typer.Option("--tokens", help="random, zipf (untrained only), vanilla, chunked, shuffled or uniform.")
    ] = "random",
    at: Annotated[
        str, typer.Option("--at", help="Where terms are read: layer (its input) or embeddings (H times dearer).")
    ] = "layer",
    layers: Annotated[str | None, typer.Option("--layers", help="Comma-separated, from 0; default: all.")] = None,
    length: options.LENGTH = 256,
    seed: options.SEED = 0,
    windows: Annotated[int, typer.Option("--windows", min=1, help="Windows measured.")] = 4,
    probes: Annotated[int, typer.Option("--probes", min=1, help="Gaussian cotangents per window.")] = 2,
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
    """Split each layer's Jacobian into identity, value path, score path, feed-forward and their product.

    Writes a page with a stack per layer and the profiles that some paths alone would give, a table and its data.
    """
    given = dict(locals())
    from catenary.errors import invalid, unknown
    from catenary.page.pathways import pathways_exhibit
    from catenary.study.config import study_config
    from catenary.study.deciding import deciding
    from catenary.study.pathways import study_pathways

    if at not in ("layer", "embeddings"):
        raise unknown("at", at, ("layer", "embeddings"))
    try:
        chosen = None if layers is None else [int(layer) for layer in layers.split(",")]
    except ValueError as error:
        raise invalid("layers", "must be comma-separated integers", layers) from error
    config = study_config({**options.settings(given), "windows": 1, "probes": 1})
    asked = {"weights": weights, "tokens": tokens, "windows": windows, "probes": probes, "at": at, "layers": chosen}
    record = {**deciding(config, [weights], [tokens], "rope"), **asked}
    folder = finding_folder(out or default_folder(model, "pathways"), "pathways", record, overwrite=overwrite)
    options.use_threads(threads)
    with observing(quiet) as observer:
        found = study_pathways(
            config, observer, weights=weights, tokens=tokens, windows=windows, probes=probes,
            source="layer" if at == "layer" else "embeddings", layers=chosen, folder=folder,
        )
    exhibit = pathways_exhibit(found.pathways, found.paths, record, found.logit_variance)
    show_finding(exhibit, folder, json=json)
