"""`catenary retrieve`: how well a fact is used, by where it stands in the prompt."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer

from catenary.cli import options
from catenary.cli.app import app
from catenary.cli.terminal import observing

BUDGET = Annotated[
    float | None, typer.Option("--budget", min=0, help="Minutes; no sample is begun that would not end in time.")
]


@app.command(
    epilog="""Examples:

- `catenary retrieve ./my-model --task key-value --task-option pairs=20`
- `catenary retrieve ./my-model --task facts --samples 60 --budget 30`
- `catenary retrieve ./my-model --task facts --samples 60 --link 60`
- `catenary retrieve ./my-model --resolve 0.05 --samples 500 --chat off`
- `catenary retrieve --endpoint http://localhost:8000/v1 --endpoint-model my-model` (key in OPENAI_API_KEY)
"""
)
def retrieve(
    model: Annotated[str, typer.Argument(metavar="[MODEL]", help="Hub id or model folder; not with --endpoint.")] = "",
    task: Annotated[
        str | None, typer.Option("--task", help="A task's name; default: key-value, or what --data holds.")
    ] = None,
    task_option: Annotated[
        list[str] | None, typer.Option("--task-option", help="NAME=VALUE, may be given more than once.")
    ] = None,
    data: Annotated[str | None, typer.Option("--data", help="File or folder that the task reads.")] = None,
    template: Annotated[str | None, typer.Option("--template", help="The prompt's wording: a file.")] = None,
    length: Annotated[int | None, typer.Option("--length", "-L", min=1, help="Of a haystack, in tokens.")] = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="Samples; with --resolve at most so many.")] = 60,
    link: Annotated[
        int, typer.Option("--link", min=0, help="Held-out prompts to read predictors of the curve from; 60 are enough.")
    ] = 0,
    positions: Annotated[int, typer.Option("--positions", min=1, help="Slots of the fact, evenly spread.")] = 10,
    resolve: Annotated[
        float | None, typer.Option("--resolve", help="Difference of two positions to be seen; picks the sample count.")
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", help="Of the verdict and --resolve: exact, contains, best_subspan or logp.")
    ] = "best_subspan",
    chat: Annotated[
        str, typer.Option("--chat", help="Chat template: on, off, or auto (off for a network, on for an endpoint).")
    ] = "auto",
    bos: options.BOS = "tokenizer",
    max_length: Annotated[
        int | None, typer.Option("--max-length", min=1, help="Longer prompts are skipped. Default: the model's own.")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option("--max-new-tokens", min=1, help="Longest generation.")] = 40,
    endpoint: Annotated[str, typer.Option("--endpoint", help="URL of an OpenAI-compatible server.")] = "",
    endpoint_model: Annotated[str, typer.Option("--endpoint-model", help="The model's name there.")] = "",
    seed: options.SEED = 0,
    budget: BUDGET = None,
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
    """Score how well a model uses a fact, by where in the prompt it stands; every sample visits every position.

    Writes a page with the curves, their bands and a verdict, what an order of documents gains, the outcomes as JSON and
    CSV, and each finished sample, from which a stopped run resumes. With --link also which predictors go with the
    curve.
    """
    given = dict(locals())
    from catenary.cli.findings import show_finding
    from catenary.cli.profile import folder_name
    from catenary.page.retrieve import retrieve_exhibit
    from catenary.page.retrieve_sections import sections_of
    from catenary.retrieval.records import write_outcomes
    from catenary.store import make_folder
    from catenary.study.config import validated
    from catenary.study.existing import check_folder
    from catenary.study.retrieve_config import RetrieveConfig
    from catenary.study.retrieve_source import study_retrieve

    fields = {name: value for name, value in given.items() if name in RetrieveConfig.model_fields}
    asked, chosen = _task(task, task_option or [], template, data)
    config = validated(RetrieveConfig, {**fields, "task": asked, "task_options": chosen})
    record = config.model_dump(mode="json")
    folder = out or Path("out") / f"{folder_name(model or endpoint_model)}-retrieve"
    check_folder(folder, ("retrieve.json",), record, overwrite=overwrite)
    make_folder(folder)
    options.use_threads(threads)
    with observing(quiet) as observer:
        found = study_retrieve(config, folder, observer, budget_minutes=budget)
    write_outcomes(found.outcomes, folder / "outcomes.json")
    sections = sections_of(found, config.metric, seed)
    exhibit = retrieve_exhibit(found, config.metric, record, smallest=resolve, seed=seed, sections=sections)
    show_finding(exhibit, folder, json=json)


def _task(task: str | None, pairs: list[str], template: str | None, data: str | None) -> tuple[str, dict[str, Any]]:
    """The task's name or file, and its options; their values are read as JSON where they are, else as text."""
    from catenary.errors import invalid
    from catenary.retrieval.tasks import TASKS

    found: dict[str, Any] = {} if template is None else {"template": template}
    if task is not None and data is not None:
        holder = TASKS[task].data
        if not holder:
            raise invalid("data", f"is for a task that reads a file, which {task} does not", data)
        found[holder] = data
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise invalid("task-option", "must be NAME=VALUE", pair)
        try:
            found[name.replace("-", "_")] = json_module.loads(value)
        except ValueError:
            found[name.replace("-", "_")] = value
    return task or data or "key-value", found
