"""See every softmax attention of a run, whatever the model type and attention implementation, or freeze its weights.

A torch function mode catches the fused kernel and the softmaxes; hooks say in which layer and module each happens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from torch.overrides import TorchFunctionMode

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy
from catenary.models.attention_call import AttentionCall, GivenCall, ScoredCall
from catenary.models.extra import torch

FUSED = torch.nn.functional.scaled_dot_product_attention
SOFTMAXES = frozenset({torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax, torch.special.softmax})
PRODUCTS = frozenset({
    torch.matmul, torch.bmm, torch.einsum, torch.Tensor.matmul, torch.Tensor.bmm, torch.Tensor.__matmul__,
})
SCORES = PRODUCTS | {torch.baddbmm, torch.Tensor.baddbmm}
"""What own code forms q.k with."""
RECURRENT = ("mamba", "rwkv", "lightning", "linear", "delta", "conv", "recurrent", "lstm", "ssm", "retention", "mixer")
"""Fragments of the class names of token mixers that have no softmax, and so no map."""

Receive = Callable[[AttentionCall], None]


@dataclass(eq=False)
class Seen:
    """What a run showed: runs and softmax attentions per layer, and the mixers of layers that have none, by name."""

    runs: Counter[int] = field(default_factory=Counter)
    calls: Counter[int] = field(default_factory=Counter)
    without: dict[int, str] = field(default_factory=dict)


@contextmanager
def attention_calls(anatomy: Anatomy, shape: tuple[int, int], receive: Receive) -> Iterator[Seen]:
    """Hand every softmax attention of the layers run inside the context to ``receive``, in order.

    Nothing of the network is changed, and its output is bit for bit the same. A call holds references to the
    network's own tensors (queries and keys, or weights), which live as long as the caller keeps it.

    Args:
        anatomy: of the network that is run.
        shape: (sequences n, tokens L) of what it is fed.
        receive: called once per attention; keep the call, or read it and let it go.

    Raises:
        NotApplicable: on leaving the context, for a layer with an attention whose weights were not seen (kernels
            other than torch's own, attention in chunks).
    """
    with _watch(anatomy, _Mode(shape, receive, frozen=False)) as seen:
        yield seen


@contextmanager
def frozen_weights(anatomy: Anatomy, shape: tuple[int, int]) -> Iterator[Seen]:
    """Let no gradient through the attention weights of the layers run inside the context: values carry it alone.

    Queries, keys and mask enter the fused kernel detached; a softmax formed by the network's own code leaves
    detached. The forward result is bit for bit the same.

    Args and Raises: as ``attention_calls``.
    """
    with _watch(anatomy, _Mode(shape, lambda call: None, frozen=True)) as seen:
        yield seen


class _Mode(TorchFunctionMode):
    """Catches attention inside a layer; ``layer`` and ``path`` are set by hooks."""

    def __init__(self, shape: tuple[int, int], receive: Receive, *, frozen: bool) -> None:
        super().__init__()
        self.batch, self.length = shape
        self.receive = receive
        self.frozen = frozen
        self.seen = Seen()
        self.path: list[tuple[int, str]] = []
        self.pending: GivenCall | None = None
        self.scores: tuple[torch.Tensor, torch.Tensor] | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run ``func``, and look at it if it is a part of attention."""
        named = kwargs or {}
        if not self.path:
            return func(*args, **named)
        if func is FUSED:
            return self._fused(*args, **named)
        if func in SOFTMAXES:
            return self._softmax(func(*args, **named), args[0] if args else named["input"], *args[1:2], **named)
        if self.pending is not None and func in PRODUCTS:
            self._product(args)
        if func in SCORES and not self.frozen:
            self._keep_scores([*args, *named.values()])
        return func(*args, **named)

    def _fused(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> torch.Tensor:
        self.flush()
        whole = query.shape[-2] == key.shape[-2] == self.length
        if whole:
            layer, module = self.path[0][0], self.path[-1][1]
            self.seen.calls[layer] += 1
            if self.frozen:
                query, key = query.detach(), key.detach()
                attn_mask = None if attn_mask is None else attn_mask.detach()
            else:
                q, k, v = (self._by_head(part) for part in (query, key, value))
                factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
                bias = attn_mask
                if bias is not None and bias.ndim == 3 and query.ndim == 3 and bias.shape[0] == query.shape[0]:
                    bias = self._by_head(bias)
                self.receive(
                    ScoredCall(layer, module, q.shape[1], self.length, v.detach(), q.detach(), k.detach(), factor,
                               None if bias is None else bias.detach(), is_causal)
                )
        return FUSED(
            query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale,
            enable_gqa=enable_gqa,
        )

    def _softmax(
        self, weights: torch.Tensor, logits: torch.Tensor, dim: int = -1, **_: Any
    ) -> torch.Tensor:
        if dim not in (-1, weights.ndim - 1) or not self._is_map(weights):
            return weights
        self.flush()
        layer, module = self.path[0][0], self.path[-1][1]
        self.seen.calls[layer] += 1
        if self.frozen:
            return weights.detach()
        maps, logits = (self._by_head(part)[..., : self.length].detach() for part in (weights, logits))
        query, key = self.scores or (None, None)
        self.scores = None
        if query is not None and query.shape[1] != maps.shape[1]:
            query = key = None
        scale = None if query is None or key is None else _scale(logits, query, key)
        self.pending = GivenCall(layer, module, maps.shape[1], self.length, None, query, key, scale, maps)
        return weights

    def _product(self, args: tuple[Any, ...]) -> None:
        """The product of the weights with the values; its left factor is the weights as they are used."""
        operands = [part for part in args if isinstance(part, torch.Tensor)]
        if len(operands) != 2 or operands[0].shape[-2:] != (self.length, self.length):
            return
        weights, value = (self._by_head(part).detach() for part in operands)
        if value.shape[-2] == self.length and self.pending is not None:
            self.pending = replace(self.pending, weights=weights, value=value)
            self.flush()

    def _keep_scores(self, given: list[Any]) -> None:
        """Queries and keys of the last product that has the shape of a map."""
        operands = [part for part in given if isinstance(part, torch.Tensor)][-2:]
        if len(operands) != 2 or min(part.ndim for part in operands) < 3:
            return
        query, key = operands
        if query.shape[-2] == key.shape[-1] == self.length and query.shape[-1] == key.shape[-2]:
            self.scores = self._by_head(query).detach(), self._by_head(key).detach().transpose(-1, -2)

    def flush(self) -> None:
        """Hand over weights formed by the network's own code."""
        if self.pending is not None:
            call, self.pending = self.pending, None
            self.receive(call)

    def _by_head(self, part: torch.Tensor) -> torch.Tensor:
        """(n, heads, rows, columns), also where sequences and heads share an axis."""
        return part if part.ndim == 4 else part.reshape(self.batch, -1, *part.shape[-2:])

    def _is_map(self, weights: torch.Tensor) -> bool:
        """A map has a row per query and a column per key, maybe with sinks behind; a router's has no zeros."""
        if weights.ndim not in (3, 4) or weights.shape[-2] != self.length or weights.shape[-1] < self.length:
            return False
        if weights.ndim == 4:
            return True
        first = weights[..., 0, 1 : self.length]
        return weights.shape[0] % self.batch == 0 and not bool(first.any())


@contextmanager
def _watch(anatomy: Anatomy, mode: _Mode) -> Iterator[Seen]:
    entered: dict[int, torch.nn.Module] = {}
    handles = []

    def hooks(index: int, layer: torch.nn.Module, part: torch.nn.Module, name: str) -> None:
        def enter(*_: Any) -> None:
            if mode.path and mode.path[0][0] != index:
                return  # a module that several layers share, run in another one
            entered[index] = layer
            mode.seen.runs[index] += part is layer
            mode.path.append((index, name))

        def leave(*_: Any) -> None:
            if mode.path and mode.path[-1] == (index, name):
                mode.path.pop()
            if part is layer:
                mode.flush()

        handles.append(part.register_forward_pre_hook(enter))
        handles.append(part.register_forward_hook(leave, always_call=True))

    for index, layer in enumerate(anatomy.layers):
        for name, part in layer.named_modules():
            hooks(index, layer, part, name)
    try:
        with mode:
            yield mode.seen
    finally:
        for handle in handles:
            handle.remove()
    for index, layer in entered.items():
        if not mode.seen.calls[index]:
            mode.seen.without[index] = _mixer(layer, index)


def _mixer(layer: torch.nn.Module, index: int) -> str:
    """The class of a layer's token mixer that has no softmax.

    Raises:
        NotApplicable: when the layer has an attention whose softmax should have been seen.
    """
    kinds = [type(part).__name__ for part in layer.modules()]
    attention = [kind for kind in kinds if "attention" in kind.lower()]
    hidden = [kind for kind in attention if not any(word in kind.lower() for word in RECURRENT)]
    if hidden:
        raise NotApplicable(
            f"layer {index} ({kinds[0]}) has an attention, {hidden[0]}, whose weights were not seen: it uses a kernel "
            "of its own or attends in chunks; load the model with attention='eager', or leave this type out"
        )
    recurrent = [kind for kind in kinds if any(word in kind.lower() for word in RECURRENT) and kind != "Linear"]
    return (attention or recurrent or kinds[:1])[0]


def _scale(logits: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> float | None:
    """The factor between q.k and the logits, None where they are not proportional.

    Read from a second difference over the last queries and the keys before them, in which a bias that depends on the
    key, or on the distance linearly (ALiBi), cancels, and which any window of three shows.
    """
    if logits.shape[-1] < 3:
        return None
    rows, columns = slice(-2, None), slice(-3, -1)
    products = query[:, :, rows].double() @ key[:, :, columns].double().transpose(-1, -2)
    differences = [
        (part[..., 1, 1] - part[..., 1, 0] - part[..., 0, 1] + part[..., 0, 0]).flatten()
        for part in (logits[..., rows, columns].double(), products)
    ]
    taken, plain = differences
    size = float(plain @ plain)
    if not (size > 0 and bool(torch.isfinite(taken).all())):
        return None
    factor = float(taken @ plain) / size
    proportional = bool((taken - factor * plain).norm() <= 1e-2 * taken.norm())
    return factor if proportional else None
