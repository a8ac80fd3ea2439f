"""Caches of keys and values that can be cut back, put side by side, and grown without being copied."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache as once
from typing import Any

from catenary.models.extra import torch, transformers
from catenary.retrieval.scoring.forward import Unforkable


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
        if type(layer).__name__ not in ("DynamicLayer", "RoomyLayer"):
            raise Unforkable(f"the cache holds a {type(layer).__name__}")
        keys, values = layer.keys, layer.values
        if keys is None or values is None or keys.shape[-2] != length or values.shape[-2] != length:
            raise Unforkable("a layer's cache does not hold one entry per token")


def beginning(cache: Any, length: int, room: int) -> Any:
    """A new cache of the first ``length`` tokens, with room for more; the given one is left as it is."""
    return some_rows(cache, range(len(cache.layers[0].keys)), length, room) if length else new_cache()


def side_by_side(caches: Sequence[Any], room: int) -> Any:
    """One cache whose batch rows are those of ``caches``, all of the same length, with room for more tokens."""
    layers = zip(*(cache.layers for cache in caches), strict=True)
    return _roomy([([one.keys for one in each], [one.values for one in each]) for each in layers], room)


def some_rows(cache: Any, rows: Sequence[int], length: int, room: int) -> Any:
    """A new cache of the first ``length`` tokens of some batch rows, with room for more; the given one is left."""

    def parts(held: torch.Tensor) -> list[torch.Tensor]:
        return [held[row : row + 1, ..., :length, :] for row in rows]

    return _roomy([(parts(layer.keys), parts(layer.values)) for layer in cache.layers], room)


def cut(cache: Any, length: int) -> None:
    """Leave the first ``length`` tokens of a cache; what follows is written over them."""
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[..., :length, :], layer.values[..., :length, :]


def cache_length(cache: Any) -> int:
    """Tokens that a cache holds."""
    return int(cache.layers[0].keys.shape[-2])


def cache_bytes(cache: Any) -> int:
    """Bytes of all keys and values."""
    return sum(int(part.numel() * part.element_size()) for layer in cache.layers for part in (layer.keys, layer.values))


def _roomy(layers: Sequence[tuple[list[torch.Tensor], list[torch.Tensor]]], room: int) -> Any:
    """A cache of layers, each from the parts of its keys' and its values' batch, with room for more tokens."""
    made = new_cache()
    made.layers = [_roomy_layer()(keys, values, room) for keys, values in layers]
    return made


@once
def _roomy_layer() -> type:
    """The layer's class, made when it is first wanted because its base is slow to import."""
    base: Any = transformers().cache_utils.DynamicLayer

    class RoomyLayer(base):  # type: ignore[misc]  # transformers is untyped here
        """A layer whose tensors begin longer buffers, in which new tokens are written instead of copying the old."""

        def __init__(self, keys: list[torch.Tensor], values: list[torch.Tensor], room: int) -> None:
            """Copy the batch's parts, all of one length, to the beginning of new buffers."""
            super().__init__()
            self.update(keys[0][..., :0, :], values[0][..., :0, :])
            length = keys[0].shape[-2]
            self.buffers = [_buffer(parts, room) for parts in (keys, values)]
            self.keys, self.values = (buffer[..., :length, :] for buffer in self.buffers)

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **options: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            """Keys and values of all tokens, the new ones last."""
            if not hasattr(self, "buffers"):
                grown: tuple[torch.Tensor, torch.Tensor] = super().update(key_states, value_states, *args, **options)
                return grown
            start = self.keys.shape[-2]
            end = start + key_states.shape[-2]
            if end > self.buffers[0].shape[-2]:
                raise RuntimeError(f"the cache has room for {self.buffers[0].shape[-2]} tokens, {end} are asked for")
            for buffer, new in zip(self.buffers, (key_states, value_states), strict=True):
                buffer[..., start:end, :] = new
            self.keys, self.values = (buffer[..., :end, :] for buffer in self.buffers)
            return self.keys, self.values

    return RoomyLayer


def _buffer(parts: list[torch.Tensor], room: int) -> torch.Tensor:
    """The parts of a batch one after the other, and ``room`` entries on the last axis but one."""
    first = parts[0]
    shape = [sum(len(part) for part in parts), *first.shape[1:-2], first.shape[-2] + room, first.shape[-1]]
    buffer = first.new_empty(shape)
    torch.cat(parts, dim=0, out=buffer[..., : first.shape[-2], :])
    return buffer
