"""Rates by position: prompts skipped, generations that are empty, and those that did not end within their limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.retrieval.scoring.scored import Scored


@dataclass(frozen=True, eq=False)
class Rates:
    """Shares in [0, 1] by position: ``skipped`` of all samples, the others of those scored, NaN where none was."""

    skipped: Float64[np.ndarray, " P"]
    empty: Float64[np.ndarray, " P"]
    truncated: Float64[np.ndarray, " P"]
    apart: Float64[np.ndarray, " P"]


def rates(rows: Sequence[Sequence[Scored]]) -> Rates:
    """Rates of n samples at P positions."""
    skipped = np.array([[bool(cell.skipped) for cell in row] for row in rows])

    def share(of: Sequence[Sequence[bool]]) -> Float64[np.ndarray, " P"]:
        counted = (np.array(of) & ~skipped).sum(axis=0)
        scored = (~skipped).sum(axis=0)
        return np.where(scored > 0, counted / np.maximum(scored, 1), np.nan)

    return Rates(
        skipped.mean(axis=0),
        share([[not cell.text.strip() for cell in row] for row in rows]),
        share([[not cell.ended for cell in row] for row in rows]),
        share([[cell.apart for cell in row] for row in rows]),
    )
