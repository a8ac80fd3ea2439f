"""Recompute each layer in the backward pass instead of keeping what autograd would save in it.

transformers' own gradient checkpointing does nothing in ``eval()``, so the layers are wrapped here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch.utils.checkpoint import CheckpointError, checkpoint

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy


@contextmanager
def recomputing(anatomy: Anatomy, until: int | None = None) -> Iterator[None]:
    """Keep only the inputs of every layer while the context is open, and run a layer again when its gradient is asked.

    Autograd then holds depth * L * d numbers and the inside of one layer at a time. Each backward pass costs one more
    forward pass, so that K probes take 1 + 2K passes in place of 1 + K. Operations and their order are the same, so
    are the gradients. On exit every layer's ``forward`` is what it was.

    ``until`` is for a network that is stopped at the stream that enters this layer: those behind it need not run.

    Raises:
        NotApplicable: where a layer is not run as a module, or does something else when it runs again.
    """
    calls = [0] * len(anatomy.layers)
    held = [layer.__dict__.get("forward") for layer in anatomy.layers]
    for number, layer in enumerate(anatomy.layers):
        layer.forward = partial(_again, layer.forward, calls, number)
    try:
        yield
        silent = [number for number, count in enumerate(calls[:until]) if count == 0]
        if silent:
            raise _refusal(anatomy, f"layer {silent[0]} is not run as a module")
    except CheckpointError as error:
        why = str(error).splitlines()[0]
        raise _refusal(anatomy, f"a layer gives other tensors when it runs again ({why})") from error
    finally:
        for layer, forward in zip(anatomy.layers, held, strict=True):
            del layer.forward
            if forward is not None:
                layer.forward = forward


def _again(forward: Callable[..., Any], calls: list[int], number: int, *arguments: Any, **named: Any) -> Any:
    calls[number] += 1
    # Without dropout no random number is drawn: saving the generators' states would only cost time.
    return checkpoint(forward, *arguments, use_reentrant=False, preserve_rng_state=False, **named)


def _refusal(anatomy: Anatomy, why: str) -> NotApplicable:
    return NotApplicable(
        f"recompute does not hold for {type(anatomy.backbone).__name__}: {why}; measure without it, at a shorter length"
    )

