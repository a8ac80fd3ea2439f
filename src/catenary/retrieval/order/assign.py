"""Which document goes where: the rearrangement of relevance by slot weight, and the plain orders it competes with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid

Ranks = tuple[int, ...]
"""Slot of each rank: entry r is the 0-based slot of the document of rank r, the most relevant being rank 0."""


@dataclass(frozen=True)
class SlotWeights:
    """How well a fact is used at each measured place of a prompt.

    Attributes:
        x: places in [0, 1], rising; 0 is the first slot and 1 the last.
        weights: mean score there.
    """

    x: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse what cannot be interpolated."""
        if len(self.x) < 2 or len(self.x) != len(self.weights):
            rule = f"must hold one number for each of {len(self.x)} places, two or more"
            raise invalid("weights", rule, self.weights)
        if list(self.x) != sorted(set(self.x)) or self.x[0] < 0 or self.x[-1] > 1:
            raise invalid("x", "must rise within [0, 1]", self.x)
        if not np.isfinite(self.weights).all():
            raise invalid("weights", "must be finite", self.weights)

    def at(self, documents: int) -> Float64[np.ndarray, " K"]:
        """Weights of the slots of a prompt of K documents, linear between the places measured."""
        return np.asarray(between(np.array(self.x), documents) @ np.array(self.weights))


def places(documents: int) -> Float64[np.ndarray, " K"]:
    """Place of each of K slots, 0 to 1; a single document stands at 1, next to the question."""
    if documents < 1:
        raise invalid("documents", "must be at least 1", documents)
    return np.linspace(0, 1, documents) if documents > 1 else np.ones(1)


def between(x: Float64[np.ndarray, " P"], documents: int) -> Float64[np.ndarray, "K P"]:
    """Weights of the P measured places in each of K slots, linear between them; a measured place has itself alone.

    Exactly so: rounding must not break a tie of two slots.
    """
    at = places(documents)
    basis = np.stack([np.interp(at, x, unit) for unit in np.eye(len(x))], axis=1)
    own = np.abs(at[:, None] - x) < 1e-9
    return np.where(own.any(axis=1, keepdims=True), own.astype(np.float64), basis)


def by_weight(weights: Sequence[float] | Float64[np.ndarray, " K"]) -> Ranks:
    r"""The most relevant document to the slot of largest weight, the next to the next; ties keep slot order.

    For relevances \(r_1\ge\dots\ge r_K\) this order has the largest \(\sum_i r_i w_{s(i)}\) of all (the rearrangement
    inequality, Hardy, Littlewood and Polya 1934, 10.2). That sum is the expected score when \(r_i\) is the probability
    that document i holds the fact.
    """
    values = np.asarray(weights, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise invalid("weights", "must be a list of finite numbers, one for each slot", weights)
    return tuple(int(slot) for slot in np.argsort(-values, kind="stable"))


def best_first(documents: int) -> Ranks:
    """Most relevant first, least relevant last: what a retriever returns."""
    return tuple(range(documents))


def best_last(documents: int) -> Ranks:
    """Most relevant last, next to the question."""
    return tuple(reversed(range(documents)))


def edges_best_first(documents: int) -> Ranks:
    """Ranks alternate between the ends from the first slot on: 0, K-1, 1, K-2, ..."""
    return tuple(rank // 2 if rank % 2 == 0 else documents - 1 - rank // 2 for rank in range(documents))


def edges_best_last(documents: int) -> Ranks:
    """Ranks alternate between the ends so that they end in the middle as LangChain's LongContextReorder has them.

    For an even number of documents the most relevant goes last and the next first; for an odd number the most
    relevant goes first and the next last.
    """
    ranks = edges_best_first(documents)
    return ranks if documents % 2 else tuple(documents - 1 - slot for slot in ranks)


PLAIN: Mapping[str, Callable[[int], Ranks]] = {
    "best first": best_first,
    "best last": best_last,
    "edges, best first": edges_best_first,
    "edges, as LongContextReorder": edges_best_last,
}
"""Orders that need no measurement, by the name they are printed under."""

EDGES = ("edges, best first", "edges, as LongContextReorder")
"""Those that put the most relevant documents at both ends."""


def order_documents(relevance: Sequence[float], ranks: Ranks) -> tuple[int, ...]:
    """Index of the document at each slot, first to last; documents of equal relevance keep their order.

    Raises:
        InvalidInput: where a relevance is not finite, or there are not as many as ranks.
    """
    values = np.asarray(relevance, dtype=np.float64)
    if values.shape != (len(ranks),):
        raise invalid("scores", f"must hold one number for each of {len(ranks)} documents", len(relevance))
    if not np.isfinite(values).all():
        raise invalid("scores", "must be finite", list(relevance))
    if sorted(ranks) != list(range(len(ranks))):
        raise invalid("ranks", "must name every slot once", ranks)
    order = [0] * len(ranks)
    for document, slot in zip(np.argsort(-values, kind="stable"), ranks, strict=True):
        order[slot] = int(document)
    return tuple(order)


def arrange(relevance: Sequence[float], weights: SlotWeights) -> tuple[int, ...]:
    """Index of the document at each slot by a measured curve, interpolated to as many slots as there are documents."""
    return order_documents(relevance, by_weight(weights.at(len(relevance)))) if len(relevance) else ()
