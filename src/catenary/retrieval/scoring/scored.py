"""Scored: what one prompt gave, as it is kept on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Scored:
    """One prompt's result.

    Attributes:
        skipped: why nothing was scored; empty where it was.
        text: what was generated.
        ended: whether the generation came to an end within its limit; a text that did not is truncated.
        logp: mean log-probability of the first answer's tokens, nats; None where the model gives none.
        tokens: tokens of the prompt, 0 where they are not known.
        answer_tokens: tokens that ``logp`` is the mean of.
        apart: whether the answer was tokenised apart from the prompt, as together they would have merged.
    """

    skipped: str = ""
    text: str = ""
    ended: bool = False
    logp: float | None = None
    tokens: int = 0
    answer_tokens: int = 0
    apart: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def scored_from(record: Mapping[str, Any]) -> Scored:
    """The result that ``to_dict`` recorded."""
    return Scored(**record)
