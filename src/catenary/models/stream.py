"""One forward pass from input vectors to the residual stream in front of the final norm."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float, Int

from catenary.models.extra import torch


def accepts(module: torch.nn.Module, argument: str) -> bool:
    """Whether the class of ``module`` names ``argument`` in its forward; wrappers put on the instance are ignored."""
    return argument in inspect.signature(type(module).forward).parameters


def run(
    backbone: torch.nn.Module,
    vectors: Float[torch.Tensor, "n L fed"],
    mask: Int[torch.Tensor, "n L"],
    positions: Int[torch.Tensor, "n L"] | None = None,
) -> Float[torch.Tensor, "n L d"]:
    """Hidden states after the final norm for vectors fed in place of embedded tokens.

    The mask is given to every network that takes position ids: without one, transformers reads a jump in them as
    packed sequences and cuts attention there. A network without them is given a mask of padding only; one type
    fails on a mask of ones for two sequences.
    """
    options: dict[str, Any] = {"use_cache": False, "return_dict": True}
    if positions is not None:
        options["position_ids"] = positions
    if accepts(backbone, "position_ids") or not bool(mask.all()):
        options["attention_mask"] = mask
    known = {name: value for name, value in options.items() if accepts(backbone, name)}
    output = backbone(inputs_embeds=vectors, **known)
    return first_tensor(output if isinstance(output, tuple | list) else output.last_hidden_state)


def first_tensor(output: object) -> torch.Tensor:
    """The tensor a module returned: itself, or the first entry of its tuple (model types differ in this)."""
    while isinstance(output, tuple | list):
        output = output[0]
    assert isinstance(output, torch.Tensor), type(output)
    return output


@contextmanager
def inputs_of(module: torch.nn.Module) -> Iterator[list[torch.Tensor]]:
    """Collect the first argument of every call of ``module`` while the context is open."""
    seen: list[torch.Tensor] = []

    def keep(_: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        seen.append(arguments[0] if arguments else next(iter(named.values())))

    handle = module.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        yield seen
    finally:
        handle.remove()


@contextmanager
def outputs_of(
    modules: list[torch.nn.Module], wanted: Callable[[object], bool]
) -> Iterator[list[tuple[torch.nn.Module, object]]]:
    """Collect (module, output) in order of completion for the outputs that ``wanted`` accepts."""
    seen: list[tuple[torch.nn.Module, object]] = []

    def keep(module: torch.nn.Module, _: object, output: object) -> None:
        if wanted(output):
            seen.append((module, output))

    handles = [module.register_forward_hook(keep) for module in modules]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
