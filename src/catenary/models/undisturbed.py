"""A user's network is left as it was found: mode, gradient flags and grad mode are put back on exit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from catenary.models.extra import torch


@contextmanager
def undisturbed(module: torch.nn.Module) -> Iterator[None]:
    """Evaluate ``module`` without dropout and with frozen weights, and restore every flag afterwards.

    Freezing halves the cost of a backward pass to the inputs, because no weight gradient is formed. Nothing is
    moved or cast, ``.grad`` is never written, and no random number is drawn.

    Flags are put back by name: where weights are brought when a module runs, it has other parameters afterwards.
    """
    modes = [(part, part.training) for part in module.modules()]
    flags = [
        (part, name, parameter.requires_grad)
        for part in module.modules()
        for name, parameter in part.named_parameters(recurse=False)
    ]
    try:
        for part, _ in modes:
            part.training = False
        for parameter in module.parameters():
            parameter.requires_grad_(False)
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        for part, training in modes:
            part.training = training
        for part, name, flag in flags:
            getattr(part, name).requires_grad_(flag)
