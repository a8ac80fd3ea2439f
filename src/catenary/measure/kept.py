"""Bytes that autograd keeps for a backward pass: counted, not timed or read from the system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from catenary.models.extra import torch


class Kept:
    """Storages that autograd saved while the context was open, the network's own parameters left out."""

    def __init__(self, module: torch.nn.Module) -> None:
        """Nothing is kept yet."""
        self._parameters = {parameter.untyped_storage().data_ptr() for parameter in module.parameters()}
        self._sizes: dict[int, int] = {}
        self._alive: list[torch.Tensor] = []  # so that no address is used twice

    @property
    def bytes(self) -> int:
        """What they take, each storage counted once."""
        return sum(self._sizes.values())

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        """Count the storage of one saved tensor."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._parameters:
            self._alive.append(tensor)
            self._sizes[storage.data_ptr()] = storage.nbytes()
        return tensor


@contextmanager
def keeping(module: torch.nn.Module) -> Iterator[Kept]:
    """Count what autograd saves while the context is open; gradients come out as without it."""
    kept = Kept(module)
    with torch.autograd.graph.saved_tensors_hooks(kept.add, lambda tensor: tensor):
        yield kept
