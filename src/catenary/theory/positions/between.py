"""Values at given distances from every group, straight between the centres of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final, no_type_check

import numpy as np
from jaxtyping import Bool, Float64, Int64

from catenary.compiled import run_compiled

Vector = Float64[np.ndarray, " n"]
Matrix = Float64[np.ndarray, "n n"]


@final
@dataclass(frozen=True, eq=False)
class Between:
    """Linear interpolation along a matrix's rows: between columns ``before`` and the next one, by ``share``."""

    row: Int64[np.ndarray, " known"]
    before: Int64[np.ndarray, " known"]
    share: Float64[np.ndarray, " known"]

    @classmethod
    def at(
        cls, centres: Vector, known: Bool[np.ndarray, "n lags"], steps: Float64[np.ndarray, " lags"]
    ) -> Between:
        """The columns ``steps`` away from row g's own on the line of ``centres``; constant beyond the ends."""
        row, lag = np.nonzero(known)
        places = np.clip(centres[row] + steps[lag], centres[0], centres[-1])
        before = np.clip(np.searchsorted(centres, places, side="right") - 1, 0, centres.size - 2)
        return cls(row, before, (places - centres[before]) / (centres[before + 1] - centres[before]))

    def take(self, matrix: Matrix) -> Float64[np.ndarray, " known"]:
        """The values, row by row."""
        out = np.empty(self.row.size)
        run_compiled(_take, matrix, self.row, self.before, self.share, out)
        return out


@no_type_check
def _take(matrix, row, before, share, out):  # arrays: (n, n), (known) four times
    for k in range(row.size):
        left, right = matrix[row[k], before[k]], matrix[row[k], before[k] + 1]
        out[k] = left + (right - left) * share[k]
