"""ALiBi inside a sliding window: exponential in the distance, cut off behind w tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.theory.positions.scan import Scan, along, check_whole, frozen


@final
@dataclass(frozen=True)
class FadingWindow(Scan):
    r"""\(A_{ij} = e^{-m(i-j)}/Z_i\) for i - w < j <= i, \(Z_i = \frac{1-e^{-mn}}{1-e^{-m}}\), n = min(i, w) (1-based).

    Rows sum to 1. Additions of positive terms only, O(L). With w >= L it is ``Decaying``, as m -> 0 ``Windowed``.
    Derived here.

    Attributes:
        width: w >= 1.
        slope: m > 0, in logits per token.
    """

    width: int
    slope: float

    def __post_init__(self) -> None:
        """Refuse sizes that are none, and a slope that does not decay."""
        super().__post_init__()
        check_whole("width", self.width)
        if not (math.isfinite(self.slope) and self.slope > 0):
            raise invalid("slope", "must be finite and > 0", self.slope, "use Windowed for no decay")

    @property
    def _seen(self) -> Float64[np.ndarray, " L"]:
        return np.asarray(np.minimum(np.arange(1.0, self.length + 1.0), float(self.width)))

    @cached_property
    def sums(self) -> Float64[np.ndarray, " L"]:
        r"""\(Z_i\), what each row is divided by."""
        return frozen(np.expm1(-self.slope * self._seen) / math.expm1(-self.slope))

    @cached_property
    def counts(self) -> Float64[np.ndarray, " L"]:
        r"""Participation number \(1/\sum_j A_{ij}^2 = \tanh(mn/2)/\tanh(m/2)\)."""
        return frozen(np.tanh(self.slope * self._seen / 2) / math.tanh(self.slope / 2))

    def _average(self, x: Float64[np.ndarray, " *shape"], axis: int) -> Float64[np.ndarray, " *shape"]:
        y = self._fading_sum(x, axis)
        y /= along(self.sums, x, axis)
        return y

    def _adjoint(self, x: Float64[np.ndarray, " *shape"], axis: int) -> Float64[np.ndarray, " *shape"]:
        return np.flip(self._fading_sum(np.flip(x / along(self.sums, x, axis), axis), axis), axis)

    def _fading_sum(self, x: Float64[np.ndarray, " *shape"], axis: int) -> Float64[np.ndarray, " *shape"]:
        r"""\(y_i = \sum_{i-w<j\le i} e^{-m(i-j)}x_j\), from blocks of w: the head of one, the tail of that before.

        The head restarts at every block; the tail is a sum to its block's end, faded by the way from there.
        """
        width = min(self.width, self.length)
        rows = np.moveaxis(x, axis, -1)
        padded = np.zeros((*rows.shape[:-1], -(-self.length // width) * width))
        padded[..., : self.length] = rows
        blocks = padded.reshape(*rows.shape[:-1], -1, width)
        from scipy.signal import lfilter  # slow to import

        y = lfilter([1.0], [1.0, -math.exp(-self.slope)], blocks, axis=-1)
        faded = np.exp(-self.slope * np.arange(width))
        tails = np.cumsum((blocks * faded[::-1])[..., ::-1], axis=-1)[..., ::-1]
        y[..., 1:, :-1] += (faded[1:] * tails[..., :-1, 1:]) if width > 1 else 0.0
        y = y.reshape(padded.shape)[..., : self.length]
        y[np.abs(y) < np.finfo(np.float64).tiny] = 0.0
        return np.ascontiguousarray(np.moveaxis(y, -1, axis))
