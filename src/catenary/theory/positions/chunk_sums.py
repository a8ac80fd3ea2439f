r"""Averages over chunks and over the whole past where pairs are known at some positions of some chunks only.

The sum over all tokens z of X[x, z] is taken chunk by chunk: over the places of each known chunk, then over chunks.
Seen from x, X jumps at x's own place in x's own chunk, and at x's own chunk; see ``Line``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float64, Real

from catenary.theory.positions.chunk_nodes import ChunkNodes
from catenary.theory.positions.pairs import Matrix, Vector


@final
@dataclass(frozen=True, eq=False)
class Places:
    """Sums over places, within every chunk by itself: matrices per pivot, of full chunks and of the last one."""

    nodes: ChunkNodes
    inner: Float64[np.ndarray, "pivots n n"]
    last: Float64[np.ndarray, "ends r r"]

    @classmethod
    def up_to(cls, nodes: ChunkNodes) -> Places:
        """Sums over the places up to each known one."""
        return cls(nodes, nodes.places.up_to(np.ones_like), nodes.last.up_to(np.ones_like))

    @classmethod
    def onward(cls, nodes: ChunkNodes) -> Places:
        """Sums over the places from each known one on, each divided by its number in the chunk."""
        return cls(nodes, nodes.places.onward(_inverse), nodes.last.onward(_inverse))

    @cached_property
    def _inner_turned(self) -> Float64[np.ndarray, "n n"]:
        return np.ascontiguousarray(self.inner[-1].T)

    @cached_property
    def _last_turned(self) -> Float64[np.ndarray, "r r"]:
        return np.ascontiguousarray(self.last[-1].T)

    def of(self, x: Matrix) -> Matrix:
        """The sums of x[i, :], for every i."""
        chunks, places, full = self.nodes.chunks.size, self.nodes.places.size, self.nodes.full
        sums = np.empty_like(x)
        # Many small products: one tall one takes five times as long.
        inside = np.ascontiguousarray(x[:, :full]).reshape(-1, chunks, places) @ self._inner_turned
        sums[:, :full] = inside.reshape(-1, full)
        sums[:, full:] = x[:, full:] @ self._last_turned
        # In its own chunk a token's row jumps at the token.
        each = np.arange(chunks)
        own = x[:full, :full].reshape(chunks, places, chunks, places)[each, :, each]
        own = np.matmul(own.transpose(1, 0, 2), self.inner[:-1].transpose(0, 2, 1))
        sums[:full, :full].reshape(chunks, places, chunks, places)[each, :, each] = own.transpose(1, 0, 2)
        sums[full:, full:] = np.matmul(self.last[:-1], x[full:, full:, None])[:, :, 0]
        return sums


@final
@dataclass(frozen=True, eq=False)
class Chunks:
    """Sums over all chunks before, or behind, the one that a known position lies in; matrices per pivot.

    Attributes:
        nodes: the known positions.
        weight: what a chunk's total is divided by before it is taken from known ones, and multiplied by after.
        matrices: from known chunks to the sums at known chunks, and at the last chunk.
    """

    nodes: ChunkNodes
    weight: Vector
    matrices: Float64[np.ndarray, "pivots some n"]

    @classmethod
    def before(cls, nodes: ChunkNodes) -> Chunks:
        """Over the full chunks before each known one, and before the last."""
        sums, chunks = nodes.chunks.up_to(np.ones_like), nodes.chunks.size
        earlier = sums - np.eye(chunks)
        return cls(nodes, np.ones(chunks), np.concatenate((earlier, sums[:, -1:]), axis=1))

    @classmethod
    def behind(cls, nodes: ChunkNodes) -> Chunks:
        """Over the full chunks behind each known one; totals fall as the inverse of the chunk's middle."""
        middle = nodes.chunks.nodes + 0.5
        sums = nodes.chunks.onward(lambda chunk: 1 / (chunk + 0.5)) - np.diag(1 / middle)
        return cls(nodes, 1 / middle, np.concatenate((sums, np.zeros_like(sums[:, :1])), axis=1))

    def of(self, totals: Float64[np.ndarray, "n chunks"]) -> Float64[np.ndarray, "n some"]:
        """The sums of rows of totals per known chunk, at known chunks and the last."""
        chunks, full = self.nodes.chunks.size, self.nodes.full
        totals = totals / self.weight
        sums = np.empty((len(totals), chunks + 1))
        own = totals[:full].reshape(chunks, -1, chunks)
        sums[:full] = np.matmul(own, self.matrices[:-1].transpose(0, 2, 1)).reshape(full, -1)
        sums[full:] = totals[full:] @ self.matrices[-1].T
        return sums


