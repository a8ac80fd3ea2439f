"""Options that several verbs share, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from catenary.cli.whole import whole_from

MODEL = Annotated[str, typer.Argument(metavar="MODEL", help="Hub id, model folder, config.json or preset.")]
MODEL_OR_GRID = Annotated[
    str | None, typer.Argument(metavar="MODEL", help="Hub id, model folder, config.json or preset; not with --grid.")
]
LENGTH = Annotated[
    int,
    typer.Option(
        "--length", "-L", parser=whole_from(16), metavar="<int>", help="Context length in tokens, 16 or more."
    ),
]
SEED = Annotated[int, typer.Option("--seed", min=0, help="Seed of networks, windows and probes.")]
OUT = Annotated[Path | None, typer.Option("--out", "-o", help="Directory of the run.")]
JSON = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.")]
OVERWRITE = Annotated[bool, typer.Option("--overwrite", help="Replace a finished run of another config.")]
INIT_STD = Annotated[
    float | None, typer.Option("--init-std", help="Initial std of the weights, where it is not the config's.")
]
REVISION = Annotated[str | None, typer.Option("--revision", help="Hub revision.")]
REMOTE_CODE = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run Python code that comes with the model. Off unless given.")
]
TOKENIZER = Annotated[str | None, typer.Option("--tokenizer", help="Folder of a tokenizer, where MODEL has none.")]
DEVICE = Annotated[str, typer.Option("--device", help="torch device: cpu, cuda, cuda:1, mps.")]
DTYPE = Annotated[str, typer.Option("--dtype", help="float32, bfloat16 or float16.")]
ATTENTION = Annotated[str, typer.Option("--attention", help="sdpa or eager.")]
THREADS = Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads torch may use.")]
BATCH = Annotated[int, typer.Option("--batch-size", min=1, help="Windows per forward pass.")]
ROPE = Annotated[bool, typer.Option("--rope/--no-rope", help="Rotary position coding on or off.")]
DOCUMENTS = Annotated[
    str | None,
    typer.Option(
        "--documents",
        help="Text to measure on: .txt, .jsonl(.gz), a folder, or hf:dataset:split:field. "
        "Default: the language reference that comes with Python.",
    ),
]
CHUNK = Annotated[int | None, typer.Option("--chunk", min=2, help="Tokens per chunk of the chunked condition.")]
BOS = Annotated[str, typer.Option("--bos", help="tokenizer (as it does), none, or one.")]
BUDGET = Annotated[float, typer.Option("--budget", min=0, help="Minutes; what would not fit is skipped, and said.")]


def settings(given: dict[str, object]) -> dict[str, object]:
    """Of a command's arguments, those that are settings of a study; the others are left out."""
    from catenary.study.config import StudyConfig

    return {name: value for name, value in given.items() if name in StudyConfig.model_fields}


def use_threads(threads: int | None) -> None:
    """Limit torch to ``threads`` CPU threads for this process."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
