"""Which share of an attention's heads has which kernel; many ALiBi slopes are stood for by a few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Alibi, HeadGroup, Kernel

MOST_SLOPES = 9
"""Slopes that stand for all of them: the norm under 16 or 32 is within 1e-3 of that under each by itself."""


@dataclass(frozen=True)
class Portion:
    """A share of all heads, in (0, 1], and their mean kernel."""

    share: float
    kernel: Kernel


PortionsOf = Callable[[Sequence[HeadGroup]], tuple[Portion, ...]]
"""From the head groups of one attention to their portions; shares sum to 1."""


def each(groups: Sequence[HeadGroup]) -> tuple[Portion, ...]:
    """Every group by itself: exact."""
    heads = sum(group.heads for group in groups)
    return tuple(Portion(group.heads / heads, group.kernel) for group in groups)


def merged(groups: Sequence[HeadGroup], most: int = MOST_SLOPES) -> tuple[Portion, ...]:
    r"""``each``, with ALiBi's slopes m replaced by ``most`` others where there are more.

    What a layer does is a mean over heads of a function of m, smooth in \(\ln m\). The Gauss rule of the heads'
    discrete measure in \(\ln m\) takes it exactly for polynomials up to degree 2 ``most`` - 2, with one node at the
    gentlest slope, which decides how energies fall far back: with none there, the norm is 4 % off at 12 memories for
    32 slopes. Derived here.
    """
    portions = each(groups)
    decaying = [portion for portion in portions if isinstance(portion.kernel, Alibi)]
    slopes = {portion.kernel.slope for portion in decaying if isinstance(portion.kernel, Alibi)}
    if len(slopes) <= most:
        return portions
    others = tuple(portion for portion in portions if not isinstance(portion.kernel, Alibi))
    logs = np.log([portion.kernel.slope for portion in decaying if isinstance(portion.kernel, Alibi)])
    shares = np.array([portion.share for portion in decaying])
    rule = gauss_rule(logs, shares, most, float(logs.min()))
    stood_for = (Portion(float(share), Alibi(math.exp(at))) for at, share in zip(rule.nodes, rule.weights, strict=True))
    return (*others, *stood_for)


@dataclass(frozen=True, eq=False)
class Rule:
    """A quadrature: the sum of weights * f(nodes)."""

    nodes: Float64[np.ndarray, " nodes"]
    weights: Float64[np.ndarray, " nodes"]


def gauss_rule(
    points: Float64[np.ndarray, " n"], weights: Float64[np.ndarray, " n"], size: int, end: float | None = None
) -> Rule:
    """The Gauss rule of a discrete measure: Lanczos' recursion, then the eigenvalues of its matrix.

    Args:
        points: where the measure sits; at least ``size`` different ones.
        weights: how much, > 0.
        size: number of nodes.
        end: a node to have (Radau's rule), no point beyond it on one side.
    """
    total = float(weights.sum())
    basis = [np.sqrt(weights / total)]
    diagonal, beside = [], []
    for _ in range(size):
        following = points * basis[-1]
        diagonal.append(float(following @ basis[-1]))
        # Against all earlier ones, not only two: the recursion loses orthogonality in floating point.
        for earlier in basis:
            following = following - (earlier @ following) * earlier
        beside.append(float(np.linalg.norm(following)))
        basis.append(following / beside[-1])
    if end is not None and size > 1:
        inner = np.diag(diagonal[:-1]) + np.diag(beside[:-2], 1) + np.diag(beside[:-2], -1) - end * np.eye(size - 1)
        last = np.append(np.zeros(size - 2), beside[-2] ** 2)
        diagonal[-1] = end + float(np.linalg.solve(inner, last)[-1])
    matrix = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    nodes, vectors = np.linalg.eigh(matrix)
    return Rule(nodes, total * vectors[0] ** 2)
