"""The table of a link: every predictor at every prompt and slot, and the curves that prompts give together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.retrieval.link.predictors import PREDICTORS
from catenary.retrieval.link.readings import Readings

TINY = 1e-300
"""Stands for 0, where a slot cannot reach the last token, so that its logarithm is finite and its rank the lowest."""


@dataclass(frozen=True, eq=False)
class LinkTable:
    """Readings of n prompts at P slots.

    Attributes:
        slots: the P slots measured, 0-based.
        of: how many slots the prompt has.
        gold: for each prompt, the index of its fact's slot among ``slots``.
        rows: by name in ``ROWS``, (n, P); NaN where it was not read.
        missing: rows that no prompt has, and why.
        skipped: prompts that were not read, with the reason of each.
        tokens: (n,) tokens of each prompt.
    """

    slots: tuple[int, ...]
    of: int
    gold: tuple[int, ...]
    rows: Mapping[str, Float64[np.ndarray, "n P"]]
    missing: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    tokens: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """Prompts that were read."""
        return len(self.gold)

    @property
    def x(self) -> Float64[np.ndarray, " P"]:
        """Place of each slot in the prompt, 0 first to 1 last."""
        return np.array(self.slots, dtype=np.float64) / max(self.of - 1, 1)

    def logs(self, predictor: str) -> Float64[np.ndarray, "n P"] | str:
        """Logarithms of a predictor of prompts, NaN where it is not read; or why there is none."""
        one = PREDICTORS[predictor]
        if one.row not in self.rows:
            return self.missing.get(one.row, "no prompt was read")
        values = np.log(np.maximum(self.rows[one.row], TINY))
        own = np.arange(len(self.slots)) == np.array(self.gold, dtype=np.int64)[:, None]
        if one.where == "others":
            values = np.where(own, np.nan, values)
        elif one.where == "gold":
            values = np.where(own, values, np.nan)
        empty = [str(self.slots[j]) for j in np.flatnonzero(~np.isfinite(values).any(axis=0))]
        return f"no prompt shows it at slot {', '.join(empty)}" if empty else values


def link_table(
    slots: Sequence[int], of: int, read: Sequence[tuple[int, int, Readings]], skipped: Mapping[str, str]
) -> LinkTable:
    """The table of (index of the gold slot, tokens, readings) of each prompt.

    Raises:
        InvalidInput: where no prompt was read.
    """
    if not read:
        why = "; ".join(sorted(set(skipped.values())))[:200]
        raise invalid("link", "needs at least one held-out prompt that can be read", "none", why)
    missing: dict[str, str] = {}
    for _, _, one in read:
        missing |= one.missing
    names = [name for name in read[0][2].rows if all(name in one.rows for _, _, one in read)]
    rows = {name: np.stack([one.rows[name] for _, _, one in read]) for name in names}
    return LinkTable(
        tuple(slots), of, tuple(gold for gold, _, _ in read), rows, missing, dict(skipped),
        tuple(tokens for _, tokens, _ in read),
    )  # fmt: skip


def means(
    rows: Float64[np.ndarray, "n P"], weights: Float64[np.ndarray, "draw n"]
) -> Float64[np.ndarray, "draw P"]:
    """Weighted means over the rows that have a number, slot by slot; NaN where none with weight has."""
    known = np.isfinite(rows)
    total = weights @ known
    summed = weights @ np.where(known, rows, 0.0)
    return np.where(total > 0, summed / np.where(total > 0, total, 1.0), np.nan)
