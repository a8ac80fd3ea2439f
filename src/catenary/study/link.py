"""Held-out prompts of a retrieval task, read one by one and kept, for the link of predictors with its curve."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.provenance import digest
from catenary.retrieval.case import Case, Task
from catenary.retrieval.link.readings import Readings, readings_from
from catenary.retrieval.link.table import LinkTable, link_table
from catenary.store import read_record, write_json
from catenary.study.observer import Observer, Silent

if TYPE_CHECKING:
    from catenary.retrieval.scoring.network import NetworkScorer
    from catenary.retrieval.scoring.scorer import Scorer

BIRTH_PROMPTS = 6
"""Prompts for which the birth law is evaluated: between prompts of one template its slots differ by per cents."""


@dataclass(frozen=True)
class LinkUnit:
    """One held-out prompt: its sample, its case, the index of its gold slot, and where its readings are kept."""

    sample: int
    case: Case
    gold: int
    path: Path | None


def held_out(task: Task, scored: int, prompts: int, slots: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """(sample, index of the gold slot) of held-out prompts: samples behind the scored ones, the gold slot rotated.

    Raises:
        InvalidInput: where the task has not that many samples behind the first ``scored``.
    """
    if prompts < 1:
        raise invalid("link", "must be at least 1 held-out prompt", prompts)
    left = len(task) - scored
    if left < prompts:
        rule = f"must leave samples that are not scored: the task has {len(task)}, and {scored} may be scored"
        raise invalid("link", rule, prompts, "ask for fewer --samples or a smaller --link")
    return tuple((scored + n, n % len(slots)) for n in range(prompts))


def check_readable(scorer: Scorer) -> None:
    """Refuse a black box, whose inside is not seen."""
    if not hasattr(scorer, "encoder"):
        raise NotApplicable("link: a black box shows neither gradients nor attention; give a MODEL to read it from")


def read_held_out(
    task: Task,
    scorer: Scorer,
    folder: Path | None = None,
    *,
    scored: int,
    prompts: int,
    slots: Sequence[int],
    seed: int = 0,
    budget_minutes: float | None = None,
    observer: Observer | None = None,
) -> tuple[LinkTable, tuple[str, ...]]:
    """Read held-out prompts, and say what was left out.

    Args:
        task: what is asked; its samples from ``scored`` on are read.
        scorer: the network that scored the others.
        folder: where finished prompts are kept; a second call reads only what is missing. None keeps nothing.
        scored: samples that may be scored, the first of the task.
        prompts: how many to read.
        slots: the slots of the curve.
        seed: of the probes.
        budget_minutes: of the clock; no prompt is begun that would not end in time. The first one always is.
        observer: told of progress.

    Raises:
        InvalidInput: too few samples, or no prompt that can be read.
        NotApplicable: a black box, whose inside is not seen.
    """
    check_readable(scorer)
    wanted = held_out(task, scored, prompts, slots)
    watch = observer or Silent()
    read: list[tuple[int, int, Readings]] = []
    skipped: dict[str, str] = {}
    notes: list[str] = []
    started, fresh = time.monotonic(), 0
    watch.begin("prompts", prompts)
    try:
        for done, (sample, gold) in enumerate(wanted):
            unit = make_link_unit(task, scorer, sample, gold, slots, seed, done < BIRTH_PROMPTS, folder)
            record = kept(unit)
            if record is None and fresh and budget_minutes is not None:
                each = (time.monotonic() - started) / fresh
                if each * (fresh + 1) > 60 * budget_minutes:
                    notes.append(f"{done} of {prompts} held-out prompts were read, for the budget was at its end.")
                    break
            if record is None:
                record = _read(unit, scorer, slots, seed, done < BIRTH_PROMPTS)  # type: ignore[arg-type]  # no box
                fresh += 1
                if fresh == 1:
                    took, left = time.monotonic() - started, prompts - done - 1
                    watch.say(f"one held-out prompt took {took:.1f} s; {left} more take {took * left / 60:.1f} minutes")
            if record["skipped"]:
                skipped[unit.case.sample] = record["skipped"]
            else:
                read.append((gold, record["tokens"], readings_from(record["readings"])))
            watch.advance(1)
    finally:
        watch.end()
    if skipped:
        why = "; ".join(sorted(set(skipped.values())))[:200]
        notes.append(f"{len(skipped)} held-out prompts were left out ({why}).")
    return link_table(slots, task.slots, read, skipped), tuple(notes)


def make_link_unit(
    task: Task, scorer: Scorer, sample: int, gold: int, slots: Sequence[int], seed: int, birth: bool,
    folder: Path | None,
) -> LinkUnit:  # fmt: skip
    """The unit of one prompt; its file's name carries a digest of the network, the text and all that decides it."""
    case = task.case(sample, slots[gold])
    if folder is None:
        return LinkUnit(sample, case, gold, None)
    identity = {name: value for name, value in scorer.identity().items() if name not in ("route", "ending")}
    key = digest({
        "network": identity, "segments": [[part.text, part.slot] for part in case.segments], "lead": case.lead,
        "answer": case.answers[0], "slots": list(slots), "gold": gold, "seed": seed, "birth": birth,
    })  # fmt: skip
    return LinkUnit(sample, case, gold, folder / "units" / f"link-{sample:05d}-{key}.json")


def kept(unit: LinkUnit) -> dict[str, Any] | None:
    """What was kept of a prompt, None where it was not read yet.

    Raises:
        InvalidInput: its file was changed by hand.
    """
    if unit.path is None or not unit.path.is_file():
        return None
    record = read_record(unit.path)
    if not {"sample", "skipped", "tokens", "readings"} <= set(record):
        raise InvalidInput(f"{unit.path} is not what was written there; remove it")
    return record


def _read(unit: LinkUnit, scorer: NetworkScorer, slots: Sequence[int], seed: int, birth: bool) -> dict[str, Any]:
    """Read a prompt, and keep it where it has a place on disk."""
    record = {"sample": unit.case.sample, "gold": slots[unit.gold], **_result(unit, scorer, slots, seed, birth)}
    if unit.path is not None:
        write_json(unit.path, record)
    return record


def _result(
    unit: LinkUnit, scorer: NetworkScorer, slots: Sequence[int], seed: int, birth: bool
) -> Mapping[str, Any]:
    from catenary.retrieval.link.measured import read_prompt
    from catenary.retrieval.link.prompt import make_prompt

    try:
        prompt = make_prompt(scorer.encoder, unit.case, slots)
    except InvalidInput as reason:
        return {"skipped": str(reason), "tokens": 0, "readings": None}
    size = len(prompt.ids)
    if scorer.max_length is not None and size > scorer.max_length:
        return {"skipped": f"longer than {scorer.max_length} tokens", "tokens": size, "readings": None}
    found = read_prompt(scorer.model, prompt, seed=seed, sample=unit.sample, birth=birth)
    return {"skipped": "", "tokens": size, "readings": found.to_dict()}
