"""How alike the keys are that a row meets, and for how many copies of a token that counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from jaxtyping import Float, Float64, Int64, Real

from catenary.theory.positions.pairs import Vector
from catenary.theory.repeats.band import Band, EachRow, Seen, Square

WEAKEST = 0.02
"""Smallest 1 - b: beyond it the tokens of a row are one token."""


class SeenBy(Protocol):
    """The tokens, or kinds of tokens, that each row sees, packed row after row."""

    @property
    def length(self) -> int:
        """Number of rows."""
        ...

    @property
    def counts(self) -> Real[np.ndarray, " n"]:
        """How many tokens each row sees."""
        ...

    @property
    def progress(self) -> EachRow:
        """What the make-up of a row varies with, about ln i."""
        ...

    @property
    def rows(self) -> Int64[np.ndarray, " seen"]:
        """The row of each entry."""
        ...

    def each(self, vector: Real[np.ndarray, " n"], dtype: type = np.float64) -> Seen:
        """A value per row, repeated for its entries."""
        ...

    def total(self, seen: Seen) -> EachRow:
        """Sum over the tokens of each row."""
        ...

    def row(self, seen: Seen, i: int) -> Float[np.ndarray, " row"]:
        """The entries of one row."""
        ...

    def tokens(self, i: int) -> Float64[np.ndarray, " row"] | None:
        """How many tokens each entry of one row stands for; None: one."""
        ...

    def chosen(self, step: float, head: int) -> Int64[np.ndarray, " rows"]:
        """Rows so dense that ``progress`` grows by at most ``step``; the first ones and the last."""
        ...


def fullest(seen: SeenBy) -> int:
    """The last of the rows that see most."""
    return int(seen.length - 1 - np.argmax(seen.counts[::-1]))


@dataclass(frozen=True, eq=False)
class Multiplicities:
    """Effective numbers of copies for first moments and for second moments."""

    first: Seen
    second: Seen


class Meeting(Protocol):
    """How alike the keys are that a row meets."""

    @property
    def seen(self) -> SeenBy:
        """The tokens of each row."""
        ...

    @property
    def background(self) -> Vector:
        """b: the mean likeness of different tokens per row."""
        ...

    def multiplicities(self, exponent: float) -> Multiplicities:
        """Effective numbers of copies under tilts by y and 2y."""
        ...


@dataclass(frozen=True, eq=False)
class Likeness:
    r"""How alike the keys of two tokens are, X, and b_i, its mean over the pairs of different types that row i sees.

    Logits are shifted by what all keys have in common, which the softmax drops; ``relative`` is the rest,
    \((X - b)/(1 - b)\) with b that of the last row of most tokens: 1 for copies, about 0 for different tokens.
    """

    keys: Square
    background: EachRow
    seen: Band

    @classmethod
    def of(cls, keys: Square, different: Square, seen: Band) -> Likeness:
        """From X, the indicator of different types, and what queries see."""
        pairs = seen.pair_sums(different)
        mean = seen.pair_sums(keys * different) / np.maximum(pairs, 1)
        return cls(keys, np.clip(np.where(pairs > 0, mean, 0.0), 0, 1 - WEAKEST), seen)

    @cached_property
    def relative(self) -> Square:
        """(X - b)/(1 - b), at most 1."""
        common = float(self.background[fullest(self.seen)])
        relative = np.minimum(self.keys, 1)
        relative -= common
        relative /= 1 - common
        return np.asarray(relative)

    def excess(self, exponent: float) -> Square:
        r"""\(M = e^{y(X-b)/(1-b)} - 1\)."""
        excess = self.relative * self.relative.dtype.type(exponent)
        return np.asarray(np.expm1(excess, out=excess))

    def multiplicities(self, exponent: float) -> Multiplicities:
        r"""Effective numbers of copies under a tilt \(e^{yX}\) and under \(e^{2yX}\).

        \[c_{im} = \frac{\sum_{l\ seen}e^{y(X_{lm}-b_i)/(1-b)} - n_i}{e^{y(1-b_i)/(1-b)} - 1},\]

        clipped to [1, n_i]: the number of copies where copies have X = 1 and other tokens X = b. A first moment of
        attention carries one factor \(e^z\), a second two, hence the two tilts.
        """
        common = self.background[fullest(self.seen)]
        shift = exponent * (self.background - common) / (1 - common)
        tilt = self.excess(exponent)
        first = self._effective(tilt, shift, exponent)
        tilt *= tilt + 2
        return Multiplicities(first, self._effective(tilt, 2 * shift, 2 * exponent))

    def _effective(self, tilt: Square, shift: EachRow, exponent: float) -> Seen:
        """Sums of tilts minus one over the tokens seen, as numbers of copies."""
        copies = self.seen.running(tilt)
        copies -= (self.seen.counts * np.expm1(shift))[:, None]
        copies /= (math.expm1(exponent) - np.expm1(shift))[:, None]
        return np.asarray(np.clip(self.seen.pack(copies), 1, self.seen.each(self.seen.counts)))
