"""Query: a prompt to score in tokens, and what a network makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Query:
    """A prompt, what is to follow it, and how many of the latter's first tokens are not scored."""

    prompt: Int64[np.ndarray, " n"]
    continuation: Int64[np.ndarray, " m"]
    unscored: int


@dataclass(frozen=True)
class Reply:
    """Mean log-probability of the scored tokens in nats, the generated text, and whether it came to its end."""

    logp: float
    text: str
    ended: bool
