r"""The gradient on all weights from questions about one position: of the loss, and of its value's part in the answer.

The loss at birth also falls by what has nothing to do with the value at p, such as evening out the logits. The signal
of p leaves that out: with the window held and its value at p set to each of the M values u in turn,

\[ s_p = \frac1M \sum_u \Big( z_u(u) - \frac1M \sum_w z_w(u) \Big), \]

z_w(u) the logit of w, averaged over windows that ask about p. A part of z_w(u) that depends on u alone, or on w alone,
drops out. Its gradient on all weights is the part of the loss's that teaches the answer. Derived here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from catenary.models.extra import torch
from catenary.study.pupil import Pupil
from catenary.study.tasks import VALUES, Batch, Task


@dataclass(frozen=True)
class FirstGradient:
    """Norm of the signal's mean gradient from questions about a position, and the square of what the question adds.

    ``question`` is the squared norm of the difference to the same windows with a question about another position.
    Both are products of two independent halves, so that the spread between windows adds nothing; the second can be
    negative by chance.
    """

    norm: float
    question: float


def loss_gradient(
    pupil: Pupil, task: Task, position: int, length: int, windows: int, generator: np.random.Generator
) -> float:
    """Norm of the mean gradient of the loss on all weights; two halves as above, NaN if their product is negative."""
    halves = [
        _gradient(pupil, pupil.loss(task.draw(np.full(windows // 2, position), length, generator))) for _ in range(2)
    ]
    return _root(_product(*halves))


def first_gradient(
    pupil: Pupil, task: Task, position: int, length: int, windows: int, generator: np.random.Generator
) -> FirstGradient:
    """Of the signal of ``position``, from ``windows`` that ask about it."""
    asked, added = [], []
    for _ in range(2):
        batch = task.draw(np.full(windows // 2, position), length, generator)
        other = (position + generator.integers(1, length - 1, len(batch.gold))) % (length - 1)
        keys = batch.keys.copy()
        keys[:, -1] = task.ask(batch.keys, other)
        own = _gradient(pupil, signal(pupil, batch, position))
        strange = _gradient(pupil, signal(pupil, replace(batch, keys=keys, gold=other), position))
        asked.append(own)
        added.append([a - b for a, b in zip(own, strange, strict=True)])
    return FirstGradient(_root(_product(*asked)), _product(*added))


def signal(pupil: Pupil, batch: Batch, position: int) -> torch.Tensor:
    """The signal of ``position`` over the windows of ``batch``, whatever they ask about."""
    count = len(batch.gold)
    shown = np.tile(np.arange(VALUES), count)
    values = np.repeat(batch.values, VALUES, axis=0)
    values[:, position] = shown
    every = Batch(np.repeat(batch.keys, VALUES, axis=0), values, np.repeat(batch.gold, VALUES), shown)
    logits = pupil.logits(every).reshape(count, VALUES, VALUES)  # window, value shown, logit
    return (torch.diagonal(logits, dim1=1, dim2=2).mean(dim=1) - logits.mean(dim=(1, 2))).mean()


def _gradient(pupil: Pupil, value: torch.Tensor) -> list[torch.Tensor]:
    found = torch.autograd.grad(value, pupil.weights, allow_unused=True)
    return [torch.zeros(()) if part is None else part for part in found]


def _product(first: list[torch.Tensor], second: list[torch.Tensor]) -> float:
    return sum(float((a.double() * b.double()).sum()) for a, b in zip(first, second, strict=True))


def _root(square: float) -> float:
    return float(np.sqrt(square)) if square > 0 else float("nan")
