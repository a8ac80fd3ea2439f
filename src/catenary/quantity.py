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

LOGIT_JACOBIAN = QUANTITIES.register(
    "logit-jacobian-norm",
    Quantity(
        "logit-jacobian-norm",
        "||d z_L / d e_j||_F",
        "Frobenius norm of the derivative of all logits at the last position with respect to the input embedding at "
        "position j",
        True,
    ),
)

ANSWER_GRADIENT = QUANTITIES.register(
    "answer-gradient",
    Quantity(
        "answer-gradient",
        "|d log p(a) / d e_j|",
        "norm of the gradient of the log-probability of one answer token at the last position with respect to the "
        "input embedding at position j",
        True,
    ),
)

STREAM_JACOBIAN = QUANTITIES.register(
    "stream-jacobian-norm",
    Quantity(
        "stream-jacobian-norm",
        "||d h^t_L / d h^s_j||_F",
        "Frobenius norm of the derivative of the last position's residual stream at one layer with respect to the "
        "stream (or the input embedding) at position j of an earlier one; which layers, its provenance says",
        True,
    ),
)

PATHWAY_NORM = QUANTITIES.register(
    "pathway-norm",
    Quantity(
        "pathway-norm",
        "||J_j^paths||_F",
        "Frobenius norm of the part of d h_L / d e_j that runs through some paths of every layer only; which, its "
        "condition says",
        True,
    ),
)

RELATIVE: dict[Quantity, Quantity] = {
    base: QUANTITIES.register(
        f"relative-{base.name}",
        Quantity(
            f"relative-{base.name}",
            f"rms(e) {base.symbol}",
            f"{base.definition}; times the root mean square of one entry of what enters, so that a step is counted in "
            "units of its size",
            base.absolute,
        ),
    )
    for base in (JACOBIAN_NORM, SCALAR_GRADIENT, LOGIT_JACOBIAN, ANSWER_GRADIENT, STREAM_JACOBIAN)
}
"""The same with respect to inputs in units of their own root mean square, for networks of different scales."""

PATH_WEIGHT = QUANTITIES.register(
    "path-weight",
    Quantity(
        "path-weight",
        "(N^H)_{L,j}",
        "entry (L, j) of a product of row-stochastic mixing matrices; the entries sum to one",
        True,
    ),
)

ATTENTION_ROLLOUT = QUANTITIES.register(
    "attention-rollout",
    Quantity(
        "attention-rollout",
        "P_{L,j}",
        "entry (L, j) of the product over layers of (1 - lambda) I + lambda A, A a network's own attention averaged "
        "over heads; the entries sum to one, or to less where learned sinks take a part",
        True,
    ),
)
