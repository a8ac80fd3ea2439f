"""One softmax attention of one layer, as it was computed: rows of its weights, a block at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from jaxtyping import Float

from catenary.models.extra import torch

BLOCK = 64
"""Query rows computed at once: at L = 2048 and 9 heads, a block of float32 weights is 4.7 MB."""


@dataclass(frozen=True, eq=False)
class AttentionCall(ABC):
    r"""The attention of n sequences of L tokens in one layer, heads h, queries i, keys j, all counted from 0.

    Attributes:
        layer: index of the layer.
        module: name of the module inside the layer in which it happened, e.g. ``self_attn``.
        heads: query heads H.
        length: tokens L.
        value: the values, (n, key/value heads, L, d_v); None where the product with them was not seen.
        query, key: (n, H, L, d_k) and (n, key/value heads, L, d_k), with positions in them where rotary coding puts
            them; None where their product was not seen.
        scale: s of the logits \(s\,q_ik_j + b_{ij}\); None where the logits are no such thing (a soft cap).
    """

    layer: int
    module: str
    heads: int
    length: int
    value: Float[torch.Tensor, "n kv L d_v"] | None
    query: Float[torch.Tensor, "n H L d_k"] | None
    key: Float[torch.Tensor, "n kv L d_k"] | None
    scale: float | None

    @abstractmethod
    def seen(self, start: int, stop: int) -> Float[torch.Tensor, "n H rows stop"]:
        """Weights of the queries ``start`` to ``stop - 1`` on the keys before ``stop``: in a causal network, on all.

        In float32 or wider, detached. A row sums to 1, to less where a learned sink takes part of the softmax and is
        dropped, and to 0 for a query that sees nothing (padding).
        """

    def rows(self, start: int, stop: int) -> Float[torch.Tensor, "n H rows L"]:
        """The same, with the zeros on later keys."""
        return torch.nn.functional.pad(self.seen(start, stop), (0, self.length - stop))

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[int, Float[torch.Tensor, "n H rows stop"]]]:
        """(first query, weights on the keys before the block's end) over all queries."""
        for start in range(0, self.length, size):
            yield start, self.seen(start, min(start + size, self.length))


@dataclass(frozen=True, eq=False)
class ScoredCall(AttentionCall):
    r"""Weights \(\mathrm{softmax}_j(s\,q_i k_j + b_{ij})\) of a fused kernel, which never forms them itself.

    ``bias`` is boolean (True = seen) or added to the logits.
    """

    bias: torch.Tensor | None
    causal: bool

    def seen(self, start: int, stop: int) -> Float[torch.Tensor, "n H rows stop"]:
        """As in ``AttentionCall``."""
        logits = self.logits(start, stop)
        weights = torch.softmax(logits, dim=-1)
        if self.bias is None:
            return weights
        return weights.masked_fill_(logits.amax(dim=-1, keepdim=True) == -torch.inf, 0.0)

    def logits(self, start: int, stop: int) -> Float[torch.Tensor, "n H rows stop"]:
        """What the softmax is taken of, -inf where a key is hidden."""
        assert self.query is not None
        assert self.key is not None
        assert self.scale is not None
        query, key = wide(self.query[:, :, start:stop]), wide(self.key[:, :, :stop])
        batch, heads, count, size = query.shape
        # Neighbouring query heads share a key head.
        shared = query.reshape(batch, key.shape[1], heads // key.shape[1] * count, size)
        logits = (self.scale * shared @ key.transpose(-1, -2)).reshape(batch, heads, count, stop)
        if self.bias is not None:
            part = self.bias[..., start:stop, :] if self.bias.shape[-2] > 1 else self.bias
            part = part[..., :stop]
            logits = logits.masked_fill_(~part, -torch.inf) if part.dtype == torch.bool else logits + part
        if self.causal:
            later = torch.ones(count, count, dtype=torch.bool, device=logits.device).triu(1)
            logits[..., start:].masked_fill_(later, -torch.inf)
        return logits


@dataclass(frozen=True, eq=False)
class GivenCall(AttentionCall):
    """Weights that the network's own code formed."""

    weights: Float[torch.Tensor, "n H L L"]

    def seen(self, start: int, stop: int) -> Float[torch.Tensor, "n H rows stop"]:
        """As in ``AttentionCall``."""
        return wide(self.weights[:, :, start:stop, :stop])


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """In float32 unless it is float64, detached."""
    kept = tensor.detach()
    return kept if kept.dtype == torch.float64 else kept.float()
