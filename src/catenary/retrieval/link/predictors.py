"""Predictors of a curve by slot: what is read in a prompt, at which of its slots, and those that need no prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64

Where = Literal["all", "others", "gold", "place"]
"""At every slot of a prompt, at those without the fact, at the fact's own, or from the slot's place alone."""


@dataclass(frozen=True)
class Predictor:
    """One candidate.

    Attributes:
        label: as printed.
        meaning: what it is, in words.
        where: the slots of a prompt at which it is read.
        row: the row of ``Readings`` it is read from; empty for ``place``.
        place: from places in [0, 1] to its values, for ``place`` alone.
    """

    label: str
    meaning: str
    where: Where
    row: str = ""
    place: Callable[[Float64[np.ndarray, " P"]], Float64[np.ndarray, " P"]] | None = None


ROWS: Mapping[str, str] = {
    "jacobian": "root of the summed squares of rho_j over the slot's tokens",
    "relative": "the same with rho_j |e_j|",
    "logit": "norm of the gradient of the answer's first token's logit with respect to the slot's embedded tokens",
    "logp": "the same of its log-probability",
    "attention": "mass that the last prompt token's attention puts on the slot, mean over layers and heads",
    "birth": "the birth law's rho_j for this prompt's tokens, summed as the first",
}
"""What is kept of every prompt, one number for each slot."""

PREDICTORS: Mapping[str, Predictor] = {
    "jacobian": Predictor("Jacobian", "trained isotropic Jacobian of the last prompt token", "all", "jacobian"),
    "relative": Predictor("Jacobian x |e|", "the same for relative changes of the input", "all", "relative"),
    "logit": Predictor("answer's logit, other slots", "gradient where the fact does not stand", "others", "logit"),
    "logit-gold": Predictor("answer's logit, gold slot", "gradient where the fact stands", "gold", "logit"),
    "logp-gold": Predictor(
        "answer's log-probability, gold slot", "gradient where the fact stands; small where the model is sure", "gold",
        "logp",
    ),
    "attention": Predictor("attention", "mass by slot, mean over layers and heads", "all", "attention"),
    "attention-gold": Predictor("attention, gold slot", "mass on the fact's own slot", "gold", "attention"),
    "birth": Predictor("birth profile", "predicted for the untrained network", "all", "birth"),
    "end": Predictor("nearness to the end", "x, the slot's place from 0 to 1", "place", place=lambda x: x),
    "edges": Predictor("edges", "|x - 1/2|", "place", place=lambda x: np.abs(x - 0.5)),
}  # fmt: skip
"""Predictors in the order they are reported."""
