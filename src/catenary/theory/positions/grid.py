r"""Groups of neighbouring positions that are alike: one grid for all kernels of a network, at a cost free of L.

Near both ends every position is its own group. Between, a group holds a share of its distance from the ends, and no
more than a share of a kernel's own scale where that scale shows: a window's edges, chunks' starts, ALiBi's decay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from catenary.architecture import Alibi, Chunk, Kernel, Prefix, Window
from catenary.errors import NotApplicable
from catenary.theory.positions.lags import lags_up_to

Vector = Float64[np.ndarray, " n"]
Matrix = Float64[np.ndarray, "n n"]

HEAD, TAIL, RATIO = 48, 24, 1.06
"""Single positions at both ends, and the growth of groups. With 1.03 instead of 1.06 the norm moves by < 5e-4."""

PER_SCALE = 24
"""Groups per window: the error is of second order, .5 % of the norm at 16."""

DECAY_SHARE = 0.1
"""Size of a group times ALiBi's smallest slope."""

DECAY_GROWTH = 2 / 3
"""Growth of groups beside ALiBi over that beside other kernels: errors of the norm fall from 1.6 % to .4 %."""

STEEP_FORWARD, STEEP_BACKWARD = 0.15, 0.5
"""Size of a group times slope above which its pairs are taken by distance: below, groups resolve the decay; above,
pairs must change slowly over the decay, which gradients near the last token do less than tokens."""

MEMORIES = 8
"""Largest distance kept, in memories of the gentlest slope that is taken by distance."""

MOST_GROUPS = 1500
"""Above this number a prediction would take minutes."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Consecutive groups of positions; the last one holds one position.

    Attributes:
        sizes: how many positions each group holds.
        kinks: group ends at which what a position does may jump.
        lags: distances at which pairs of near positions are known, where a kernel needs them.
    """

    sizes: Vector
    kinks: tuple[int, ...] = ()
    lags: Float64[np.ndarray, " lags"] = field(default_factory=lambda: np.empty(0))

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
        """Values of groups at every position: log value against log position, straight between two kinks.

        Beyond the outermost centres of a stretch its last slope goes on. A stretch that holds a 0 takes each group's
        own value.
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
            logs = np.log(held)
            after = np.clip(np.searchsorted(at, where[inside]), 1, held.size - 1)
            slope = np.diff(logs) / np.diff(at)
            result[inside] = np.exp(logs[after - 1] + slope[after - 1] * (where[inside] - at[after - 1]))
        return result

    def near(self, matrix: Matrix, same: Vector) -> Float64[np.ndarray, "n lags"]:
        """A symmetric function of two positions at the lags around each group, from its values between groups.

        ``same`` is its limit at distance 0; straight in distance between centres.
        """
        values = matrix.copy()
        np.fill_diagonal(values, same)
        return np.asarray(0.5 * (self._behind.take(values) + self._ahead.take(values)))

    def near_signed(self, half: Matrix) -> Float64[np.ndarray, "n signed"]:
        """A function of token and query at distances of both signs around each group."""
        behind = 0.5 * (self._behind.take(half.T) + self._ahead.take(half))
        before = 0.5 * (self._behind.take(half) + self._ahead.take(half.T))
        return np.column_stack((before[:, ::-1], half.diagonal(), behind))

    @cached_property
    def _behind(self) -> Between:
        return Between.at(self.centres, self.centres[:, None] - self.lags)

    @cached_property
    def _ahead(self) -> Between:
        return Between.at(self.centres, self.centres[:, None] + self.lags)

    @property
    def length(self) -> int:
        """Number of positions L."""
        return int(self.ends[-1])


@dataclass(frozen=True, eq=False)
class Between:
    """Linear interpolation along a matrix's rows: between columns ``before`` and the next one, by ``share``."""

    before: Int64[np.ndarray, "n lags"]
    share: Float64[np.ndarray, "n lags"]

    @classmethod
    def at(cls, centres: Vector, places: Float64[np.ndarray, "n lags"]) -> Between:
        """The columns around ``places`` on row g's line of ``centres``; constant beyond the ends."""
        places = np.clip(places, centres[0], centres[-1])
        before = np.clip(np.searchsorted(centres, places, side="right") - 1, 0, centres.size - 2)
        return cls(before, (places - centres[before]) / (centres[before + 1] - centres[before]))

    def take(self, matrix: Matrix) -> Float64[np.ndarray, "n lags"]:
        """The values of each row."""
        rows = np.arange(len(matrix))[:, None]
        return np.asarray(matrix[rows, self.before] * (1 - self.share) + matrix[rows, self.before + 1] * self.share)


