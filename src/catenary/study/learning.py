"""Train a tiny decoder on a task from scratch, seed by seed, and time how soon each part of the window is learned."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from jaxtyping import Float64, Int64
from pydantic import BaseModel, ConfigDict, Field

from catenary.errors import invalid
from catenary.learning import SMOOTH, Learning, Lesson
from catenary.provenance import digest, versions
from catenary.store import write_json
from catenary.study.config import Count, StudyConfig
from catenary.study.measuring import load_net
from catenary.study.observer import Observer, Silent
from catenary.study.parts import Part
from catenary.study.plan import minutes
from catenary.study.pupil import Pupil
from catenary.study.source import find_source
from catenary.study.tasks import balanced, check_length, find_task, places
from catenary.study.units import derived_seed

if TYPE_CHECKING:
    from catenary.models.model import Model

ENOUGH, LASTING = 0.9, 2
"""Training ends when every bin has this accuracy over ``LASTING`` smoothing windows."""
BIRTH_WINDOWS, BIRTH_PROBES = 8, 4
DECIDES = {"length", "seed", "init_std", "rope", "device", "attention"}


class Assignment(BaseModel):
    """A task and how it is learned: Adam at a constant rate, fresh windows in every update, each position alike."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str = "lookup"
    seeds: Count = 3
    most: Count = 2000
    batch: Count = 32
    rate: Annotated[float, Field(gt=0, lt=1)] = 3e-3
    bin: Annotated[int, Field(ge=2)] = 8
    stride: Annotated[int, Field(ge=1)] = 1


def learn_by_position(
    config: StudyConfig, assignment: Assignment, folder: Path, observer: Observer | None = None
) -> Learning:
    r"""Steps to half accuracy by position, for several seeds, against the profile of the same networks at birth.

    A window has L - 1 tokens with a key and a value each, and a last one that asks for the value of one of them. The
    cross-entropy of the answer is the only loss. Accuracy is that of the training windows themselves, each seen once.
    The profile at birth is the root mean square of \(\|J_j\|_F\) over random vectors, log-averaged over each bin.

    Args:
        config: MODEL (its config alone is used), length in 16..128, the first seed; each seed is another network.
        assignment: ``lookup``: the key names the answer, so the rule is the same at every position; ``place``: the
            position is named, and each has to be learned by itself. ``stride`` s asks about positions 0, s, 2s, ...
        folder: each finished seed is a file in it, read again when the same command is run.
        observer: told of decisions and progress.

    Raises:
        InvalidInput: bad settings, or a network that takes no vectors.

    The question is that of arXiv 2603.10123, section 6: is the rate of learning proportional to the profile? The
    elasticity would then be -1.
    """
    watch = observer or Silent()
    task = find_task(assignment.task)
    check_length(config.length)
    asked = places(config.length, assignment.stride)
    edges = bin_edges(config.length, assignment)
    source = find_source(config)
    watch.say(f"{source.located.source}\n{source.architecture.describe()}")
    identity = {
        "network": source.config_digest, "versions": versions(), "assignment": assignment.model_dump(mode="json"),
        "config": config.model_dump(mode="json", include=DECIDES),
    }  # fmt: skip
    watch.begin(f"learning {task.name}", assignment.seeds * assignment.most)
    lessons = []
    try:
        for seed in range(config.seed, config.seed + assignment.seeds):
            path = folder / "units" / f"{task.name}-seed{seed:04d}-{digest({**identity, 'seed': seed})}.json"
            if not path.is_file():
                write_json(path, _learn(config, assignment, seed, asked, edges, watch))
            else:
                watch.advance(assignment.most)
            lessons.append(_lesson(seed, json.loads(path.read_text(encoding="utf-8"))))
            watch.say(f"seed {seed}: {_said(lessons[-1])}")
    finally:
        watch.end()
    label = source.located.name
    return Learning(task.name, task.words, label, config.length, edges, tuple(lessons))


def bin_edges(length: int, assignment: Assignment) -> Int64[np.ndarray, " e"]:
    """Bounds of the bins of positions 0..L-2; what is left over makes the last bin longer.

    Raises:
        InvalidInput: fewer than two bins, or bins that no position asked about lies in.
    """
    size, positions = assignment.bin, length - 1
    if assignment.stride > size or positions < 2 * size:
        raise invalid("bin", f"must be >= the stride {assignment.stride} and <= {positions // 2}", size)
    edges = np.arange(0, positions, size, dtype=np.int64)
    whole = edges if positions - edges[-1] == size or positions - edges[-1] > size // 2 else edges[:-1]
    return np.append(whole, positions)


def _learn(
    config: StudyConfig, assignment: Assignment, seed: int, asked: Int64[np.ndarray, " k"],
    edges: Int64[np.ndarray, " e"], watch: Observer,
) -> dict[str, Any]:
    """One seed, as JSON values."""
    part = Part("learning", "learning", "untrained", ("random",), 1, BIRTH_WINDOWS, BIRTH_PROBES)
    own = config.model_copy(update={"seed": seed})
    model = load_net(own, part, 0)
    birth = _birth(model, own, edges)
    pupil = Pupil(model, config.length, seed, assignment.rate)
    task, bins = find_task(assignment.task), len(edges) - 1
    generator = np.random.default_rng(derived_seed(seed, "windows", task.name))
    right, drawn = [], []
    start = time.process_time()
    for update in range(assignment.most):
        batch = task.draw(balanced(asked, assignment.batch, generator), config.length, generator)
        places_of = np.searchsorted(edges, batch.gold, side="right") - 1
        hits = pupil.update(batch)
        right.append(np.bincount(places_of, weights=hits, minlength=bins))
        drawn.append(np.bincount(places_of, minlength=bins))
        watch.advance(1)
        if update == 9:
            took = (time.process_time() - start) / 10 * assignment.most
            watch.say(f"seed {seed}: at most {minutes(took)} of processor time")
        last = slice(-LASTING * SMOOTH, None)
        known = update % SMOOTH == SMOOTH - 1 and update >= LASTING * SMOOTH
        if known and (np.sum(right[last], axis=0) >= ENOUGH * np.sum(drawn[last], axis=0)).all():
            watch.advance(assignment.most - update - 1)
            break
    return {"birth": birth.tolist(), "right": np.array(right).tolist(), "asked": np.array(drawn).tolist()}


def _birth(model: Model, config: StudyConfig, edges: Int64[np.ndarray, " e"]) -> Float64[np.ndarray, " bin"]:
    from catenary.measure.jacobian import measure_jacobian
    from catenary.text.synthetic import random_windows

    windows = random_windows(config.length, BIRTH_WINDOWS, derived_seed(config.seed, "birth"))
    sample = measure_jacobian(model, windows, probes=BIRTH_PROBES, seed=config.seed, batch_size=BIRTH_WINDOWS)
    logs = np.log(sample.profile("rms").values[:-1])
    return np.asarray(np.exp(np.add.reduceat(logs, edges[:-1]) / np.diff(edges)))


def _lesson(seed: int, stored: dict[str, Any]) -> Lesson:
    return Lesson(seed, *(np.array(stored[name], dtype=np.float64) for name in ("birth", "right", "asked")))


def _said(lesson: Lesson) -> str:
    if not np.isfinite(lesson.half).all():
        return f"not learned in {len(lesson.right)} updates"
    return f"half accuracy after {lesson.half.min():.0f} to {lesson.half.max():.0f} updates"
