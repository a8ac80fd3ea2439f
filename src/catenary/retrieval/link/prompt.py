"""A held-out prompt in tokens: what the model reads, the answer's first token, and which tokens each slot holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64, Int64

from catenary.errors import invalid
from catenary.retrieval.case import Case

if TYPE_CHECKING:
    from catenary.retrieval.scoring.encode import Encoder

Span = tuple[int, int]


@dataclass(frozen=True, eq=False)
class LinkPrompt:
    """One prompt.

    Attributes:
        ids: tokens up to the one behind which the answer's first token is predicted, that is the last.
        answer: id of the answer's first token.
        spans: by measured slot, its first token and one past its last; None where the prompt marks no such slot.
        gold: index of the fact's slot among the measured ones.
    """

    ids: Int64[np.ndarray, " L"]
    answer: int
    spans: tuple[Span | None, ...]
    gold: int


def make_prompt(encoder: Encoder, case: Case, slots: Sequence[int]) -> LinkPrompt:
    """The prompt of a case whose fact stands at one of ``slots``.

    Raises:
        InvalidInput: what the encoder refuses, or a fact that stands elsewhere.
    """
    if case.gold is None or case.gold not in slots:
        raise invalid("case", f"must have its fact at one of the slots {tuple(slots)}", case.gold)
    one = encoder.encode(case)
    held = {slot: span for slot, span in one.slots.items() if span[1] > span[0]}
    return LinkPrompt(
        np.concatenate([one.prompt, one.continuation[: one.unscored]]), int(one.answer[0]),
        tuple(held.get(slot) for slot in slots), list(slots).index(case.gold),
    )  # fmt: skip


def summed(tokens: Float64[np.ndarray, " L"], spans: Sequence[Span | None]) -> Float64[np.ndarray, " P"]:
    """Sum over each slot's tokens; NaN where there is no such slot."""
    return np.array([np.nan if span is None else tokens[span[0] : span[1]].sum() for span in spans], dtype=np.float64)


def root_summed(squares: Float64[np.ndarray, " L"], spans: Sequence[Span | None]) -> Float64[np.ndarray, " P"]:
    r"""\(\sqrt{\sum_{j\in\mathrm{slot}}\rho_j^2}\) from the squares: the norm of the slot's whole Jacobian."""
    return np.asarray(np.sqrt(summed(squares, spans)))
