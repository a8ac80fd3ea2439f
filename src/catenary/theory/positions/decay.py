"""Kernels that decay exponentially with distance: ALiBi's mean attention."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float64

from catenary.errors import invalid
from catenary.theory.positions.running import decaying_sum
from catenary.theory.positions.scan import Scan, along, frozen


@final
@dataclass(frozen=True)
class Decaying(Scan):
    r"""ALiBi's kernel of slope m: \(A_{ij} = e^{-m(i-j)}/Z_i\), \(Z_i = \frac{1-e^{-mi}}{1-e^{-m}}\), j <= i (1-based).

    Rows sum to 1. One recursion per scan, \(S_i = e^{-m}S_{i-1} + x_i\). As m -> 0 it is ``Uniform``. Exact at birth
    when all content logits are equal. Source: arXiv 2108.12409, section 3, for the biases.

    Attributes:
        slope: m > 0, in logits per token.
    """

    slope: float

    def __post_init__(self) -> None:
        """Refuse a length that is no size, and a slope that does not decay."""
        super().__post_init__()
        if not (math.isfinite(self.slope) and self.slope > 0):
            raise invalid("slope", "must be finite and > 0", self.slope, "use Causal() for no decay")

    @cached_property
    def sums(self) -> Float64[np.ndarray, " L"]:
        r"""\(Z_i\), what each row is divided by."""
        i = np.arange(1.0, self.length + 1.0)
        return frozen(np.expm1(-self.slope * i) / math.expm1(-self.slope))

    @cached_property
    def counts(self) -> Float64[np.ndarray, " L"]:
        r"""Participation number \(1/\sum_j A_{ij}^2 = \tanh(mi/2)/\tanh(m/2)\)."""
        i = np.arange(1.0, self.length + 1.0)
        return frozen(np.tanh(self.slope * i / 2) / math.tanh(self.slope / 2))

    def _average(self, x: Float64[np.ndarray, " *shape"], axis: int) -> Float64[np.ndarray, " *shape"]:
        y = decaying_sum(x, math.exp(-self.slope), axis)
        y /= along(self.sums, x, axis)
        return y

    def _adjoint(self, x: Float64[np.ndarray, " *shape"], axis: int) -> Float64[np.ndarray, " *shape"]:
        diluted = np.flip(x / along(self.sums, x, axis), axis)
        return np.flip(decaying_sum(diluted, math.exp(-self.slope), axis), axis)
