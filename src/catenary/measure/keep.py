"""Keep: what may stand between some windows and their measurement, so that finished windows are stored and not lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

Numbers = Float64[np.ndarray, "*shape"]

Keep = Callable[[Sequence[int], Callable[[], Any]], Any]
"""Gets the indices of some windows and a function that measures them; gives back that function's array, new or kept.

The array must be the one the function would give: a measurement trusts it.
"""


def unkept(rows: Sequence[int], make: Callable[[], Numbers]) -> Numbers:
    """Measure now, and keep nothing."""
    return make()
