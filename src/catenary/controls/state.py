"""State of a network that a measurement must leave alone: where its tensors are, in what dtype, flags, hooks, bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from catenary.models.extra import torch

State = Mapping[str, object]
"""What is seen of every part, by name and aspect."""


def state_of(module: torch.nn.Module) -> State:
    """Devices, dtypes, addresses, flags and bytes of tensors; modes and hooks of modules; the attention in use."""
    return dict(_state(module))


def changes(before: State, after: State) -> list[str]:
    """Names of what is not as it was, with both values, in order."""
    names = [*before, *(name for name in after if name not in before)]
    return [
        f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _state(module: torch.nn.Module) -> Iterator[tuple[str, object]]:
    for name, parameter in module.named_parameters():
        yield f"{name} device", str(parameter.device)
        yield f"{name} dtype", str(parameter.dtype)
        yield f"{name} requires_grad", parameter.requires_grad
        yield f"{name} address", parameter.data_ptr()
        yield f"{name} has .grad", parameter.grad is not None
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        yield f"{name} bytes", _digest(tensor)
    for name, part in module.named_modules():
        where = name or type(part).__name__
        yield f"{where} training", part.training
        yield f"{where} hooks", len(part._forward_hooks) + len(part._forward_pre_hooks)
    config: Any = getattr(module, "config", None)
    yield "attention implementation", getattr(config, "_attn_implementation", None)
    yield "grad mode", torch.is_grad_enabled()


def _digest(tensor: torch.Tensor) -> str:
    """BLAKE2 of the bytes, or that there are none to read (offloaded weights)."""
    if tensor.is_meta:
        return "not here"
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return hashlib.blake2b(data.data, digest_size=8).hexdigest()
