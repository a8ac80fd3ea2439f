"""Mean attention kernels at birth, and the heads that share one."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Causal:
    """Mean attention at birth that is uniform over all tokens so far: A_ij = 1/i for j <= i (1-based)."""


@dataclass(frozen=True)
class Window:
    """Uniform over the last ``width`` tokens, the query's own included: A_ij = 1/min(i, w) for i - w < j <= i."""

    width: int


@dataclass(frozen=True)
class Chunk:
    """Uniform over the query's own chunk of ``width`` positions so far: nothing crosses a multiple of ``width``."""

    width: int


@dataclass(frozen=True)
class Alibi:
    """Exponential in the distance: A_ij proportional to exp(-slope (i - j)) for j <= i."""

    slope: float


@dataclass(frozen=True)
class Prefix:
    """The first ``length`` tokens see each other in both directions; after them attention is causal."""

    length: int


Kernel = Causal | Window | Chunk | Alibi | Prefix
"""The mean attention kernel of a head group."""


@dataclass(frozen=True)
class HeadGroup:
    """Query heads of one layer that share one mean attention kernel."""

    heads: int
    kernel: Kernel = field(default_factory=Causal)
