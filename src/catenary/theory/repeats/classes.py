"""Tokens by frequency instead of by name: classes of equally frequent tokens, and rows that see shares of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Float64, Int64, Real

from catenary.theory.positions.pairs import Matrix, Pairs, Positions, Vector
from catenary.theory.repeats.band import EachRow, Seen, thinned
from catenary.theory.repeats.likeness import WEAKEST, Multiplicities, fullest


@dataclass(frozen=True, eq=False)
class TokenClasses:
    r"""Classes m of tokens in a stationary text: a position is in class m with probability \(q_m\) (``share``); given
    that, another position holds the same token with probability \(p_m\) (``repeat``). The last position is in the
    last class."""

    share: Float64[np.ndarray, " classes"]
    repeat: Float64[np.ndarray, " classes"]

    @classmethod
    def of_ids(cls, ids: Int64[np.ndarray, " L"]) -> tuple[TokenClasses, Int64[np.ndarray, " L"]]:
        """Classes of the tokens of one text by their counts, and the class of each position.

        Counts 1, 2-4, 5-16, 17-64 and so on.
        """
        counts = np.unique(ids, return_counts=True, return_inverse=True)
        times = counts[2][counts[1]]
        level = np.ceil(0.5 * np.log2(times)).astype(np.int64)
        kinds = np.unique(level)
        others = (times - 1) / max(ids.size - 1, 1)
        order = np.append(kinds[kinds != level[-1]], level[-1])
        if order.size == 1:
            order = np.repeat(order, 2)
        index = np.array([np.flatnonzero(order == one)[-1] for one in level])
        whole = np.array([np.mean(level == one) for one in order]) / np.array([np.sum(order == one) for one in order])
        repeat = np.array([others[level == one].mean() for one in order])
        return cls(whole, repeat), index

    @property
    def count(self) -> int:
        """Number of classes."""
        return self.share.size


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The classes that each group of queries sees, one entry per (group, class)."""

    positions: Positions
    classes: TokenClasses

    @property
    def length(self) -> int:
        """Number of groups."""
        return self.positions.counts.size

    @property
    def counts(self) -> Vector:
        """Tokens seen by the queries of a group."""
        return self.positions.counts

    @cached_property
    def progress(self) -> EachRow:
        """ln of the group's mean position while rows grow, and on by position over row length after that."""
        sizes = self.positions.sizes
        steps = sizes / self.counts
        return np.asarray(np.cumsum(steps) - steps / 2)

    @cached_property
    def rows(self) -> Int64[np.ndarray, " seen"]:
        """The group of each entry."""
        return np.repeat(np.arange(self.length), self.classes.count)

    def each(self, vector: Real[np.ndarray, " n"], dtype: type = np.float64) -> Seen:
        """A value per group, repeated for the classes."""
        return np.repeat(vector.astype(dtype), self.classes.count)

    def table(self, seen: Seen) -> Float[np.ndarray, "n classes"]:
        """Entries as a table of groups and classes."""
        return np.asarray(seen.reshape(self.length, self.classes.count))

    def total(self, seen: Seen) -> EachRow:
        """Sum over the tokens of each row."""
        return np.asarray((self.table(seen) @ self.classes.share) * self.counts)

    def row(self, seen: Seen, i: int) -> Float[np.ndarray, " row"]:
        """The entries of one group."""
        return np.asarray(self.table(seen)[i])

    def tokens(self, i: int) -> Float64[np.ndarray, " row"]:
        """Tokens of each class in a row."""
        return np.asarray(self.counts[i] * self.classes.share)

    def chosen(self, step: float, head: int) -> Int64[np.ndarray, " rows"]:
        """Groups so dense that ``progress`` grows by at most ``step``; the first ones and the last."""
        return thinned(self.progress, step, head)


@dataclass(frozen=True, eq=False)
class ClassMeeting:
    r"""How alike the keys of different (``different``) and equal tokens (``equal``) at two positions are."""

    different: Matrix
    equal: Matrix
    seen: ClassRows

    @cached_property
    def background(self) -> Vector:
        """b: mean likeness of different tokens per row."""
        return np.asarray(np.clip(self._mean(self.different), 0, 1 - WEAKEST))

    def relative(self, keys: Float64[np.ndarray, " *shape"]) -> Float64[np.ndarray, " *shape"]:
        """(X - b)/(1 - b), at most 1, with b of the last of the longest rows."""
        common = self.background[fullest(self.seen)]
        return np.asarray((np.minimum(keys, 1) - common) / (1 - common))

    def multiplicities(self, exponent: float) -> Multiplicities:
        """Mean effective number of copies of a token of each class in each row, under tilts by y and 2y."""
        return Multiplicities(self._copies(exponent), self._copies(2 * exponent))

    def _copies(self, exponent: float) -> Seen:
        common = self.background[fullest(self.seen)]
        shift = np.exp(exponent * (self.background - common) / (1 - common))
        others = self.seen.counts - 1
        mean = [self._mean(np.exp(exponent * self.relative(keys))) / shift - 1 for keys in (self.different, self.equal)]
        p = self.seen.classes.repeat
        top = math.exp(exponent) / shift - 1
        copies = 1 + (others / top)[:, None] * (np.outer(mean[0], 1 - p) + np.outer(mean[1], p))
        return np.asarray(np.clip(copies, 1, np.maximum(self.seen.counts, 1)[:, None]).ravel())

    def _mean(self, keys: Matrix) -> Vector:
        """Mean over pairs of two different positions that a row sees."""
        nothing = np.zeros(self.seen.length)
        over = [self.seen.positions.average(Pairs(x, nothing)).full.same for x in (keys, np.ones_like(keys))]
        return np.asarray(np.where(over[1] > 1e-12, over[0] / np.maximum(over[1], 1e-12), 0.0))
