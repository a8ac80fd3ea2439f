"""Scorer: anything that turns the cases of one sample into results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from catenary.retrieval.case import Case
from catenary.retrieval.scoring.scored import Scored


@runtime_checkable
class Scorer(Protocol):
    """Scores prompts. ``has_logp`` says whether it gives log-probabilities, or generated text alone."""

    @property
    def has_logp(self) -> bool:
        """Whether results carry the answer's log-probability."""
        ...

    def settle(self, cases: Sequence[Case]) -> None:
        """Decide, on the cases of one sample, whatever must be the same for all samples."""
        ...

    def score(self, cases: Sequence[Case]) -> list[Scored]:
        """One result for each case, in order; cases of one sample, which begin alike."""
        ...

    def identity(self) -> dict[str, Any]:
        """Everything that decides the results, as JSON values: results of another identity are never mixed in."""
        ...

    def record(self) -> dict[str, Any]:
        """What a reader must know of how it was scored, as JSON values."""
        ...
