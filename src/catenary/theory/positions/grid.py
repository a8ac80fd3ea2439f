r"""Groups of neighbouring positions that are alike: one grid for all kernels of a network, at a cost free of L.

Near both ends every position is its own group. Between, a group holds a share of its distance from the ends, and no
more than a share of a kernel's own scale where that scale shows: a window's edges, chunks' starts, ALiBi's decay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64

from catenary.theory.positions.bands import Band
from catenary.theory.positions.between import Between, Matrix, Vector


@dataclass(frozen=True, eq=False)
class Grid:
    """Consecutive groups of positions; the last one holds one position.

    Attributes:
        sizes: how many positions each group holds.
        kinks: group ends at which what a position does may jump.
        lags: distances at which pairs of near positions are known, where a kernel needs them.
        wide: size above which groups in the bulk have their means over near pairs from values by distance.
        bulk: first and last position between which groups may be wide.
        looks: how far a kernel looks back that takes pairs by distance.
    """

    sizes: Vector
    kinks: tuple[int, ...] = ()
    lags: Float64[np.ndarray, " lags"] = field(default_factory=lambda: np.empty(0))
    wide: float = np.inf
    bulk: tuple[float, float] = (0.0, np.inf)
    looks: float = np.inf

    @cached_property
    def band(self) -> Band:
        """Pairs of near wide groups."""
        within = (self.starts >= self.bulk[0]) & (self.ends <= self.bulk[1])
        return Band(self.sizes, self.lags, within & (self.sizes > max(self.wide, 1.0)))

    @cached_property
    def ends(self) -> Vector:
        """Last position of each group, 1-based."""
        return np.cumsum(self.sizes)

    @cached_property
    def starts(self) -> Vector:
        """Number of positions before each group."""
        return np.asarray(self.ends - self.sizes)

    @cached_property
    def centres(self) -> Vector:
        """Mean position of each group, 1-based."""
        return self.ends - (self.sizes - 1) / 2

    def spread(self, values: Vector) -> Float64[np.ndarray, " L"]:
        """Values of groups at every position: log value against log position, a parabola through three centres.

        Of two such parabolas the straighter one, a line where they bend in opposite ways; none crosses a kink. A
        stretch between kinks that holds a 0 takes each group's own value.
        """
        where, centres = np.log(np.arange(1.0, self.length + 1.0)), np.log(self.centres)
        result = np.empty(self.length)
        for first, last in zip((0, *self.kinks), (*self.kinks, self.length), strict=True):
            groups = slice(*np.searchsorted(self.ends, (first, last), side="right"))
            inside = slice(first, last)
            held, at = values[groups], centres[groups]
            if held.size == 1 or (held <= 0).any():
                result[inside] = np.repeat(held, self.sizes[groups].astype(int))
                continue
            result[inside] = np.exp(_bent(where[inside], at, np.log(held)))
        return result

    def near(self, matrix: Matrix, same: Vector) -> Float64[np.ndarray, "n lags"]:
        """A symmetric function of two positions at the lags around each group, from its values between groups.

        ``same`` is its limit at distance 0; straight in distance between centres.
        """
        values = matrix.copy()
        np.fill_diagonal(values, same)
        return self._placed(0.5 * (self._behind.take(values) + self._ahead.take(values)))

    def near_signed(self, half: Matrix) -> Float64[np.ndarray, "n signed"]:
        """A function of token and query at distances of both signs around each group."""
        behind = self._placed(0.5 * (self._behind.take(half.T) + self._ahead.take(half)))
        before = self._placed(0.5 * (self._behind.take(half) + self._ahead.take(half.T)))
        return np.column_stack((before[:, ::-1], half.diagonal(), behind))

    def _placed(self, values: Float64[np.ndarray, " known"]) -> Float64[np.ndarray, "n lags"]:
        near = np.zeros(self.known.shape)
        near[self.known] = values
        return near

    @cached_property
    def known(self) -> Bool[np.ndarray, "n lags"]:
        """Where pairs by distance are of use: as far as a wide group or its neighbour looks."""
        first, last = np.searchsorted(self.ends, (self.bulk[0] - self.looks, self.bulk[1] + self.looks))
        beside = np.zeros(self.sizes.size, dtype=bool)
        beside[max(0, first - 2) : last + 2] = True
        return np.asarray(beside[:, None] & (self.lags <= 4 * self.sizes[:, None] + 2 * self.looks))

    @cached_property
    def _behind(self) -> Between:
        return Between.at(self.centres, self.known, -self.lags)

    @cached_property
    def _ahead(self) -> Between:
        return Between.at(self.centres, self.known, self.lags)

    @property
    def length(self) -> int:
        """Number of positions L."""
        return int(self.ends[-1])


def _bent(x: Float64[np.ndarray, " x"], at: Vector, values: Vector) -> Float64[np.ndarray, " x"]:
    """Parabolas through three neighbours of at least two known values; see ``Grid.spread``."""
    before = np.clip(np.searchsorted(at, x), 1, at.size - 1) - 1
    slope = np.diff(values) / np.diff(at)
    bend = np.diff(slope) / (at[2:] - at[:-2]) if at.size > 2 else np.zeros(1)
    left, right = np.append(bend[:1], bend), np.append(bend, bend[-1:])
    least = np.where(left * right > 0, np.sign(left) * np.minimum(abs(left), abs(right)), 0.0)[before]
    past = x - at[before]
    return np.asarray(values[before] + past * (slope[before] + least * (x - at[before + 1])))
