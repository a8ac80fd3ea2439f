"""Forward: one call of a causal network, with a cache it can continue from and logits of its last tokens alone."""

from __future__ import annotations

import inspect
from typing import Any

from jaxtyping import Float, Int

from catenary.models.extra import torch, transformers


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


def new_cache() -> Any:
    """An empty cache that keeps every key and value.

    It is made without the network's config, so that layers with a window keep what left it: only then can a cache be
    cut back. The window itself is in the mask.
    """
    return transformers().DynamicCache()


def check_cache(cache: Any, length: int) -> None:
    """Refuse a cache that is not one pair of tensors per layer, each with ``length`` entries on its last axis but one.

    Raises:
        Unforkable: the network keeps another kind of state, or keeps it elsewhere.
    """
    if not cache.layers:
        raise Unforkable("the network left the cache empty")
    for layer in cache.layers:
        if type(layer).__name__ != "DynamicLayer":
            raise Unforkable(f"the cache holds a {type(layer).__name__}")
        keys, values = layer.keys, layer.values
        if keys is None or values is None or keys.shape[-2] != length or values.shape[-2] != length:
            raise Unforkable("a layer's cache does not hold one entry per token")


def beginning(cache: Any, length: int) -> Any:
    """A new cache that holds the first ``length`` tokens; the given one is left as it is."""
    if length == 0:
        return new_cache()
    pairs = [(layer.keys[..., :length, :], layer.values[..., :length, :]) for layer in cache.layers]
    return transformers().DynamicCache(pairs)


def side_by_side(caches: list[Any]) -> Any:
    """One cache whose batch rows are those of ``caches``, all of the same length."""
    pairs = []
    for layers in zip(*(cache.layers for cache in caches), strict=True):
        keys, values = ([getattr(layer, name) for layer in layers] for name in ("keys", "values"))
        pairs.append((torch.cat(keys, dim=0), torch.cat(values, dim=0)))
    return transformers().DynamicCache(pairs)


def cache_bytes(cache: Any) -> int:
    """Bytes of all keys and values."""
    return sum(int(part.numel() * part.element_size()) for layer in cache.layers for part in (layer.keys, layer.values))
