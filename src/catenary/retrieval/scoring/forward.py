"""Forward: one call of a causal network, with a cache it can continue from and logits of its last tokens alone."""

from __future__ import annotations

import inspect
from typing import Any

from jaxtyping import Float, Int

from catenary.models.extra import torch


class Unforkable(Exception):
    """The network's state cannot be cut back to a shared beginning and continued from there; the message says why."""


class Forward:
    """Calls a network of transformers by what its ``forward`` takes."""

    def __init__(self, module: torch.nn.Module) -> None:
        """Look at the names of the arguments: the cache was ``past_key_values`` before it was ``cache``."""
        names = inspect.signature(module.forward).parameters
        self.module = module
        self.cache_name = next((name for name in ("cache", "past_key_values") if name in names), None)
        self.keeps = "logits_to_keep" in names

    def __call__(
        self, ids: Int[torch.Tensor, "B T"], *, cache: Any = None, keep: int | None = None
    ) -> Float[torch.Tensor, "B K V"]:
        """Logits of the last ``keep`` tokens (of all if None); the cache, where one is given, is extended by all.

        Raises:
            Unforkable: a cache is given to a network that takes none.
        """
        arguments: dict[str, Any] = {"input_ids": ids}
        if cache is not None:
            if self.cache_name is None:
                raise Unforkable(f"{type(self.module).__name__} takes no cache")
            arguments |= {self.cache_name: cache, "use_cache": True}
        if keep is not None and self.keeps:
            arguments["logits_to_keep"] = keep
        logits: torch.Tensor = self.module(**arguments).logits
        return logits if keep is None else logits[:, -keep:]
