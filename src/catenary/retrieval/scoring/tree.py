"""A walk through the prefix tree of several token sequences, on which every shared stretch is run once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True)
class Turn:
    """One sequence's turn: ``rows`` are the equal sequences, ``shared`` their first tokens that the turn before ran."""

    rows: tuple[int, ...]
    shared: int


def turns(sequences: Sequence[Int64[np.ndarray, " _"]]) -> tuple[Turn, ...]:
    """The sequences in lexicographic order, each with what it shares with the one before.

    In this order no earlier sequence shares more than the one just before, so that one cache is enough, and the
    tokens run, the sum of (length - shared), are the nodes of the prefix tree: none is run twice. A sequence is never
    shared whole: of equal ones the first is run, and a beginning of another comes before it.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, ids in enumerate(sequences):
        groups.setdefault(tuple(ids.tolist()), []).append(row)
    made: list[Turn] = []
    before: tuple[int, ...] = ()
    for own in sorted(groups):
        shared = next((k for k, (a, b) in enumerate(zip(before, own, strict=False)) if a != b), len(before))
        made.append(Turn(tuple(groups[own]), shared))
        before = own
    return tuple(made)


def tokens_run(sequences: Sequence[Int64[np.ndarray, " _"]]) -> int:
    """Tokens that the walk runs."""
    return sum(len(sequences[turn.rows[0]]) - turn.shared for turn in turns(sequences))
