"""Readings: what one held-out prompt shows at its last token, one number for each slot, as it is kept on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64


@dataclass(frozen=True, eq=False)
class Readings:
    """Rows of one prompt, by the names in ``ROWS``, one number for each measured slot; ``missing`` says what lacks.

    A number is NaN where the prompt marks no such slot.
    """

    rows: Mapping[str, Float64[np.ndarray, " P"]]
    missing: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        rows = {name: [None if np.isnan(v) else float(v) for v in row] for name, row in self.rows.items()}
        return {"rows": rows, "missing": dict(self.missing)}


def readings_from(record: Mapping[str, Any]) -> Readings:
    """What ``to_dict`` recorded."""
    rows = {
        name: np.array([np.nan if v is None else v for v in row], dtype=np.float64)
        for name, row in record["rows"].items()
    }
    return Readings(rows, dict(record["missing"]))
