"""Advice: a measured curve turned into an order of documents, with what that order gains where it can be held out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from catenary.errors import invalid
from catenary.retrieval.order.assign import PLAIN, Ranks, SlotWeights, by_weight, order_documents
from catenary.retrieval.order.gain import (
    FEWEST,
    SEPARATIONS,
    Gains,
    OrderVerdict,
    expected_gains,
    judge_order,
    separation_name,
)
from catenary.retrieval.order.scores import Scored, weights_of
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.records import MeanCurve
from catenary.retrieval.statistics.curve import SlotCurve, slot_curve


@dataclass(frozen=True, eq=False)
class Advice:
    """Where to put each document.

    Attributes:
        metric: what the curve measures.
        weights: the measured curve.
        documents: K, the slots to fill.
        ranks: slot of each rank, by the curve of all samples.
        order: index of the document at each slot; None without scores.
        scored: the documents and their relevance; None without scores.
        gains: held-out gains; None where the curve has no samples to hold out.
        verdict: whether measuring pays, at ``separation``.
        curve: the samples' curve; None for a published one.
        notes: sentences for print.
    """

    metric: str
    weights: SlotWeights
    documents: int
    ranks: Ranks
    order: tuple[int, ...] | None
    scored: Scored | None
    gains: Gains | None
    verdict: OrderVerdict
    curve: SlotCurve | None
    separation: float
    notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the documents at each slot; ``rank 1`` and so on without scores."""
        if self.scored is None or self.order is None:
            at = np.argsort(self.ranks)
            return tuple(f"rank {rank + 1}" for rank in at)
        return tuple(self.scored.names[document] for document in self.order)

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "metric": self.metric, "documents": self.documents, "order": list(self.names),
            "order_indices": None if self.order is None else list(self.order), "slot_of_rank": list(self.ranks),
            "slot_weights": self.weights.at(self.documents).tolist(), "verdict": self.verdict.word,
            "words": self.verdict.words, "separation": separation_name(self.separation),
            "gains": None if self.gains is None else self.gains.to_dict(),
        }  # fmt: skip


def advise(
    curve: Outcomes | MeanCurve,
    scored: Scored | None = None,
    *,
    metric: str = "logp",
    documents: int | None = None,
    separation: float = 1.0,
    separations: Sequence[float] = SEPARATIONS,
    seed: int = 0,
    predicted: Mapping[str, SlotWeights] | None = None,
) -> Advice:
    """The order that a measured curve gives, and its held-out gains.

    Args:
        curve: outcomes, or a published curve, which has no samples to hold out and so no gains.
        scored: documents with their relevance; without them the order is that of ranks.
        metric: of outcomes.
        documents: K; default: as many as are scored, else as the prompts had.
        separation: d' of the retriever that the verdict is for; one of ``separations`` or added to them.
        separations: d' of the retrievers that gains are computed for.
        seed: of halves and bootstrap.
        predicted: further orders to compare, from weights that did not come from these samples.

    Raises:
        InvalidInput: where ``documents`` and the scores disagree, for an unknown metric, or a curve of one slot.
    """
    count = documents if documents is not None else len(scored.names) if scored else curve.of
    if scored is not None and count != len(scored.names):
        raise invalid("documents", f"must be the {len(scored.names)} that have scores, or be left out", count)
    weights = weights_of(curve, metric)
    ranks = by_weight(weights.at(count))
    order = None if scored is None else order_documents(scored.relevance, ranks)
    rows = None if isinstance(curve, MeanCurve) else slot_curve(curve, metric, seed)
    notes = _interpolated(len(weights.x), curve.of, count)
    gains = None
    if rows is None:
        verdict = _unreported("a curve without samples cannot hold any out")
    elif rows.n < FEWEST or count < 2:
        few = f"{rows.n} complete samples" if rows.n < FEWEST else "one document"
        verdict = _unreported(f"{few}, and {FEWEST} samples and 2 documents are needed")
    else:
        at = tuple(separations) if separation in separations else (*separations, separation)
        gains = expected_gains(rows, count, sorted(at), predicted, seed=seed)
        verdict = judge_order(gains, separation)
        notes += _elsewhere(gains, separation, verdict) + rows.lines()
    return Advice(
        rows.metric if rows else "score", weights, count, ranks, order, scored, gains, verdict, rows, separation,
        (*verdict.notes, *notes),
    )  # fmt: skip


def _unreported(reason: str) -> OrderVerdict:
    return OrderVerdict("no verdict", f"What the order gains is not reported: {reason}.")


def _interpolated(measured: int, of: int, count: int) -> list[str]:
    """Say where the slots are not those that were measured."""
    if measured == of == count:
        return []
    return [
        f"The curve has {measured} slots of prompts of {of} documents; {count} documents take the places between them, "
        "which assumes that a place counts as a fraction of the prompt."
    ]


def _elsewhere(gains: Gains, separation: float, verdict: OrderVerdict) -> list[str]:
    """Retrievers for which the verdict is another."""
    said = {
        "nothing": "nothing is to be gained", "plain order": "a plain order is as good", "measured": "the curve helps",
    }  # fmt: skip
    notes = []
    for d in gains.separations:
        other = judge_order(gains, d)
        if d != separation and other.word != verdict.word:
            name = "With a perfect retriever" if math.isinf(d) else f"At d' = {d:g}"
            best = max(PLAIN, key=lambda plain: gains.gain[plain][gains.separations.index(d)].value)
            notes.append(f"{name} {said[other.word]}" + (f" ({best})." if other.word == "plain order" else "."))
    return notes
