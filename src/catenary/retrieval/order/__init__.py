"""Orders of documents: who stands where, what a retriever's ranks are, what an order gains, adapters."""

from catenary.retrieval.order.assign import (
    PLAIN,
    Ranks,
    SlotWeights,
    arrange,
    best_first,
    best_last,
    by_weight,
    edges_best_first,
    edges_best_last,
    order_documents,
)
from catenary.retrieval.order.gain import Estimate, Gains, OrderVerdict, expected_gains, judge_order
from catenary.retrieval.order.ranks import rank_shares

__all__ = [
    "PLAIN", "Estimate", "Gains", "OrderVerdict", "Ranks", "SlotWeights", "arrange", "best_first", "best_last",
    "by_weight", "edges_best_first", "edges_best_last", "expected_gains", "judge_order", "order_documents",
    "rank_shares",
]  # fmt: skip
