r"""Mean attention and its spread, token by token, in rows where tokens repeat.

Copies of a token share a logit as far as their keys are alike. What a token gets from a query is then a function of
the row and of the token's effective multiplicity c there; everything in this file is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from jaxtyping import Float, Float64, Int64, Real

from catenary.theory.attention.scores import query_norms
from catenary.theory.positions.pairs import Vector
from catenary.theory.repeats.band import Band, EachRow, Seen, Square
from catenary.theory.repeats.moments import Placement, RowMomentTable

ROW_STEP = 0.14
"""Step in ln i between rows at which moments are tabulated; logarithms are linear between them (errors < 2e-4)."""

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


@dataclass(frozen=True, eq=False)
class Multiplicities:
    """Effective numbers of copies for first moments and for second moments."""

    first: Seen
    second: Seen


@dataclass(frozen=True, eq=False)
class Levels:
    r"""What tokens get from queries: with \(\alpha, \beta, \kappa\) of ``RowMoments`` and the mean attention a,

    ``share`` is \(a_T = ca\), ``response`` \(\lambda' = \lambda/(1-a_T)\) with \(\lambda = 1 - EA_T^2/EA_T\),
    ``participation`` \(\lambda^2 + \sum_Ta_T^2 - a_T^2\), ``spread`` \(\beta/\alpha^2 - 1\), ``own`` the same at the
    multiplicity of second moments, ``score`` \(\kappa/[\alpha^2(1 - 2a_T + \sum_Ta_T^2)]\): \(\lambda\) and
    \(\kappa\) already leave the token's own type out, and so will the centring of the values. A row of one token has
    no spread.
    """

    share: Seen
    response: Seen
    participation: Seen
    spread: Seen
    own: Seen
    score: Seen


@dataclass(frozen=True, eq=False)
class RowTables:
    r"""ln alpha, ln beta and ln kappa per row on the grid of multiplicities, averaged over the norm of the query.

    ``copies`` is the exponent y of a tilt by one shared logit at the last of the longest rows: \(e^y = n^2m_2\) without
    copies.
    """

    logs: Float64[np.ndarray, "3 n bins"]
    copies: float
    variance: float
    seen: SeenBy

    @classmethod
    def build(cls, variance: float, query_dims: float | None, near: Meeting) -> RowTables:
        """The tables of rows whose keys are alike as in ``near``, at logit variance v."""
        seen = near.seen
        norms = query_norms(query_dims)
        # Rounded up, so that layers whose variances differ by their epsilon share a table.
        largest = 2 ** (math.ceil(4 * math.log2(variance * float(norms.at.max()))) / 4)
        table = _table(math.ceil(seen.counts.max()), largest)

        def moments(multiplicities: Seen, u: float, tokens: EachRow | None) -> Float64[np.ndarray, "3 bins"]:
            total = np.zeros((3, table.bins))
            for factor, weight in zip(norms.at, norms.weights, strict=True):
                found = table(multiplicities, float(factor) * u, tokens)
                total += weight * np.stack([found.mean, found.second, factor * found.key])
            return total

        u = variance * (1 - near.background)
        last = fullest(seen)
        copies = math.log(moments(np.ones(1), float(u[last]), np.full(1, float(seen.counts[last])))[1, 0])
        first = near.multiplicities(copies).first
        rows = seen.chosen(ROW_STEP, 8)
        logs = np.log(np.stack([moments(seen.row(first, i), float(u[i]), seen.tokens(i)) for i in rows], axis=1))
        place = seen.progress[rows]
        left = np.clip(np.searchsorted(rows, np.arange(seen.length), side="right") - 1, 0, max(rows.size - 2, 0))
        right = np.minimum(left + 1, rows.size - 1)
        part = ((seen.progress - place[left]) / np.maximum(place[right] - place[left], 1e-300))[:, None]
        return cls((1 - part) * logs[:, left] + part * logs[:, right], copies, variance, seen)

    def mean(self, multiplicities: Multiplicities) -> Seen:
        """Mean attention a, rows summing to 1."""
        (alpha,) = self._at(multiplicities.first, 0)
        return np.asarray(alpha / self.seen.each(self.seen.total(alpha)))

    def levels(self, mean: Seen, multiplicities: Multiplicities) -> Levels:
        """The levels of every token in every row."""
        dtype = mean.dtype.type
        c = multiplicities.first.astype(dtype)
        alpha, beta, kappa = self._at(c, 0, 1, 2)
        (beta_own,) = self._at(multiplicities.second.astype(dtype), 1)
        response = np.clip(1 - c * beta / (self.seen.each(self.seen.counts, dtype) * alpha), 1e-3, 1)
        alpha *= alpha
        spread = np.maximum(beta / alpha - 1, 1e-9)
        own = np.maximum(beta_own / alpha - 1, spread)
        score = np.maximum(kappa / alpha, 1e-9)
        alone = self.seen.each(self.seen.counts) <= 1
        response[alone], spread[alone], own[alone], score[alone] = 1.0, 1e-9, 1e-9, 1.0
        whole = c * mean
        share = np.clip(whole, 0, 0.9)
        together = self.seen.each(self.seen.total(mean * share), dtype)
        score /= np.maximum(1 - 2 * share + together, 0.05)
        participation = response**2 + np.maximum(together - share**2, 0)
        return Levels(whole, np.minimum(response / (1 - share), 1.5), participation, spread, own, score)

    def _at(self, multiplicity: Seen, *which: int) -> list[Seen]:
        """The moments ``which`` of every token in every row."""
        bins = self.logs.shape[2]
        place = Placement.of(multiplicity, bins)
        index = place.first + self.seen.rows * bins
        out = []
        for k in which:
            log = self.logs[k].ravel().astype(multiplicity.dtype)
            total = log[index] * place.weights[0]
            for q in (1, 2, 3):
                total += log[index + q] * place.weights[q]
            out.append(np.exp(total, out=total))
        return out


@lru_cache(maxsize=8)
def _table(longest: int, variance: float) -> RowMomentTable:
    return RowMomentTable.build(longest, variance)
