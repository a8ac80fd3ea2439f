"""What an evolution will cost on this machine: one update and one measurement are timed, what they keep is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catenary.errors import InvalidInput
from catenary.study.config import StudyConfig
from catenary.study.course import Course
from catenary.study.memory import resident_memory, usable_memory
from catenary.study.plan import Estimate, minutes
from catenary.study.source import Source

if TYPE_CHECKING:
    from catenary.models.model import Model

STATES = 4
"""Numbers held per trained parameter: itself, its gradient and two moments."""
LOGITS = 3
"""Copies of the logits in one update: themselves, their gradient, and the log-probabilities."""


def check_size(config: StudyConfig, source: Source) -> None:
    """Refuse a network whose weights, gradients and moments alone do not fit, before it is drawn.

    Raises:
        InvalidInput: with what it needs and what is there.
    """
    from catenary.measure.cost import layer_parameters

    architecture = source.architecture
    parameters = layer_parameters(architecture) + (architecture.vocabulary or 0) * architecture.width
    needed, free = 4.0 * STATES * parameters, usable_memory(config.device)
    if needed > free:
        raise InvalidInput(
            f"training {config.model} needs at least {needed / 2**30:.1f} GiB for weights, gradients and moments, and "
            f"{free / 2**30:.1f} GiB are there; take a smaller model, or --revisions to measure published checkpoints"
        )


def training_estimate(model: Model, config: StudyConfig, course: Course) -> Estimate:
    """Time and memory of all updates and measurements, from one of each on this network at this length."""
    from catenary.measure.cost import pass_bytes
    from catenary.measure.kept import keeping
    from catenary.measure.pilot import pilot, timed
    from catenary.models.training import next_token_loss
    from catenary.models.undisturbed import undisturbed

    one = pilot(model, config.length)
    rows = min(model.embedding_weight.shape[0], config.length)
    ids = np.tile(np.arange(config.length, dtype=np.int64) % rows, (course.training_batch, 1))
    parameters = [p for p in model.module.parameters() if p.is_floating_point()]
    with undisturbed(model.module):
        for parameter in parameters:
            parameter.requires_grad_(True)
        with keeping(model.module) as kept:
            next_token_loss(model.module, ids)
        held = kept.bytes
        del kept

        def update() -> object:
            loss = next_token_loss(model.module, ids)
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
            return loss.detach()

        took, _ = timed(update, model.device)  # type: ignore[arg-type]  # it returns the loss
        for parameter in parameters:
            parameter.grad = None
    count = sum(parameter.numel() for parameter in parameters)
    window = one.forward + course.probes * one.backward
    windows = len(course.profiled) * len(config.conditions) * course.sequences
    seconds = course.steps * (took + count * _per_parameter(model)) + windows * window
    item = model.embedding_weight.element_size()
    logits = LOGITS * 4 * course.training_batch * config.length * model.embedding_weight.shape[0]
    batch = min(config.batch_size, course.sequences)
    inputs = config.length * model.width * item
    measuring = batch * pass_bytes(one.kept, len(model.anatomy.layers), inputs, recompute=False)
    running = (STATES - 1) * item * count + max(held + logits, measuring)
    base = resident_memory() if config.device.startswith("cpu") else float(item * count)
    return Estimate(seconds, base + running)


def _per_parameter(model: Model) -> float:
    """Seconds of an AdamW update per parameter here."""
    from catenary.measure.pilot import timed
    from catenary.models.extra import torch

    numbers = torch.nn.Parameter(torch.ones(1_000_000, device=model.device))
    numbers.grad = torch.ones_like(numbers)
    optimiser = torch.optim.AdamW([numbers])
    optimiser.step()

    def update() -> torch.Tensor:
        torch.nn.utils.clip_grad_norm_([numbers], 1.0)
        optimiser.step()
        return numbers.detach()

    took, _ = timed(update, model.device)
    return took / numbers.numel()


def check_estimate(found: Estimate, config: StudyConfig, budget_minutes: float) -> None:
    """Refuse what would take longer than the budget or more memory than there is.

    Raises:
        InvalidInput: with the estimate, and what would make it smaller.
    """
    free = usable_memory(config.device)
    smaller = "a larger --every, or fewer --steps, --sequences, --length"
    if found.bytes > free:
        raise InvalidInput(
            f"this needs about {found.bytes / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are there; take {smaller}"
        )
    if found.seconds > 60 * budget_minutes:
        raise InvalidInput(
            f"this would take about {minutes(found.seconds)}, more than the budget of {minutes(60 * budget_minutes)}; "
            f"give --budget MINUTES, or {smaller}"
        )
