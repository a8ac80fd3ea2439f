"""Where groups of positions end and how wide they may be, by what each kernel of a network tells apart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from catenary.architecture import Alibi, Chunk, Kernel, Prefix, Window
from catenary.errors import NotApplicable
from catenary.theory.positions.between import Vector
from catenary.theory.positions.grid import Grid
from catenary.theory.positions.lags import ABOVE_DECAY, ABOVE_WINDOW, FROM_ENDS, lags_up_to

HEAD, TAIL, RATIO = 48, 24, 1.06
"""Single positions at both ends, and the growth of groups. With 1.03 instead of 1.06 the norm moves by < 5e-4."""

PER_SCALE = 24
"""Groups per window: the error is of second order, .5 % of the norm at 16."""

PAST_START, GROWTH = 3.0, 0.06
"""Windows beside other kernels: behind so many widths groups grow, by this share of the distance. At 2 or 2.5 widths
the norm errs by .6 %, as with a growth of .1."""

SMOOTHED = {False: 3.0, True: 16.0}
"""Widths behind the last position at which groups are wider by sqrt 2: steps of many windows blur each other's edges.
True where every layer has windows only: no other path hides the edge."""

FEW_STEPS = 6
"""Windows one behind the other up to which the farthest position that they reach shows: energies rise from there as a
power of the distance that is higher than ten for more, and exceed those of other paths much nearer to the end only."""

FROM_EDGE, BEFORE_EDGE = 0.07, 1.5
"""Behind that position and every step of windows, size of a group over its distance; before it, widths within which
pairs by distance would see what windows do not reach. With neither, energies come out negative there."""

DECAY_SHARE = 0.1
"""Size of a group times ALiBi's smallest slope."""

DECAY_GROWTH, DECAY_TAIL = 0.04, 0.024
"""Growth of groups beside ALiBi from the first and from the last position."""

MEMORIES = 50
"""Largest distance kept beside ALiBi, in sizes of the widest group."""

TILTED_SHARE, TILTED_TAIL, TILTED_MEMORIES = 0.4, 0.035, 4
"""The same three where gradients are known without their fall, and change slowly. With a tail of .045 the norm errs by
.7 % for two slopes 2^-3 and 2^-7, eight memories of the steeper one from the end."""

MOST_GROUPS = 1500
"""Above this number a prediction would take minutes."""


def group_positions(length: int, *, head: int = HEAD, tail: int = TAIL, ratio: float = RATIO) -> Grid:
    """The grid of causal attention: ``head`` and ``tail`` singles, and sizes (ratio - 1) * position between.

    About 48 + 24 + ln(L/48)/ln(ratio) groups: 137 at L = 2048, 290 at 2^24.
    """
    return make_grid((), length, head=head, tail=tail, ratio=ratio)


def make_grid(
    kernels: Collection[Kernel],
    length: int,
    carried: float | None = None,
    *,
    head: int = HEAD,
    tail: int = TAIL,
    ratio: float = RATIO,
    nearing: float = float("inf"),
    tilted: bool = False,
    affordable: int = MOST_GROUPS,
) -> Grid:
    """A grid over ``length`` positions on which all of ``kernels`` can be averaged.

    Args:
        kernels: all mean kernels of the network.
        length: L >= 1.
        carried: how far behind the last position the windows of all layers reach together; farther back and past the
            start pairs are known by distance and groups may be wider than windows. None: no pairs by distance there.
        head: single positions at the start.
        tail: single positions at the end.
        ratio: growth of groups.
        nearing: their largest size over the distance from the end, where what is near the end differs for a reason that
            no kernel tells.
        tilted: all kernels decay, and gradients are known times what undoes most of their fall (``positions``).
        affordable: groups that the caller can pay for; a refusal names a length that needs no more.

    Raises:
        NotApplicable: where the kernels would need more than ``MOST_GROUPS`` groups (chunks that are dozens of times
            shorter than the sequence).
    """
    def laid(length: int, most: int = MOST_GROUPS) -> Grid | None:
        places = Places.of(kernels, length, carried, ratio - 1, tilted)
        sizes = _sizes(places, head, tail, nearing, most)
        return None if sizes is None else places.known(np.array(sizes, dtype=np.float64))

    grid = laid(length)
    if grid is None:
        most = min(affordable, MOST_GROUPS)
        longest = _most(most, length, lambda shorter: laid(shorter, most) is not None)
        raise NotApplicable(_refusal(kernels, length, longest))
    return grid


