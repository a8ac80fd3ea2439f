"""Gauss-Legendre points on fractions of an interval, closer together near its start, and interpolation between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float64


@dataclass(frozen=True)
class Points:
    """Nodes in (0, 1) and weights that sum to 1."""

    nodes: Float64[np.ndarray, " n"]
    weights: Float64[np.ndarray, " n"]


@cache
def gauss(count: int) -> Points:
    """The Gauss-Legendre rule on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return Points((nodes + 1) / 2, weights / 2)


@cache
def fractions(count: int) -> Points:
    """``count`` points on each of 36 pieces of (0, 1): sixteenths, and halves of halves down to 2^-20 of the whole."""
    breaks = np.unique(np.concatenate([[0.0], 0.5 ** np.arange(20.0, 4.0, -1.0), np.arange(1, 17) / 16]))
    rule, widths = gauss(count), np.diff(breaks)
    return Points(
        (breaks[:-1, None] + widths[:, None] * rule.nodes).ravel(), (widths[:, None] * rule.weights).ravel()
    )


def lagrange(
    nodes: Float64[np.ndarray, " n"], at: Float64[np.ndarray, "*shape"]
) -> Float64[np.ndarray, "*shape n"]:
    """Values at ``at`` of the polynomials that are 1 at one node and 0 at the others."""
    gaps = nodes[:, None] - nodes + np.eye(nodes.size)
    scale = 1 / np.prod(gaps, axis=1)
    distance = at[..., None] - nodes
    hit = distance == 0
    terms = scale / np.where(hit, 1.0, distance)
    values = terms / terms.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(hit.any(axis=-1, keepdims=True), hit.astype(np.float64), values))
