"""Windows and chunks of attention by blocks of queries: memory grows with L times the window, not with L squared.

transformers hands sdpa an L x L mask for every layer whose reach is bounded. While the context is open the mask is
kept as its rule, and each block of queries is given the keys within its reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float

from catenary.models.extra import torch

SHORTEST = 2
"""Windows in a sequence from which it is cut: below, the blocks' masks would be as large as the whole one."""


@dataclass(frozen=True, eq=False)
class Band:
    """A causal mask whose queries reach at most ``reach`` tokens back, themselves included, as a rule over indices."""

    rule: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
    reach: int
    length: int
    device: torch.device

    def blocks(self) -> Iterator[tuple[slice, slice, Bool[torch.Tensor, "1 1 q k"]]]:
        """Queries, the keys within their reach, and which of them each query sees; every query once."""
        zero = torch.zeros((1, 1, 1, 1), dtype=torch.long, device=self.device)
        for start in range(0, self.length, self.reach):
            queries = slice(start, min(start + self.reach, self.length))
            keys = slice(max(0, start - self.reach + 1), queries.stop)
            q = torch.arange(queries.start, queries.stop, device=self.device)[None, None, :, None]
            k = torch.arange(keys.start, keys.stop, device=self.device)[None, None, None, :]
            yield queries, keys, self.rule(zero, zero, q, k).expand(1, 1, q.shape[2], k.shape[3])


@contextmanager
def banded() -> Iterator[None]:
    """Let transformers' sdpa run bounded attention by blocks while the context is open; all else runs as it did.

    The values are those of the whole mask up to rounding. Left whole are windows of more than half the sequence,
    padded batches, masks with additions of their own (packed sequences, images), and types that do not take their
    attention from transformers' interface.
    """
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as MASKS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS as ATTENTION

    with _swapped(MASKS, _rule_of), _swapped(ATTENTION, _by_blocks):
        yield


@contextmanager
def _swapped(interface: Any, around: Callable[[Any], Any]) -> Iterator[None]:
    """Put a function around the interface's ``sdpa`` for a while."""
    mapping = interface._local_mapping
    before = mapping.get("sdpa")
    interface["sdpa"] = around(interface["sdpa"])
    try:
        yield
    finally:
        if before is None:
            del interface["sdpa"]
        else:
            interface["sdpa"] = before


def _rule_of(whole: Any) -> Any:
    def mask(*arguments: Any, **named: Any) -> Any:
        if arguments or not _is_band(named):
            return whole(*arguments, **named)
        return Band(named["mask_function"], named["local_size"], named["q_length"], torch.device(named["device"]))

    return mask


def _is_band(asked: Mapping[str, Any]) -> bool:
    """Whether the mask asked for is one of a bounded reach alone, over a whole sequence without padding."""
    reach, length, padding = asked.get("local_size"), asked["q_length"], asked.get("attention_mask")
    if reach is None or length < SHORTEST * reach or not asked.get("allow_is_causal_skip") or asked.get("use_vmap"):
        return False
    whole = length == asked["kv_length"] and not asked.get("q_offset") and not asked.get("kv_offset")
    return whole and (padding is None or bool(padding.all()))


def _by_blocks(whole: Any) -> Any:
    def attention(
        module: torch.nn.Module,
        query: Float[torch.Tensor, "n H L d"],
        key: Float[torch.Tensor, "n G L d"],
        value: Float[torch.Tensor, "n G L v"],
        attention_mask: Any,
        *arguments: Any,
        **named: Any,
    ) -> tuple[Float[torch.Tensor, "n L H v"], None]:
        if not isinstance(attention_mask, Band):
            result: tuple[torch.Tensor, None] = whole(module, query, key, value, attention_mask, *arguments, **named)
            return result
        parts = [
            whole(module, query[:, :, q], key[:, :, k], value[:, :, k], mask, *arguments, **_cut(named, q, k))[0]
            for q, k, mask in attention_mask.blocks()
        ]
        return torch.cat(parts, dim=1), None

    return attention


def _cut(named: dict[str, Any], q: Any, k: Any) -> dict[str, Any]:
    """The same options for one block: what is added to its scores is the block's own part."""
    bias = named.get("position_bias")
    return named if bias is None else {**named, "position_bias": bias[..., q, k]}
