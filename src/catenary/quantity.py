"""Named kinds of profile, so that unlike numbers are never compared by accident."""

from __future__ import annotations

from dataclasses import dataclass

from catenary.registry import Registry


@dataclass(frozen=True)
class Quantity:
    """What one number of a profile is: its name, symbol, definition and whether its absolute size means anything."""

    name: str
    symbol: str
    definition: str
    absolute: bool


QUANTITIES: Registry[Quantity] = Registry("quantity")

JACOBIAN_NORM = QUANTITIES.register(
    "jacobian-norm",
    Quantity(
        "jacobian-norm",
        "||J_j||_F",
        "Frobenius norm of d h_L / d e_j: the last position's residual stream before the final norm, "
        "with respect to the input embedding at position j",
        True,
    ),
)

SCALAR_GRADIENT = QUANTITIES.register(
    "scalar-gradient",
    Quantity(
        "scalar-gradient",
        "|d s / d e_j|",
        "norm of the gradient of one scalar of the last position's stream with respect to the input embedding "
        "at position j (the one-pass quantity of arXiv 2603.10123); a one-probe estimate, up to scale, of ||J_j||_F",
        False,
    ),
)

PATH_WEIGHT = QUANTITIES.register(
    "path-weight",
    Quantity(
        "path-weight",
        "(N^H)_{L,j}",
        "entry (L, j) of a product of row-stochastic mixing matrices; the entries sum to one",
        True,
    ),
)
