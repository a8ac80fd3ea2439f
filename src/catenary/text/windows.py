"""Windows: equal-length token sequences that are fed to a network, and how they were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from catenary.errors import invalid

Kind = Literal["vanilla", "chunked", "shuffled", "uniform", "random", "zipf", "given"]


@dataclass(frozen=True, eq=False)
class Windows:
    """Token ids of n windows of L tokens: ``ids`` is int64 of shape (n, L).

    ``vectors`` says what a token is fed as: ``"model"`` looks it up in the network's embedding;
    ``"gaussian"`` gives every distinct id of a window an independent N(0, std^2) vector drawn from ``seed``
    (std = the network's embedding std), for untrained networks only.
    ``report`` counts what was skipped and why; ``sources`` has one record per window (document, offsets).
    """

    ids: NDArray[np.int64]
    kind: Kind = "given"
    vectors: Literal["model", "gaussian"] = "model"
    seed: int = 0
    report: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Check and freeze the ids."""
        given = np.asarray(self.ids)
        if given.dtype.kind not in "iu":
            raise invalid("ids", "must be whole numbers", f"an array of {given.dtype}")
        ids = np.array(given, dtype=np.int64)
        if ids.ndim != 2 or ids.shape[0] < 1 or ids.shape[1] < 2:
            raise invalid("ids", "must have shape (windows >= 1, length >= 2)", f"shape {ids.shape}")
        if (ids < 0).any():
            raise invalid("ids", "must be >= 0", int(ids.min()))
        ids.setflags(write=False)
        object.__setattr__(self, "ids", ids)

    def __len__(self) -> int:
        """Number of windows."""
        return int(self.ids.shape[0])

    @property
    def length(self) -> int:
        """Tokens per window L."""
        return int(self.ids.shape[1])
