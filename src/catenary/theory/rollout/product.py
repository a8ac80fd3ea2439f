r"""The rollout: \(P = R_{T-1}\cdots R_1R_0\), \(R_t = (1-\lambda_t)I + \lambda_tA_t\), one row carried downwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.theory.cesaro.first_moment import checked_position
from catenary.theory.rollout.attention import Attending
from catenary.theory.rollout.sides import Vector


def rollout_row(
    attentions: Sequence[Attending], strengths: Float64[np.ndarray, " layers"], query: int | None = None
) -> Vector:
    r"""Row ``query`` of the rollout, index 0 the first token: from \(v = e_q\), downwards \(v \leftarrow R_t^\top v\).

    O(L) per layer and head; the row sums to 1. With \(\lambda = 1\) it is attention-only rollout; with uniform causal
    attention it is ``cesaro_row`` with mixing \(\lambda_t\). Source: arXiv 2602.16837, as its published code has it.

    Args:
        attentions: A_t from the bottom, t = 0..T-1.
        strengths: \(\lambda_t\) in [0, 1], from a schedule.
        query: 0-based position whose row is wanted; None: the last.

    Raises:
        InvalidInput: unequal numbers of layers or positions, or a query that is not there.
    """
    if not attentions or len(attentions) != strengths.size:
        raise invalid("strengths", f"must be one for each of {len(attentions)} layers", strengths.size)
    lengths = {attention.length for attention in attentions}
    if len(lengths) != 1:
        raise invalid("attentions", "must all have one length", sorted(lengths))
    (length,) = lengths
    row = np.zeros(length)
    row[-1 if query is None else checked_position("query", query, length)] = 1.0
    for attention, strength in zip(reversed(attentions), strengths[::-1], strict=True):
        row = (1 - strength) * row + strength * attention.adjoint(row)
    return row
