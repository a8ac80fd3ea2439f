"""Pupils of the ledger: fresh networks by seed, taught until each of several sets of positions is half learned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from catenary.learning import HALF, SMOOTH, Lesson, crossing
from catenary.models.extra import torch
from catenary.study.config import StudyConfig, study_config
from catenary.study.measuring import load_net
from catenary.study.parts import Part
from catenary.study.pupil import Descent, Pupil
from catenary.study.tasks import Batch, Task, balanced

BATCH = 32
"""Windows of an update."""
ANSWERS = 100
"""Answers that make an accuracy of one half sure to .05: what ``SMOOTH`` updates ask about an eighth of a window."""
LEAVING = 0.25
"""Accuracy, twice chance, at which a network has left chance."""


@contextmanager
def learning_config(settings: Mapping[str, Any]) -> Iterator[tuple[StudyConfig, Path]]:
    """The config of ``model``, or of ``network`` written out, at ``length`` and seed 0; and a folder for a while."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        model = str(settings.get("model", ""))
        if not model:
            network = dict(settings["network"])
            home = folder / f"{network['model_type']}-like"
            home.mkdir()
            (home / "config.json").write_text(json.dumps(network), encoding="utf-8")
            model = str(home)
        yield study_config({"model": model, "length": int(settings["length"]), "seed": 0}), folder


def fresh(config: StudyConfig, seed: int, rate: float, descent: Descent) -> Pupil:
    """A network at birth with its tables: the same for the same seed, whatever the rate."""
    part = Part("learning", "learning", "untrained", ("random",), 1, 1, 1)
    own = config.model_copy(update={"seed": seed})
    return Pupil(load_net(own, part, 0), config.length, seed, rate, descent)


def taught(
    pupil: Pupil, task: Task, columns: Sequence[Int64[np.ndarray, " _"]], length: int, most: int,
    generator: np.random.Generator, *, birth: Float64[np.ndarray, " column"], leaving: Callable[[], None] | None = None,
) -> Lesson:
    """Updates on questions about all ``columns`` of positions alike, until each was half right over ``SMOOTH`` updates.

    Args:
        pupil: what learns, and has learned on return.
        task, length: what is shown and asked.
        columns: sets of positions; the Lesson's columns.
        most: updates at most. A column that is not half right by then has no time to half.
        generator: of the windows.
        birth: influence of each column, for the Lesson.
        leaving: called once, when the answers of ``SMOOTH`` updates were right in a quarter of the cases.
    """
    asked = np.sort(np.concatenate(columns))
    column_of = np.full(length, -1)
    for number, positions in enumerate(columns):
        column_of[positions] = number
    right: list[Any] = []
    drawn: list[Any] = []
    reached = np.zeros(len(columns), dtype=bool)
    for update in range(most):
        batch = task.draw(balanced(asked, BATCH, generator), length, generator)
        where = column_of[batch.gold]
        right.append(np.bincount(where, weights=pupil.update(batch), minlength=len(columns)))
        drawn.append(np.bincount(where, minlength=len(columns)))
        if update < SMOOTH - 1:
            continue
        hits, all_of = np.sum(right[-SMOOTH:], axis=0), np.sum(drawn[-SMOOTH:], axis=0)
        if leaving is not None and hits.sum() >= LEAVING * all_of.sum():
            leaving()
            leaving = None
        reached |= hits >= HALF * all_of
        if reached.all():
            break
    return Lesson(0, birth, np.array(right, dtype=np.float64), np.array(drawn, dtype=np.float64))


def half_times(lesson: Lesson) -> Float64[np.ndarray, " column"]:
    """Updates to half of each column, its accuracy over as many updates as give it about ``ANSWERS`` answers.

    ``Lesson.half`` averages over ``SMOOTH`` updates around each, as many as an eighth of the window needs, and over
    fewer next to the first. That dates a column learned within ``SMOOTH``/2 updates too early: at 1/2 whenever the
    first 13 average one half. A position asked about alone has 32 answers an update, so three updates are as sure.
    """
    return np.array([_half_time(r, a) for r, a in zip(lesson.right.T, lesson.asked.T, strict=True)])


def _half_time(right: Float64[np.ndarray, " step"], asked: Float64[np.ndarray, " step"]) -> float:
    width = min(2 * (round(ANSWERS / asked.mean()) // 2) + 1, SMOOTH)
    over = np.ones(width)
    return crossing(np.convolve(right, over, "same") / np.maximum(np.convolve(asked, over, "same"), 1))


def influence(pupil: Pupil, batch: Batch, probes: int, seed: int) -> Float64[np.ndarray, " L"]:
    r"""Root mean square over windows and probes of \(\|J_j^T v\|\), v ~ N(0, I): \(\|J_j\|_F\) on the task's windows.

    J_j is that of the stream in front of the final norm, at the last position, on what is fed at j: as
    ``measure_jacobian``, for a network whose tables have been trained and are no random vectors any more.
    """
    generator = torch.Generator().manual_seed(seed)
    fed = pupil.vectors(batch).detach().requires_grad_(True)
    mask = torch.ones(batch.keys.shape, dtype=torch.long, device=pupil.model.device)
    last = pupil.model.anatomy.stream(fed, mask)[:, -1]
    energy = np.zeros(batch.keys.shape[1])
    for probe in range(probes):
        cotangent = torch.randn(last.shape, generator=generator).to(last)
        (gradient,) = torch.autograd.grad(last, fed, cotangent, retain_graph=probe < probes - 1)
        energy += gradient.double().pow(2).sum(dim=-1).mean(dim=0).cpu().numpy()
    return np.sqrt(energy / probes)
