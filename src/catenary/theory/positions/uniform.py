"""Kernels that average uniformly over a run of tokens: the whole past, a window, a chunk, a two-sided prefix."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float64

from catenary.theory.positions.running import later_sum, running_sum, sliding_sum
from catenary.theory.positions.scan import Scan, along, check_whole, frozen

Array = Float64[np.ndarray, " *shape"]


class UniformScan(Scan):
    """Rows that are 1/n_i on n_i tokens and 0 elsewhere."""

    @abstractmethod
    def _sum_seen(self, x: Array, axis: int) -> Array:
        """Sum over the tokens that each query sees; a new array."""

    @abstractmethod
    def _sum_seeing(self, x: Array, axis: int) -> Array:
        """Sum over the queries that see each token; a new array."""

    def _average(self, x: Array, axis: int) -> Array:
        y = self._sum_seen(x, axis)
        y /= along(self.counts, x, axis)
        return y

    def _adjoint(self, x: Array, axis: int) -> Array:
        return self._sum_seeing(x / along(self.counts, x, axis), axis)


@final
@dataclass(frozen=True)
class Uniform(UniformScan):
    r"""The Cesàro matrix \(M_{ij} = 1/i\) for \(j \le i\) (1-based): uniform attention over all tokens so far.

    Rows sum to 1. Source: arXiv 2603.10123, section 3.1. Exact at birth when all attention logits are equal.
    """

    @cached_property
    def counts(self) -> Float64[np.ndarray, " L"]:
        """Tokens seen by each query, 1..L."""
        return frozen(np.arange(1.0, self.length + 1.0))

    def _sum_seen(self, x: Array, axis: int) -> Array:
        return running_sum(x, axis)

    def _sum_seeing(self, x: Array, axis: int) -> Array:
        return later_sum(x, axis)


@final
@dataclass(frozen=True)
class Windowed(UniformScan):
    r"""Uniform attention over the last w tokens, the query's own included: \(A_{ij} = 1/\min(i, w)\), i - w < j <= i.

    Rows sum to 1. With w >= L it is ``Uniform``. Exact at birth when all attention logits are equal. Derived here.

    Attributes:
        width: w >= 1.
    """

    width: int

    def __post_init__(self) -> None:
        """Refuse sizes that are none."""
        super().__post_init__()
        check_whole("width", self.width)

    @cached_property
    def counts(self) -> Float64[np.ndarray, " L"]:
        """Tokens seen by each query, min(i, w)."""
        return frozen(np.minimum(np.arange(1.0, self.length + 1.0), float(self.width)))

    def _sum_seen(self, x: Array, axis: int) -> Array:
        return sliding_sum(x, self.width, axis)

    def _sum_seeing(self, x: Array, axis: int) -> Array:
        return np.flip(sliding_sum(np.flip(x, axis), self.width, axis), axis)


@final
@dataclass(frozen=True)
class Chunked(UniformScan):
    r"""Uniform attention over the query's own chunk so far: \(A_{ij} = 1/(1 + (i-1) \bmod w)\) within a chunk of w.

    Rows sum to 1; tokens of different chunks never meet. Exact at birth when all attention logits are equal.
    Derived here.

    Attributes:
        width: w >= 1.
    """

    width: int

    def __post_init__(self) -> None:
        """Refuse sizes that are none."""
        super().__post_init__()
        check_whole("width", self.width)

    @cached_property
    def counts(self) -> Float64[np.ndarray, " L"]:
        """Tokens seen by each query, 1..w in every chunk."""
        return frozen(np.arange(self.length) % self.width + 1.0)

    def _sum_seen(self, x: Array, axis: int) -> Array:
        return running_sum(x, axis, self.width)

    def _sum_seeing(self, x: Array, axis: int) -> Array:
        return later_sum(x, axis, self.width)


@final
@dataclass(frozen=True)
class Prefixed(UniformScan):
    r"""The first P tokens see each other in both directions, later ones all tokens so far: \(A_{ij} = 1/\max(i, P)\).

    Rows sum to 1. A prefix longer than the sequence makes every row 1/L. Exact at birth when all attention logits are
    equal. Derived here.

    Attributes:
        prefix: P >= 1.
    """

    prefix: int

    def __post_init__(self) -> None:
        """Refuse sizes that are none."""
        super().__post_init__()
        check_whole("prefix", self.prefix)

    @property
    def _inside(self) -> int:
        return min(self.prefix, self.length)

    @cached_property
    def counts(self) -> Float64[np.ndarray, " L"]:
        """Tokens seen by each query, max(i, P)."""
        return frozen(np.maximum(np.arange(1.0, self.length + 1.0), float(self._inside)))

    def _sum_seen(self, x: Array, axis: int) -> Array:
        y = running_sum(x, axis)
        rows = np.moveaxis(y, axis, 0)
        rows[: self._inside - 1] = rows[self._inside - 1]
        return y

    def _sum_seeing(self, x: Array, axis: int) -> Array:
        y = later_sum(x, axis)
        rows = np.moveaxis(y, axis, 0)
        rows[1 : self._inside] = rows[0]
        return y
