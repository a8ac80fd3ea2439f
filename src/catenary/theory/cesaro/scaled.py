"""Arrays of numbers >= 0 whose size may leave the range of float64, with its relative precision: m times 2^e.

Multiplying by a power of two is exact, so sums and products round as they would in float64 without its limits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float64, Int64

FAR = 1 << 40
"""Minus the exponent of zero: below that of any number that arises, far from the limits of int64."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """Numbers >= 0 as mantissa times 2^exponent; the mantissa of a number > 0 lies in [1/2, 1)."""

    mantissa: Float64[np.ndarray, " *shape"]
    exponent: Int64[np.ndarray, " *shape"]

    @staticmethod
    def of(
        values: Float64[np.ndarray, " *shape"] | float, exponent: Int64[np.ndarray, " *shape"] | int = 0
    ) -> Scaled:
        """``values`` times 2^``exponent``."""
        mantissa, own = np.frexp(values)
        return Scaled(np.asarray(mantissa), np.asarray(np.where(mantissa > 0, own + np.int64(exponent), -FAR)))

    def __getitem__(self, key: int | slice) -> Scaled:
        """Part of the array."""
        return Scaled(np.asarray(self.mantissa[key]), np.asarray(self.exponent[key]))

    def times(self, other: Scaled) -> Scaled:
        """Product, entry by entry."""
        return Scaled.of(np.asarray(self.mantissa * other.mantissa), np.asarray(self.exponent + other.exponent))

    def over(self, other: Scaled) -> Scaled:
        """Quotient, entry by entry; 0 over 0 is 0."""
        divisor = np.where(self.mantissa > 0, other.mantissa, 1.0)
        return Scaled.of(np.asarray(self.mantissa / divisor), np.asarray(self.exponent - other.exponent))

    def plus(self, other: Scaled) -> Scaled:
        """Sum, entry by entry."""
        top = np.asarray(np.maximum(self.exponent, other.exponent))
        return Scaled.of(np.asarray(_shifted(self, top) + _shifted(other, top)), top)

    def total(self) -> Scaled:
        """Sum over all entries, as an array without axes."""
        top = self.exponent.max()
        return Scaled.of(float(_shifted(self, np.full_like(self.exponent, top)).sum()), int(top))

    def log(self) -> Float64[np.ndarray, " *shape"]:
        """Natural logarithm; -inf for 0."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.mantissa) + self.exponent * math.log(2)
        return np.asarray(np.where(self.mantissa > 0, logs, -np.inf))

    def values(self) -> Float64[np.ndarray, " *shape"]:
        """As float64: 0 below its range, inf above it."""
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(self.mantissa, np.clip(self.exponent, -2000, 2000)))


def _shifted(numbers: Scaled, top: Int64[np.ndarray, " *shape"]) -> Float64[np.ndarray, " *shape"]:
    """The numbers times 2^-top, for ``top`` no less than any exponent; what is 2^-1075 of the top one or less is 0."""
    return np.asarray(np.ldexp(numbers.mantissa, np.maximum(numbers.exponent - top, -2000)))


@lru_cache(maxsize=64)
def expanded_product(constants: tuple[float, ...], slopes: tuple[float, ...]) -> Scaled:
    r"""Coefficients of \(\prod_l (u_l + v_l z)\) in rising powers of z, u constants, v slopes, all >= 0. O(H^2)."""
    product = Scaled.of(np.eye(1, len(slopes) + 1)[0])
    for constant, slope in zip(constants, slopes, strict=True):
        raised = Scaled(np.append(0.0, product.mantissa[:-1]), np.append(-FAR, product.exponent[:-1]))
        product = product.times(Scaled.of(constant)).plus(raised.times(Scaled.of(slope)))
    return product
