r"""Some chunks stand for all of them, and some places for all places in a chunk: where pairs of positions are known.

A position is a chunk c and a place p in it. What attention inside chunks and over the whole past make of a pair
depends smoothly on the chunk and on the place, but jumps where the two chunks, or the two places, are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float64

from catenary.theory.positions.line import Line, graded
from catenary.theory.positions.pairs import Vector

SINGLE_PLACES, PLACE_GROWTH = 10, 0.3
"""Places at the start of a chunk that are all known, and steps behind them over the place."""

SINGLE_CHUNKS, CHUNK_GROWTH = 5, 1.0
"""The same for chunks."""

NEAR_END = 0.01
"""Smallest step near the end of a chunk or of all chunks, over its length."""


@final
@dataclass(frozen=True, eq=False)
class ChunkNodes:
    """The known positions of a sequence in chunks: known places of known full chunks, and those of the last chunk.

    Attributes:
        width: w, positions per chunk.
        chunks: which of the chunks before the last one are known.
        places: which places in them.
        last: which places in the last chunk, which may be incomplete; its last place is the last position.
    """

    width: int
    chunks: Line
    places: Line
    last: Line

    @classmethod
    def over(cls, length: int, width: int, finer: float = 1.0) -> ChunkNodes:
        """The known positions among ``length``, more than ``width``; ``finer`` divides all steps."""
        full = (length - 1) // width
        rest = length - full * width
        growth, end = PLACE_GROWTH / finer, NEAR_END / finer
        places = Line(graded(width, SINGLE_PLACES, growth, end))
        before = graded(rest - 1, SINGLE_PLACES, growth, end) if rest > 1 else np.empty(0, dtype=np.int64)
        last = Line(np.append(before, rest - 1), alone=True)
        chunks = Line(graded(full, SINGLE_CHUNKS, CHUNK_GROWTH / finer, end), shift=0.5)
        return cls(width, chunks, places, last)

    @cached_property
    def full(self) -> int:
        """How many known positions lie in full chunks before the last chunk."""
        return self.chunks.size * self.places.size

    @cached_property
    def place(self) -> Vector:
        """How many positions of its chunk each known position has up to itself."""
        return np.concatenate((np.tile(self.places.nodes, self.chunks.size), self.last.nodes)) + 1.0

    @cached_property
    def position(self) -> Vector:
        """Each known position, from 1."""
        starts = np.append(self.chunks.nodes, self.chunks.nodes[-1] + 1) * self.width
        return np.asarray(self.place + np.repeat(starts, self.per_chunk))

    @cached_property
    def per_chunk(self) -> tuple[int, ...]:
        """How many positions are known of each known chunk and of the last."""
        return (self.places.size,) * self.chunks.size + (self.last.size,)

    @property
    def length(self) -> int:
        """Number of positions L."""
        return int(self.position[-1])

    @cached_property
    def represented(self) -> Vector:
        """How many positions each known one stands for: its weight in a sum over all of them."""
        inner = np.outer(self.chunks.represented, self.places.represented).ravel()
        return np.concatenate((inner, self.last.represented))

    def spread(self, values: Vector) -> Float64[np.ndarray, " L"]:
        """Values of known positions at every position: logarithms by polynomials in those of chunk and place.

        Where full chunks hold a 0, they hold nothing else.
        """
        inside = values[: self.full].reshape(self.chunks.size, self.places.size)
        end = np.exp(self.last.spread(np.log(values[self.full :])[:, None])[:, 0])
        if (inside == 0).all():
            return np.append(np.zeros((self.chunks.nodes[-1] + 1) * self.width), end)
        along = self.places.spread(np.log(inside.T)).T
        return np.append(np.exp(self.chunks.spread(along)), end)
