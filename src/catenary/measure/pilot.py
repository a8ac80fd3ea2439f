"""A pilot: one network timed on two short inputs, and what autograd keeps counted, carried to any length."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from catenary.measure.kept import keeping
from catenary.models.anatomy import pilot_vectors
from catenary.models.banded import banded
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.undisturbed import undisturbed

LONGEST = 1024
"""Longest pilot in tokens: there attention takes a share of the time that two lengths can tell from the rest."""


@dataclass(frozen=True)
class Passes:
    """One forward and one backward pass at one length: seconds each, and bytes that autograd keeps."""

    length: int
    forward: float
    backward: float
    kept: float

    def scaled(self, factor: float) -> Passes:
        """The same for a network with ``factor`` times the work."""
        return Passes(self.length, factor * self.forward, factor * self.backward, factor * self.kept)


def pilot(model: Model, length: int) -> Passes:
    """What one window of ``length`` tokens costs: measured at up to ``LONGEST`` tokens, and a quarter of that.

    Beyond it each number is carried on as a L + b L^2 through the two measured points, with a and b not negative.
    """
    longest = min(length, LONGEST, model.max_length or LONGEST)
    short, long = run_pilot(model, max(2, longest // 4)), run_pilot(model, longest)
    if length == longest:
        return long
    return Passes(
        length,
        carried(short.length, short.forward, longest, long.forward, length),
        carried(short.length, short.backward, longest, long.backward, length),
        carried(short.length, short.kept, longest, long.kept, length),
    )


def carried(short: int, low: float, long: int, high: float, length: int) -> float:
    """a L + b L^2 through two points, at ``length``; through the last alone where a or b would be negative."""
    curvature = (high / long - low / short) / (long - short)
    slope = low / short - curvature * short
    if curvature < 0:
        return high * length / long
    return high * (length / long) ** 2 if slope < 0 else slope * length + curvature * length**2


def run_pilot(model: Model, length: int) -> Passes:
    """One window of distinct vectors, forward and backward; the first of two times is a warm-up."""
    vectors = pilot_vectors(model.anatomy.embedding, length).requires_grad_(True)
    mask = torch.ones(vectors.shape[:2], dtype=torch.long, device=vectors.device)
    with undisturbed(model.module), banded():
        with keeping(model.module) as kept:
            last = model.anatomy.stream(vectors.clone(), mask)[:, -1]
        saved = kept.bytes
        del kept, last

        def forward() -> torch.Tensor:
            return model.anatomy.stream(vectors.clone(), mask)[:, -1]

        took, last = timed(forward, model.device)
        cotangent = torch.ones_like(last)

        def backward() -> torch.Tensor:
            return torch.autograd.grad(last, vectors, cotangent, retain_graph=True)[0]

        backward()
        back, _ = timed(backward, model.device)
    return Passes(length, took, back, float(saved))


def timed(work: Callable[[], torch.Tensor], device: torch.device) -> tuple[float, torch.Tensor]:
    """Seconds of one call, and its result: this thread's processor time, or the clock's where another device works."""
    clock = time.thread_time if device.type == "cpu" else time.perf_counter
    start = clock()
    result = work()
    if device.type != "cpu":
        result.sum().item()  # waits for the device
    return clock() - start, result
