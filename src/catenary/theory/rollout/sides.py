"""Keys before and behind a query: how much they weigh together, and their softmax among themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Alibi, Causal, Chunk, Kernel, Prefix, Window
from catenary.errors import NotApplicable
from catenary.theory.positions.decay import Decaying
from catenary.theory.positions.scan import Operator
from catenary.theory.positions.uniform import Chunked, Uniform, Windowed
from catenary.theory.rollout.fading import FadingWindow

Vector = Float64[np.ndarray, " L"]
Rows = Float64[np.ndarray, "*n L"]


@dataclass(frozen=True)
class Full:
    """Every token sees every token. With a slope, the bias is - slope |i - j|."""


Mask = Causal | Window | Chunk | Prefix | Full
"""Which keys a query sees."""


@final
@dataclass(frozen=True, eq=False)
class Side:
    """The keys on one side of every query.

    A query's earlier keys keep the ratios that the query before it gives to all it sees: the kernel shifted by one.
    ``flipped`` counts from the last of the first n positions instead, which makes them later keys.

    Attributes:
        length: number of positions L.
        base: that kernel, on n - 1 positions, n <= L; none where n = 1.
        log_weights: log of the sum of exp(score) over the side, the own key at 0; -inf where there is no key.
        flipped: later keys instead of earlier ones.
    """

    length: int
    base: Operator | None
    log_weights: Vector
    flipped: bool = False

    def average(self, x: Rows) -> Rows:
        """Mean over these keys, along the last axis; of no meaning where there is none."""
        return self._shifted(x, adjoint=False)

    def adjoint(self, x: Rows) -> Rows:
        """The transpose of ``average``."""
        return self._shifted(x, adjoint=True)

    def _shifted(self, x: Rows, *, adjoint: bool) -> Rows:
        y = np.zeros(x.shape)
        if self.base is None:
            return y
        inside = slice(0, self.base.length + 1)
        taken, out = x[..., inside], y[..., inside]
        if self.flipped:
            taken, out = taken[..., ::-1], out[..., ::-1]
        if adjoint:
            out[..., :-1] = self.base.adjoint(taken[..., 1:], -1)
        else:
            out[..., 1:] = self.base.average(taken[..., :-1], -1)
        return y


def earlier(mask: Mask, slope: float, length: int) -> Side:
    """The keys before each query."""
    before = np.arange(float(length))
    base: Operator | None
    match mask:
        case Window(width):
            count = np.minimum(before, width - 1.0)
            base = None if width == 1 or length == 1 else _windowed(length - 1, width - 1, slope)
        case Chunk(width) if slope == 0:
            count = before % width
            base = None if length == 1 else Chunked(length - 1, width)
        case Chunk():
            raise NotApplicable("the rollout knows no slope inside chunks; give a chunk mask without one")
        case _:
            count = before
            base = None if length == 1 else Uniform(length - 1) if slope == 0 else Decaying(length - 1, slope)
    return Side(length, base, _log_weights(count, slope))


def later(mask: Mask, slope: float, length: int) -> Side | None:
    """The keys behind each query; None where the mask shows none."""
    inside = length if isinstance(mask, Full) else min(mask.length, length) if isinstance(mask, Prefix) else 1
    if inside == 1:
        return None
    weights = np.full(length, -np.inf)
    weights[:inside] = _log_weights(np.arange(float(inside)), slope)[::-1]
    base = Uniform(inside - 1) if slope == 0 else Decaying(inside - 1, slope)
    return Side(length, base, weights, flipped=True)


def mask_of(kernel: Kernel) -> Mask:
    """The mask of a mean attention kernel, without ALiBi's slope."""
    return Causal() if isinstance(kernel, Alibi) else kernel


def slope_of(kernel: Kernel) -> float:
    """ALiBi's slope of a mean attention kernel, 0 for the others."""
    return kernel.slope if isinstance(kernel, Alibi) else 0.0


def _windowed(length: int, width: int, slope: float) -> Operator:
    return Windowed(length, width) if slope == 0 else FadingWindow(length, width, slope)


def _log_weights(count: Vector, slope: float) -> Vector:
    r"""\(\ln\sum_{k=1}^{n} e^{-mk}\) for n = ``count`` keys at distances 1..n; -inf for n = 0."""
    with np.errstate(divide="ignore"):
        if slope == 0:
            return np.asarray(np.log(count))
        return np.asarray(-slope + np.log(np.expm1(-slope * count) / np.expm1(-slope)))
