"""Query: a prompt to score in tokens, and what a network makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64


@dataclass(frozen=True, eq=False)
class Query:
    """Ids of a prompt, and of the answer whose log-probability behind it is asked for."""

    prompt: Int64[np.ndarray, " n"]
    answer: Int64[np.ndarray, " m"]


@dataclass(frozen=True)
class Reply:
    """Mean log-probability of the answer's tokens in nats, the generated text, and whether it came to its end."""

    logp: float
    text: str
    ended: bool
