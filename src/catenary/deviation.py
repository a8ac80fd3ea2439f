"""Deviation: the error figures of one curve against another, and the same figures between halves of a Sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.blocks import Span, regions
from catenary.profile import Average
from catenary.sample import Sample
from catenary.statistics import Curves, Units, floor_between_halves


@dataclass(frozen=True, eq=False)
class Deviation:
    """Figures of a against b. Errors are log10 a/b (dex), medians and maxima over positions where both are > 0.

    Attributes:
        median_absolute, max_absolute: of |log10 a/b|.
        median_shape, max_shape: the same after removing the median of log10 a/b; ``factor`` is 10 to that median.
        w1, w1_without_last: Wasserstein-1 over x = j/L of the two normalised to sum 1.
        spearman: rank correlation, ties at their mean rank; NaN when either is constant.
        regions, regions_shape: signed median log10 a/b of each of ``spans``, and after removing the overall median.
        excluded: positions left out because either is exactly 0.
    """

    median_absolute: float
    max_absolute: float
    median_shape: float
    max_shape: float
    factor: float
    w1: float
    w1_without_last: float
    spearman: float
    regions: Float64[np.ndarray, " region"]
    regions_shape: Float64[np.ndarray, " region"]
    spans: tuple[Span, ...]
    excluded: int

    def quadrature(self, other: Deviation) -> Deviation:
        """Two independent floors as one: the root of the sum of squares of every figure.

        Spearman has no floor but a ceiling, what half scores against half; two ceilings join as their geometric mean.
        """
        figures = np.hypot(self._figures(), other._figures())
        ceiling = np.sqrt(max(self.spearman, 0.0) * max(other.spearman, 0.0))
        return _floor(figures, float(ceiling), self.spans)

    def _figures(self) -> Float64[np.ndarray, " m"]:
        """The figures a floor is made of, sign removed, in the order ``_floor`` reads."""
        scalars = [self.median_absolute, self.max_absolute, self.median_shape, self.max_shape,
                   self.w1, self.w1_without_last]
        return np.asarray(np.abs([*scalars, *self.regions, *self.regions_shape]), dtype=np.float64)


def between(a: Float64[np.ndarray, " L"], b: Float64[np.ndarray, " L"]) -> Deviation:
    """Every error figure of a against b."""
    both = (a > 0) & (b > 0)
    log = np.full(a.shape, np.nan)
    log[both] = np.log10(a[both] / b[both])
    spans = regions(len(a))
    offset = _median(log)
    absolute, shape = np.abs(log[both]), np.abs(log[both] - offset)
    signed = np.array([_median(log[s.start : s.stop]) for s in spans])
    return Deviation(
        median_absolute=_median(absolute),
        max_absolute=float(absolute.max()) if absolute.size else np.nan,
        median_shape=_median(shape),
        max_shape=float(shape.max()) if shape.size else np.nan,
        factor=float(10**offset),
        w1=wasserstein(a, b),
        w1_without_last=_without_last(a, b),
        spearman=spearman(a, b),
        regions=signed,
        regions_shape=signed - offset,
        spans=spans,
        excluded=int((~both).sum()),
    )


def between_halves(sample: Sample, average: Average) -> Deviation:
    """Noise floor of every figure: between halves of the Sample's outermost unit, over sqrt 2; NaN for one unit.

    Region figures are of the size of the signed median; ``spearman`` is what half scores against half, ``factor``
    is not a floor and is NaN.
    """
    units = Units.of(sample, average)
    spans = regions(sample.length)
    if units.count < 2:
        return no_floor(sample.length)

    def figures(first: Curves, second: Curves) -> Float64[np.ndarray, " m"]:
        d = between(first[0], second[0])
        return np.append(d._figures(), np.sqrt(2) * d.spearman)

    *floors, ceiling = floor_between_halves(units, figures)
    return _floor(np.array(floors), float(ceiling), spans)


def no_floor(length: int) -> Deviation:
    """The floor where nothing was sampled: every figure NaN."""
    spans = regions(length)
    return _floor(np.full(6 + 2 * len(spans), np.nan), np.nan, spans)


def _floor(figures: Float64[np.ndarray, " m"], ceiling: float, spans: tuple[Span, ...]) -> Deviation:
    median_absolute, max_absolute, median_shape, max_shape, w1, w1_without_last = (float(f) for f in figures[:6])
    by_region, by_region_shape = figures[6:].reshape(2, len(spans))
    return Deviation(
        median_absolute, max_absolute, median_shape, max_shape, np.nan, w1, w1_without_last, ceiling,
        by_region, by_region_shape, spans, 0,
    )


def wasserstein(a: Float64[np.ndarray, " L"], b: Float64[np.ndarray, " L"], length: int | None = None) -> float:
    r"""Wasserstein-1 of the two normalised to sum 1 over \(x=j/L\): \(\frac1L\sum_{j<L}|A_j-B_j|\), A, B cumulative.

    ``length`` is L where a and b hold only part of the positions. Range [0, 1).
    """
    gap = np.cumsum(a / a.sum() - b / b.sum())[:-1]
    return float(np.abs(gap).sum() / (length or len(a)))


def spearman(a: Float64[np.ndarray, " L"], b: Float64[np.ndarray, " L"]) -> float:
    """Rank correlation: Pearson's of the ranks, ties at their mean rank; NaN when either is constant."""
    p, q = _ranks(a), _ranks(b)
    scale = np.sqrt((p @ p) * (q @ q))
    return float(p @ q / scale) if scale > 0 else float("nan")


def _ranks(values: Float64[np.ndarray, " L"]) -> Float64[np.ndarray, " L"]:
    """Mean ranks about their centre."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[index] - (len(values) + 1) / 2, dtype=np.float64)


def _without_last(a: Float64[np.ndarray, " L"], b: Float64[np.ndarray, " L"]) -> float:
    if not (a[:-1].any() and b[:-1].any()):
        return float("nan")
    return wasserstein(a[:-1], b[:-1], len(a))


def _median(values: Float64[np.ndarray, " n"]) -> float:
    """Median of what is there; NaN of nothing."""
    there = values[~np.isnan(values)]
    return float(np.median(there)) if there.size else float("nan")
