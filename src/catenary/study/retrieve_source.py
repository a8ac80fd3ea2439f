"""From a config to a retrieval study: who answers, and what is asked."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catenary.errors import MissingResource, invalid
from catenary.retrieval.case import Task
from catenary.retrieval.scoring.scorer import Scorer
from catenary.study.link import check_readable, held_out, read_held_out
from catenary.study.observer import Observer
from catenary.study.retrieve import RetrieveStudy, chosen_slots, score_samples
from catenary.study.retrieve_config import RetrieveConfig

if TYPE_CHECKING:
    from catenary.models.model import Model


def study_retrieve(
    config: RetrieveConfig, folder: Path | None, observer: Observer, *, budget_minutes: float | None = None
) -> RetrieveStudy:
    """Build scorer and task from a config, score, and read held-out prompts where a link is asked for.

    Raises:
        InvalidInput: neither a model nor an endpoint, or both; too few samples for a link; and what models, endpoints,
            tasks and scoring refuse.
    """
    if bool(config.model) == bool(config.endpoint):
        raise invalid("MODEL", "or --endpoint must be given, one of them", (config.model, config.endpoint))
    early = None if _in_tokens(config) else load_samples(config)  # a wrong name or file is refused before a load
    scorer = make_scorer(config, observer)
    task = load_samples(config, scorer) if early is None else early
    observer.say(f"{task.name}: {len(task)} samples of {task.slots} slots")
    slots = chosen_slots(task.slots, config.positions)
    if config.link:  # what cannot be read is refused before hours of scoring
        check_readable(scorer)
        held_out(task, config.samples, config.link, slots)
    started = time.monotonic()
    found = score_samples(
        task, scorer, folder, samples=config.samples, positions=config.positions, resolve=config.resolve,
        metric=config.metric, budget_minutes=budget_minutes, observer=observer,
        provenance={"config": config.model_dump(mode="json")},
    )  # fmt: skip
    if not config.link:
        return found
    left = None if budget_minutes is None else max(budget_minutes - (time.monotonic() - started) / 60, 0.0)
    table, notes = read_held_out(
        task, scorer, folder, scored=config.samples, prompts=config.link, slots=slots, seed=config.seed,
        budget_minutes=left, observer=observer,
    )  # fmt: skip
    return replace(found, link=table, link_notes=notes)


def _in_tokens(config: RetrieveConfig) -> bool:
    """Whether the task's texts are as long as a tokenizer says; a name that is no task is still refused."""
    from catenary.retrieval.tasks import TASKS
    from catenary.retrieval.tasks.load import recognise

    name = config.task if config.task in TASKS else recognise(config.task)
    return config.length is not None and "tokens" in TASKS[name].defaults()


def load_samples(config: RetrieveConfig, scorer: Scorer | None = None) -> Task:
    """The task of a config.

    A task that makes its samples makes as many as are asked for, and those held out for a link, from the config's
    seed; of a file all are there. A ``length`` is in tokens where the scorer is a network, else in characters.
    """
    from catenary.retrieval.tasks import TASKS, load_task

    options = dict(config.task_options)
    if config.length is not None:
        options["length"] = config.length
    if config.task in TASKS:
        kind = TASKS[config.task]
        known = kind.defaults()
        if "seed" in known:
            options.setdefault("seed", config.seed)
        if "count" in known and (known["count"] or kind.data not in options):
            options.setdefault("count", config.samples + config.link)
        encoder = getattr(scorer, "encoder", None)
        if config.length is not None and "tokens" in known and encoder is not None:
            options["tokens"] = encoder.count
    return load_task(config.task, **options)


def make_scorer(config: RetrieveConfig, observer: Observer) -> Scorer:
    """The endpoint, or the network with its weights and tokenizer."""
    if config.endpoint:
        from catenary.retrieval.boxes.calls import BoxScorer
        from catenary.retrieval.boxes.endpoint import Endpoint

        for name, given, unset in (
            ("max_length", config.max_length, None), ("tokenizer", config.tokenizer, None),
            ("bos", config.bos, "tokenizer"),
        ):  # fmt: skip
            if given != unset:
                raise invalid(name, "is of a network: an endpoint has its own", given, "leave it out")
        chat = config.chat != "off"
        box = Endpoint(config.endpoint, config.endpoint_model, chat=chat, max_new_tokens=config.max_new_tokens)
        return BoxScorer(box)
    from catenary.models.load import load
    from catenary.retrieval.scoring.network import NetworkScorer

    model = load(
        config.model, weights="pretrained", device=config.device, dtype=config.dtype, attention=config.attention,
        revision=config.revision, trust_remote_code=config.trust_remote_code,
    )  # fmt: skip
    observer.say(repr(model))
    return NetworkScorer(
        model, _tokenizer(config, model), bos=config.bos, chat=config.chat == "on", max_length=config.max_length,
        max_new_tokens=config.max_new_tokens,
    )  # fmt: skip


def _tokenizer(config: RetrieveConfig, model: Model) -> Any:
    if config.tokenizer is None:
        return model.tokenizer()
    from catenary.models.extra import transformers

    try:
        return transformers().AutoTokenizer.from_pretrained(
            config.tokenizer, trust_remote_code=config.trust_remote_code
        )
    except (OSError, ValueError) as error:
        raise MissingResource(f"no tokenizer in {config.tokenizer!r}") from error
