"""Indices: the numbers of a shape, each with its name, its meaning and its formula, in the order they are printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.blocks import Blocks

SINGLE_TOKEN = (
    "an extreme-value statistic: it grows with the scatter of single tokens and with L, and is never a depth"
)
EDGES = (0.05, 0.1, 0.25)
"""Edge widths delta of the LIM index."""
ROUNDING = 1e-9
"""Blocks closer than this (dex) are equal: sums of 1e5 float64 logs are good to about 1e-11."""


@dataclass(frozen=True, eq=False)
class Frame:
    """What the numbers share: the blocks, and which ones are peak and trough of the full curve.

    Peak and trough stay fixed while resampling: picked anew in every draw, their ratio would be biased upwards.
    """

    blocks: Blocks
    peak: int
    trough: int
    floor: float

    @property
    def x(self) -> Float64[np.ndarray, " L"]:
        """Position fractions x_j = (j - 1/2)/L."""
        return (np.arange(self.blocks.length) + 0.5) / self.blocks.length


Curves = Float64[np.ndarray, "n L"]
Formula = Callable[[Curves, Frame], Float64[np.ndarray, " n"]]


@dataclass(frozen=True)
class Index:
    """One number of a shape: its name, meaning, formula over curves (n, L), and the range it lives in."""

    name: str
    meaning: str
    formula: Formula
    low: float = 0.0
    high: float = np.inf
    resampled: bool = True


def _mid(rho: Curves, frame: Frame) -> Float64[np.ndarray, " n"]:
    inside = (frame.x >= 0.45) & (frame.x <= 0.55)
    part = rho[:, inside] if inside.any() else rho[:, [len(frame.x) // 2]]
    return np.asarray(np.exp(np.log(part).mean(axis=1)))


def _argmin(rho: Curves, frame: Frame) -> Float64[np.ndarray, " n"]:
    return np.asarray(frame.blocks.centres[frame.blocks.log_means(rho).argmin(axis=1)])


def _right_arm(rho: Curves, frame: Frame) -> Float64[np.ndarray, " n"]:
    b = frame.blocks.log_means(rho)
    after = np.arange(b.shape[1]) > b.argmin(axis=1)[:, None]
    above = b > b.min(axis=1, keepdims=True) + max(frame.floor, ROUNDING)
    return np.asarray((after & above) @ np.diff(frame.blocks.edges) / frame.blocks.length)


def _peak_trough(rho: Curves, frame: Frame) -> Float64[np.ndarray, " n"]:
    b = frame.blocks.means(np.log10(rho))  # -inf where a token is 0: the ratio is then undefined, not large
    return np.asarray(10 ** (b[:, frame.peak] - b[:, frame.trough]))


def _spread_of_tokens(rho: Curves) -> Float64[np.ndarray, " n"]:
    return np.asarray(rho.max(axis=1) / rho.min(axis=1))


def _share(rho: Curves, chosen: slice, power: int) -> Float64[np.ndarray, " n"]:
    size = rho**power
    return np.asarray(size[:, chosen].sum(axis=1) / size.sum(axis=1))


def _lim(rho: Curves, frame: Frame, delta: float, ends: bool) -> Float64[np.ndarray, " n"]:
    edge = (frame.x < delta) | (frame.x > 1 - delta)
    counted = np.ones(len(edge), dtype=bool)
    counted[[0, -1]] = ends
    energy = rho**2
    near, far = (energy @ (part / part.sum()) for part in (edge & counted, ~edge & counted))
    return np.asarray(np.log(near / far))


def _tenth(length: int) -> slice:
    return slice(0, max(1, round(length / 10)))


def _lim_index(delta: float, ends: bool) -> Index:
    return Index(
        f"LIM {delta:g}" + ("" if ends else " body"),
        f"ln of mean rho^2 within {delta:g} of either end over mean rho^2 elsewhere"
        + ("" if ends else ", without the first and the last token"),
        lambda rho, frame: _lim(rho, frame, delta, ends),
        low=-np.inf,
    )


INDICES: tuple[Index, ...] = (
    Index("first", "influence of the first token", lambda rho, _: rho[:, 0]),
    Index("mid", "log-mean over x in [.45, .55]", _mid),
    Index("last", "influence of the last token", lambda rho, _: rho[:, -1]),
    Index("first/mid", "first token over the middle", lambda rho, f: rho[:, 0] / _mid(rho, f)),
    Index("last/mid", "last token over the middle", lambda rho, f: rho[:, -1] / _mid(rho, f)),
    Index("mid/before last", "middle over the token before the last", lambda rho, f: _mid(rho, f) / rho[:, -2]),
    Index("peak/trough", "highest block over lowest block of the body (log-means)", _peak_trough),
    Index("argmin", "centre of the lowest block, as a fraction of the context", _argmin, high=1.0),
    Index("right arm", "share of the context after the lowest block that lies above it", _right_arm, high=1.0),
    Index("share first tenth", "sum of rho over the first 10 % / total",
            lambda rho, _: _share(rho, _tenth(rho.shape[1]), 1), high=1.0),
    Index("share last", "rho of the last token / total", lambda rho, _: _share(rho, slice(-1, None), 1), high=1.0),
    Index("energy share first tenth", "the same with rho^2",
            lambda rho, _: _share(rho, _tenth(rho.shape[1]), 2), high=1.0),
    Index("energy share last", "the same with rho^2", lambda rho, _: _share(rho, slice(-1, None), 2), high=1.0),
    *(_lim_index(delta, ends) for delta in EDGES for ends in (True, False)),
    Index("single-token max/min", SINGLE_TOKEN, lambda rho, _: _spread_of_tokens(rho), resampled=False),
    Index("single-token max/min of the body", SINGLE_TOKEN, lambda rho, _: _spread_of_tokens(rho[:, 1:-1]),
            resampled=False),
)