@final
@dataclass(frozen=True, eq=False)
class KnownSums:
    """The sums of one set of known positions, which all kernels on it share."""

    nodes: ChunkNodes

    @cached_property
    def up_to(self) -> Places:
        """Over places up to the query."""
        return Places.up_to(self.nodes)

    @cached_property
    def onward(self) -> Places:
        """Over places from the token on."""
        return Places.onward(self.nodes)

    @cached_property
    def before(self) -> Chunks:
        """Over chunks before the query's."""
        return Chunks.before(self.nodes)

    @cached_property
    def behind(self) -> Chunks:
        """Over chunks behind the token's."""
        return Chunks.behind(self.nodes)


@dataclass(frozen=True, eq=False)
class KnownAttention(ABC):
    """Uniform attention on known positions; what a query sees is its subclass's."""

    sums: KnownSums

    @property
    @abstractmethod
    def counts(self) -> Vector:
        """Tokens seen by each query."""

    @property
    def length(self) -> int:
        """How many positions are known."""
        return self.counts.size

    def average(self, x: Real[np.ndarray, "n n"], axis: int = 0) -> Matrix:
        """The mean over what each query sees, along ``axis`` of a function of two positions."""
        return _along(axis, x, self._average)

    def adjoint(self, x: Real[np.ndarray, "n n"], axis: int = 0) -> Matrix:
        """What each token gets from the queries that see it, along ``axis`` of a function of two positions."""
        return _along(axis, x, self._adjoint)

    @abstractmethod
    def _average(self, x: Matrix) -> Matrix:
        """The mean along the last axis."""

    @abstractmethod
    def _adjoint(self, x: Matrix) -> Matrix:
        """What tokens get along the last axis."""


@final
@dataclass(frozen=True, eq=False)
class WithinChunks(KnownAttention):
    """Uniform attention over the query's own chunk so far, on known positions."""

    @property
    def counts(self) -> Vector:
        """Tokens seen by each query."""
        return self.sums.nodes.place

    def _average(self, x: Matrix) -> Matrix:
        return np.asarray(self.sums.up_to.of(x) / self.counts)

    def _adjoint(self, x: Matrix) -> Matrix:
        return self.sums.onward.of(x)


@final
@dataclass(frozen=True, eq=False)
class AcrossChunks(KnownAttention):
    """Uniform attention over the whole past, on known positions of known chunks."""

    @property
    def counts(self) -> Vector:
        """Tokens seen by each query."""
        return self.sums.nodes.position

    def _average(self, x: Matrix) -> Matrix:
        nodes, sums = self.sums.nodes, self.sums.up_to.of(x)
        totals = sums[:, nodes.places.size - 1 : nodes.full : nodes.places.size]
        sums += np.repeat(self.sums.before.of(totals), nodes.per_chunk, axis=1)
        sums /= self.counts
        return sums

    def _adjoint(self, x: Matrix) -> Matrix:
        nodes, sums = self.sums.nodes, self.sums.onward.of(x * (self.sums.nodes.place / self.counts))
        later = self.sums.behind.of(sums[:, : nodes.full : nodes.places.size])
        later[:, :-1] += sums[:, nodes.full, None]
        sums += np.repeat(later, nodes.per_chunk, axis=1)
        return sums


def _along(axis: int, x: Real[np.ndarray, "n n"], rows: Callable[[Matrix], Matrix]) -> Matrix:
    """``rows``, which sums along the last axis, along ``axis``."""
    if axis in (1, -1):
        return rows(np.ascontiguousarray(x, dtype=np.float64))
    return np.ascontiguousarray(rows(np.ascontiguousarray(x.T, dtype=np.float64)).T)


def _inverse(place: Float64[np.ndarray, " y"]) -> Float64[np.ndarray, " y"]:
    return np.asarray(1 / (place + 1))
