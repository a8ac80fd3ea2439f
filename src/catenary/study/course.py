"""Course: how a network is trained and when it is measured on the way, beside a StudyConfig."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from catenary.errors import InvalidInput, invalid
from catenary.study.config import Count, StudyConfig, split_words, study_config, validated


class Course(BaseModel):
    """Everything that decides the numbers of an evolution and is not in StudyConfig; defaults as arXiv 2603.10123.

    ``every``: a profile before every so many updates, and one after the last. ``sequences``: held-out windows of each
    condition. ``revisions``: published checkpoints to measure in place of training, see ``checkpoints``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: str = "untrained"
    steps: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    every: Count = 1
    sequences: Count = 10
    probes: Count = 1
    training_documents: Count = 50
    training_batch: Annotated[int, Field(ge=1, le=4096)] = 1
    rate: Annotated[float, Field(gt=0, lt=1)] = 5e-4
    final_rate: Annotated[float, Field(ge=0, lt=1)] = 5e-5
    weight_decay: Annotated[float, Field(ge=0, lt=10)] = 0.1
    clip: Annotated[float, Field(gt=0, lt=1e9)] = 1.0
    revisions: Annotated[tuple[str, ...], BeforeValidator(split_words)] = ()

    @property
    def profiled(self) -> tuple[int, ...]:
        """Steps before which a profile is measured, and n, after the last update."""
        return (*range(0, self.steps, self.every), self.steps)


RECIPE = {"steps", "training_documents", "training_batch", "rate", "final_rate", "weight_decay", "clip", "weights"}
"""Fields of a course that change the network at a given step."""


def stored_course(path: Path) -> tuple[StudyConfig, Course]:
    """The settings stored in a ``result.json`` of an evolution, or in a file with the same ``config``."""
    try:
        stored = dict(json.loads(path.read_text(encoding="utf-8"))["config"])
        course = stored.pop("course")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"rerun must be the result.json of an evolution, or settings like it, got {str(path)!r}: {error!r}"
        ) from error
    return study_config(stored), validated(Course, course)


def checkpoints(revisions: tuple[str, ...]) -> dict[int, str]:
    """Steps and the names of their checkpoints: ``step1000``, ``checkpoint-500``, or any ``NAME=STEP``.

    The step is the last whole number in the name, unless one is given; steps must ascend.

    Raises:
        InvalidInput: a name without a number, or steps that do not ascend.
    """
    found: dict[int, str] = {}
    for revision in revisions:
        name, _, given = revision.rpartition("=") if "=" in revision else (revision, "", "")
        numbers = re.findall(r"\d+", given or name.rstrip("/").rsplit("/", 1)[-1])
        if not name or not numbers or (given and not given.isdigit()):
            raise invalid("revisions", "must each name a step", revision, "write NAME=STEP, e.g. main=143000")
        step = int(numbers[-1])
        if found and step <= max(found):
            raise invalid("revisions", "must come in ascending order of their steps", ", ".join(revisions))
        found[step] = name
    return found
