"""The initial standard deviation that a config names, as transformers reads it."""

from __future__ import annotations

from catenary.configs import limits
from catenary.configs.fields import Fields
from catenary.errors import invalid

TRANSFORMERS_STD = 0.02
"""What transformers' base initialisation takes for a falsy ``initializer_range``."""


NAMES = ("initializer_range", "init_std", "initializer_factor")
"""Where transformers' base initialisation looks for a std, in its order."""


def initial_std(fields: Fields) -> float:
    """The std of transformers' base ``_init_weights``: the first of ``NAMES`` that the config or its class has.

    An ``initializer_range`` of 0 is read as 0.02, as there.
    """
    name = next((name for name in NAMES if fields.knows(name)), NAMES[0])
    std = fields.number(name, most=limits.STD)
    if std > 0:
        return std
    if name != NAMES[0]:
        raise invalid(name, "must be > 0", std, "a network of zeros has no profile")
    fields.assume(name, TRANSFORMERS_STD, "the config says 0, which transformers reads as 0.02")
    return TRANSFORMERS_STD


def uniform_initialisation(std: float) -> str:
    """The sentence for families that draw every matrix at one standard deviation."""
    return (
        f"transformers' default: every linear and embedding N(0, {std:.6g}^2), biases 0, norm weights 1; "
        "the model's makers may have trained from another"
    )
