"""The initial standard deviation that a config names, as transformers reads it."""

from __future__ import annotations

from catenary.configs import limits
from catenary.configs.fields import Fields

TRANSFORMERS_STD = 0.02
"""What transformers' base initialisation takes for a falsy ``initializer_range``."""


def initial_std(fields: Fields) -> float:
    """``initializer_range``, with 0 read as 0.02 as transformers' base ``_init_weights`` does."""
    std = fields.number("initializer_range", most=limits.STD)
    if std > 0:
        return std
    fields.assume("initializer_range", TRANSFORMERS_STD, "the config says 0, which transformers reads as 0.02")
    return TRANSFORMERS_STD


def uniform_initialisation(std: float) -> str:
    """The sentence for families that draw every matrix at one standard deviation."""
    return (
        f"transformers' default: every linear and embedding N(0, {std:.6g}^2), biases 0, norm weights 1; "
        "the model's makers may have trained from another"
    )