def _sizes(places: Places, head: int, tail: int, nearing: float, most: int) -> list[int] | None:
    """The sizes of groups from the first position on, None where there would be more than ``most``."""
    length = places.length
    sizes: list[int] = []
    position = 0
    for bound in sorted(places.kinks | {max(length - tail, 0), length}):
        # Two groups at least between kinks, so that a slope is seen there.
        half = max((bound - position) // 2, 1)
        while position < bound:
            single = position < head or position >= length - tail
            largest = min(half, places.largest(position), nearing * (length - position))
            wanted = 1 if single else max(1, round(largest))
            sizes.append(min(wanted, bound - position))
            position += sizes[-1]
            if len(sizes) > most:
                return None
    return sizes


def _most(groups: int, length: int, fits: Callable[[int], bool]) -> int:
    """A length that fits where the next one does not, below one that does not; ``groups`` positions always do."""
    low, high = min(groups, length - 1), length
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@dataclass(frozen=True, eq=False)
class Places:
    """Where groups must end and how wide they may be.

    Attributes:
        length: L.
        kinks: numbers of positions after which a group must end.
        limits: largest group behind so many positions, by each kernel.
        widths: of windows that end before the sequence does.
        slopes: of ALiBi's kernels.
        carried: how far behind the last position windows reach together.
        tilted: gradients are known without most of their fall.
    """

    length: int
    kinks: set[int]
    limits: tuple[Callable[[int], float], ...]
    widths: tuple[int, ...]
    slopes: tuple[float, ...]
    carried: float | None
    tilted: bool = False

    @classmethod
    def of(
        cls, kernels: Collection[Kernel], length: int, carried: float | None, growth: float, tilted: bool = False
    ) -> Places:
        """The needs of all kernels together."""
        widths = tuple(kernel.width for kernel in kernels if isinstance(kernel, Window) and 1 < kernel.width < length)
        slopes = tuple(kernel.slope for kernel in kernels if isinstance(kernel, Alibi))
        kinks: set[int] = set()
        growth = min(growth, DECAY_GROWTH) if slopes and not tilted else growth
        limits: list[Callable[[int], float]] = [lambda position: position * growth]
        if slopes:
            # The longest memory decides: shorter ones change pairs at small distances, which groups know apart.
            share = (TILTED_SHARE if tilted else DECAY_SHARE) / min(slopes)
            tail = TILTED_TAIL if tilted else DECAY_TAIL
            limits.append(lambda position: min((length - position) * tail, share))
        if widths and carried is not None and _shows(carried, length, max(widths)):
            kinks.add(length - 1 - int(carried))
        for kernel in set(kernels):
            kinks |= _kinks(kernel, length, carried)
            if isinstance(kernel, Window):
                limits.append(_window_limit(kernel.width, length, carried, max(widths, default=0)))
            if isinstance(kernel, Chunk):
                limits.append(_chunk_limit(kernel.width, growth))
        return cls(length, kinks, tuple(limits), widths, slopes, carried, tilted)

    def largest(self, position: int) -> float:
        """The largest group behind so many positions."""
        return min(limit(position) for limit in self.limits)

    def known(self, sizes: Vector) -> Grid:
        """The grid with these groups, and distances where some are wider than what a kernel tells apart."""
        kinks, widest = tuple(sorted(self.kinks)), float(sizes.max())
        if self.slopes:
            steepest = max(self.slopes)
            if widest * steepest <= ABOVE_DECAY:
                return Grid(sizes, kinks)
            bulk = (FROM_ENDS / steepest, self.length - FROM_ENDS / steepest)
            lags = lags_up_to((TILTED_MEMORIES if self.tilted else MEMORIES) * widest)
            return Grid(sizes, kinks, lags, ABOVE_DECAY / steepest, bulk)
        if self.carried is None or not self.widths or widest <= ABOVE_WINDOW * min(self.widths):
            return Grid(sizes, kinks)
        looks = max(self.widths)
        before = BEFORE_EDGE * looks * _shows(self.carried, self.length, looks)
        bulk = (PAST_START * looks, self.length - self.carried - before)
        if bulk[0] >= bulk[1]:
            return Grid(sizes, kinks)
        lags = lags_up_to(3.5 * widest + looks, 16)
        return Grid(sizes, kinks, lags, ABOVE_WINDOW * min(self.widths), bulk, looks)


def _shows(carried: float, length: int, widest: int) -> bool:
    """Whether the farthest position that windows reach is a kink."""
    return carried < min(length - 1, FEW_STEPS * widest)


def _window_limit(width: int, length: int, carried: float | None, widest: int) -> Callable[[int], float]:
    fine = width / PER_SCALE
    if carried is None:
        return lambda position: fine
    smoothed = SMOOTHED[carried + 1 >= length] * width
    shows = _shows(carried, length, widest)
    edge = length - 1 - carried
    past, before = PAST_START * widest, BEFORE_EDGE * widest * shows

    def limit(position: int) -> float:
        if position < edge:
            return float(fine + GROWTH * max(0.0, min(position - past, edge - before - position)))
        blurred = fine * (1 + (length - position) / smoothed) ** 0.5
        step = min(position - edge, (position - length + 1) % (width - 1))
        return float(min(blurred, FROM_EDGE * step) if shows else blurred)

    return limit


def _chunk_limit(width: int, growth: float) -> Callable[[int], float]:
    """A chunk starts as a sequence does, and few queries see its last tokens."""
    return lambda position: min(1.25 * (position % width), 5 * (width - 1 - position % width)) * growth


def _kinks(kernel: Kernel, length: int, carried: float | None) -> set[int]:
    """Numbers of positions after which a group must end: where the kernel's rows or columns have a kink."""
    match kernel:
        case Window(width):
            first = {width} if width < length else set()
            furthest = 0 if carried is None else max(0, length - 1 - int(carried))
            return first | set(range(length - 1, furthest, 1 - width)) if 1 < width < length else first
        case Chunk(width):
            return set(range(width, length, width))
        case Prefix(inside):
            return {inside} if inside < length else set()
        case _:
            return set()


def _decays(slopes: Sequence[float]) -> set[str]:
    """Slopes of ALiBi, and of states that forget, in words; empty where there are none."""
    if not slopes:
        return set()
    memories = f"{1 / slopes[-1]:.3g}" if len(slopes) == 1 else f"{1 / slopes[-1]:.3g} to {1 / slopes[0]:.3g}"
    return {f"{len(slopes)} decay{'s' * (len(slopes) > 1)} with memories of {memories} tokens"}


def _refusal(kernels: Collection[Kernel], length: int, most: int) -> str:
    slopes = sorted({kernel.slope for kernel in kernels if isinstance(kernel, Alibi)})
    names = ", ".join(sorted({str(kernel) for kernel in kernels if not isinstance(kernel, Alibi)} | _decays(slopes)))
    chunks = any(isinstance(kernel, Chunk) and kernel.width < length for kernel in kernels)
    why = " (chunks stand for each other only where they have one width and all other layers see the whole past)"
    return (
        f"length {length} would need more than {MOST_GROUPS} groups of positions for {names}{why * chunks}; "
        f"use length={most} or shorter"
    )
