"""What is checked before a measurement runs, and of the network's state once it does."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from catenary.errors import NotApplicable, invalid
from catenary.measure.feed import Feed
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.rope import is_rotary_off
from catenary.text.windows import Windows


def check_count(name: str, value: int, least: int = 1) -> None:
    """An integer, at least 1 (0 for a seed)."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise invalid(name, f"must be an integer >= {least}", value)


def chosen_rows(sequences: Sequence[int] | None, count: int) -> list[int]:
    """The windows to measure: all, or the distinct ones named."""
    rows = list(range(count)) if sequences is None else [int(index) for index in sequences]
    if not rows or any(not 0 <= index < count for index in rows) or len(set(rows)) < len(rows):
        raise invalid("sequences", f"must be distinct window indices in 0..{count - 1}", rows)
    return rows


def check_state(model: Model, stream: Float[torch.Tensor, "n *L d"], batch: Sequence[int]) -> None:
    """Refuse NaN or inf, naming the window, and rotary positions that came back."""
    finite = torch.isfinite(stream).flatten(1).all(1).tolist()
    if not all(finite):
        raise invalid(
            "model", f"must give finite hidden states in window {batch[finite.index(False)]}", "NaN or inf",
            "use dtype='float32', or look at the weights",
        )
    if not model.rope and not is_rotary_off(model.module):
        raise NotApplicable(
            f"rope=False does not hold for {model.name!r} at this length: it sets its rotary frequencies again"
        )


def windows_record(windows: Windows, feed: Feed) -> dict[str, Any]:
    """What was fed, for the provenance of a result."""
    return {
        "kind": windows.kind,
        "vectors": windows.vectors,
        "seed": windows.seed,
        "count": len(windows),
        "length": feed.length,
        "padded": feed.padded,
        "ids_sha256": hashlib.sha256(np.ascontiguousarray(windows.ids).tobytes()).hexdigest(),
        "report": dict(windows.report),
    }
