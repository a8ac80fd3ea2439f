r"""What the rollout's authors watch beside it: the control quantity, row entropies, and how monotone attention is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.special import entr

from catenary.errors import invalid
from catenary.theory.rollout.attention import Attending
from catenary.theory.rollout.sides import Rows, Vector

BLOCK = 64
"""Rows or columns formed at a time where all of them are needed: memory stays linear in L."""

TOLERANCE = 1e-10
"""A cumulative sum that falls by less is rounding; the published notebook's value."""


def control_quantity(attentions: Sequence[Attending], strengths: Float64[np.ndarray, " layers"]) -> float:
    r"""\(\sum_t \lambda_t\delta_t\), \(\delta_t = \max_i(1 - A_t[i,i])\): how far the rollout can leave the identity.

    The diagonal of the rollout stays above 0 at infinite depth where \(\sum_t\lambda_t(1 - A_{t,ii})\) is finite: under
    a causal mask \(P_{ii} = \prod_t(1 - \lambda_t(1 - A_{t,ii}))\). Source: arXiv 2602.16837, its published code; the
    product is derived here.

    Raises:
        InvalidInput: another number of strengths than of layers.
    """
    if len(attentions) != strengths.size:
        raise invalid("strengths", f"must be one for each of {len(attentions)} layers", strengths.size)
    largest = [float((1 - attention.diagonal).max()) for attention in attentions]
    return float(strengths @ np.array(largest))


def row_entropies(attention: Attending) -> Vector:
    """Entropy of every row of A, in nats, 0 to ln of the keys seen. O(L^2) time, O(L) memory."""
    return np.concatenate([entr(rows).sum(axis=-1) for rows in _blocks(attention, columns=False)])


@dataclass(frozen=True)
class Violations:
    """How often, and by how much, later queries give more to the first keys than earlier queries do.

    Attributes:
        rate: share of the triples (i < j, k) with \\(\\sum_{l\\le k}A_{il} < \\sum_{l\\le k}A_{jl}\\).
        size: mean of that difference over the triples that violate; NaN where none does.
        relative: mean of the difference over the larger sum, over the same triples; NaN where none does.
        triples: how many triples there are, L L(L-1)/2. Where k >= i a causal row is complete and cannot violate.
    """

    rate: float
    size: float
    relative: float
    triples: int


def monotonicity_violations(columns: Iterable[Vector], tolerance: float = TOLERANCE) -> Violations:
    r"""Test of the assumption \(\sum_{l\le k}A_{il} \ge \sum_{l\le k}A_{jl}\) for all i < j and k.

    It holds for every causal prior of ``Head``: in a later query's row the first keys have the same weights, faded
    further or out of sight, over a larger sum (derived here). Attention that looks at content breaks it. O(L^2) per
    column. Source: arXiv 2602.16837, its published notebook, which applies ALiBi to attention probabilities and takes
    a softmax of them again; that is not done here.

    Args:
        columns: for k = 0, 1, ...: the sums over keys 0..k of every row, (L,); ``cumulative_columns`` gives those of an
            attention, ``np.cumsum(matrix, axis=1).T`` those of a matrix.
        tolerance: a smaller difference is no violation.
    """
    count, size, relative, triples = 0, 0.0, 0.0, 0
    for column in columns:
        length = column.size
        triples += length * (length - 1) // 2
        # Where nothing behind a row exceeds it, it violates nothing: most rows of most columns.
        later = np.maximum.accumulate(column[::-1])[::-1]
        for i in np.flatnonzero(later[1:] - column[:-1] > tolerance):
            excess = column[i + 1 :] - column[i]
            over = excess > tolerance
            count += int(over.sum())
            size += float(excess[over].sum())
            relative += float((excess[over] / column[i + 1 :][over]).sum())
    if triples == 0:
        raise invalid("columns", "must hold at least one column of two rows", "none")
    if count == 0:
        return Violations(0.0, float("nan"), float("nan"), triples)
    return Violations(count / triples, size / count, relative / count, triples)


def cumulative_columns(attention: Attending) -> Iterator[Vector]:
    r"""\(\sum_{l\le k}A_{il}\) of every query i, for k = 0, 1, ...; O(L) memory."""
    for columns in _blocks(attention, columns=True):
        yield from columns


def _blocks(attention: Attending, *, columns: bool) -> Iterator[Rows]:
    """Rows of A, or cumulative columns, some at a time."""
    length = attention.length
    for start in range(0, length, BLOCK):
        index = np.arange(start, min(start + BLOCK, length))
        if columns:
            yield attention.average((np.arange(length) <= index[:, None]).astype(np.float64))
        else:
            unit = np.zeros((index.size, length))
            unit[np.arange(index.size), index] = 1.0
            yield attention.adjoint(unit)
