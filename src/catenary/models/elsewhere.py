"""Weights that are not where their module says: brought by accelerate when it runs, or packed inside a tensor.

accelerate puts a module's weights on the meta device, which has no values, and brings the values only while the module
runs. Quantised weights are tensors of tensors. Nothing here moves or casts what the user holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from catenary.models.extra import torch


def device_of(part: torch.nn.Module) -> torch.device:
    """Where ``part`` works: where its weight is, or where accelerate brings it."""
    weight = part.weight
    assert isinstance(weight, torch.Tensor)
    if weight.is_meta:
        for hook in _hooks(part):
            device = getattr(hook, "execution_device", None)
            if device is not None:
                return torch.device(device)
    return weight.device


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether its values are its own, and not packed as a quantised weight's are."""
    return type(tensor.detach()) is torch.Tensor


def values_of(module: torch.nn.Module, name: str, parameter: torch.Tensor) -> Iterator[torch.Tensor]:
    """The plain tensors that hold the values of ``module``'s parameter ``name``, on whatever device they lie."""
    if not parameter.is_meta:
        yield from _inside(parameter.detach())
        return
    path, _, own = name.rpartition(".")
    for hook in _hooks(module.get_submodule(path)):
        kept = getattr(hook, "weights_map", None)
        if kept is not None:
            yield from _inside(kept[own])
            return


def _hooks(part: torch.nn.Module) -> Iterator[object]:
    """accelerate's hooks on a module, one by one."""
    hook = getattr(part, "_hf_hook", None)
    if hook is not None:
        yield from getattr(hook, "hooks", (hook,))


def _inside(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    if is_plain(tensor):
        yield tensor
        return
    names, _ = tensor.__tensor_flatten__()  # type: ignore[attr-defined]  # what tensor subclasses of torch must have
    for name in names:
        yield from _inside(getattr(tensor, name))