def group_positions(length: int, *, head: int = HEAD, tail: int = TAIL, ratio: float = RATIO) -> Grid:
    """The grid of causal attention: ``head`` and ``tail`` singles, and sizes (ratio - 1) * position between.

    About 48 + 24 + ln(L/48)/ln(ratio) groups: 137 at L = 2048, 290 at 2^24.
    """
    return make_grid((), length, head=head, tail=tail, ratio=ratio)


def make_grid(
    kernels: Collection[Kernel], length: int, *, head: int = HEAD, tail: int = TAIL, ratio: float = RATIO
) -> Grid:
    """A grid over ``length`` positions on which all of ``kernels`` can be averaged.

    Raises:
        NotApplicable: where the kernels would need more than ``MOST_GROUPS`` groups (chunks that are thousands of
            times shorter than the sequence).
    """
    kinks: set[int] = set()
    # The longest memory decides: shorter ones change pairs at small distances, which groups know apart.
    gentlest = min((kernel.slope for kernel in kernels if isinstance(kernel, Alibi)), default=0.0)
    growth = (ratio - 1) * (DECAY_GROWTH if gentlest else 1.0)
    limits: list[Callable[[int], float]] = [lambda position: position * growth]
    for kernel in set(kernels):
        if isinstance(kernel, Alibi) and kernel.slope > gentlest:
            continue
        limits.append(_limit(kernel, length, growth))
        kinks |= _kinks(kernel, length)
    sizes: list[int] = []
    position = 0
    for bound in sorted(kinks | {max(length - tail, 0), length}):
        # Two groups at least between kinks, so that a slope is seen there.
        half = max((bound - position) // 2, 1)
        while position < bound:
            single = position < head or position >= length - tail
            wanted = 1 if single else max(1, min(half, round(min(limit(position) for limit in limits))))
            sizes.append(min(wanted, bound - position))
            position += sizes[-1]
            if len(sizes) > MOST_GROUPS:
                raise NotApplicable(
                    f"length {length} would need more than {MOST_GROUPS} groups of positions for "
                    f"{', '.join(sorted({str(kernel) for kernel in kernels}))}; use a shorter length"
                )
    widest = max(sizes)
    steep = any(isinstance(kernel, Alibi) and widest * kernel.slope > STEEP_FORWARD for kernel in kernels)
    lags = lags_up_to(MEMORIES * widest / STEEP_FORWARD) if steep else np.empty(0)
    return Grid(np.array(sizes, dtype=np.float64), tuple(sorted(kinks)), lags)


def _limit(kernel: Kernel, length: int, growth: float) -> Callable[[int], float]:
    """Largest group behind ``position`` positions that resolves what the kernel does there."""
    match kernel:
        case Window(width):
            return lambda position: width / PER_SCALE
        case Chunk(width):
            # A chunk starts as a sequence does, and few queries see its last tokens.
            return lambda position: min(1.25 * (position % width), 5 * (width - 1 - position % width)) * growth
        case Alibi(slope):
            return lambda position: min((length - position) * growth, DECAY_SHARE / slope)
        case _:
            return lambda position: length


def _kinks(kernel: Kernel, length: int) -> set[int]:
    """Numbers of positions after which a group must end: where the kernel's rows or columns have a kink."""
    match kernel:
        case Window(width):
            first = {width} if width < length else set()
            return first | set(range(length - 1, 0, 1 - width)) if 1 < width < length else first
        case Chunk(width):
            return set(range(width, length, width))
        case Prefix(inside):
            return {inside} if inside < length else set()
        case _:
            return set()
