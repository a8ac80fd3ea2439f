"""Content priors: what a head adds to the score of a query's own key, per layer and head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid

Content = float | Sequence[float] | Sequence[Sequence[float]] | Float64[np.ndarray, " *shape"]
"""One number for all, one per layer, or layers x heads."""


def content_diagonal(
    content: Content, layers: int, heads: int, only_first_heads: bool = False
) -> Float64[np.ndarray, "{layers} {heads}"]:
    """The prior of every layer and head, in logits; sizes of 1 stand for all layers, or all heads.

    A prior's base, the same for all keys of a row, has no effect on a softmax and has no place here.

    Args:
        content: a number, a list of one per layer, or a list of lists, layers x heads.
        layers: T >= 1.
        heads: of one layer, >= 1.
        only_first_heads: give it to as many heads as are listed, and none to the others, as the published code does
            (departure ``content-in-first-heads``).

    Raises:
        InvalidInput: another shape, or a number that is not finite.

    >>> content_diagonal([[3.0]], 2, 2, only_first_heads=True).tolist()
    [[3.0, 0.0], [3.0, 0.0]]
    """
    wanted = f"must be a number, {layers} numbers, or {layers} x {heads} of them (1 stands for all)"
    try:
        values = np.array(content, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid("content", wanted, content) from None
    if values.ndim < 2:
        values = values.reshape(-1, 1)
    if values.ndim > 2 or values.shape[0] not in (1, layers) or values.shape[1] not in (1, heads):
        raise invalid("content", wanted, f"shape {np.shape(content)}")
    if not np.isfinite(values).all():
        raise invalid("content", "must be finite", float(values[~np.isfinite(values)][0]))
    full = np.array(np.broadcast_to(values, (layers, heads)))
    if only_first_heads:
        full[:, values.shape[1] :] = 0.0
    return full
