r"""A soft-cap on logits, as Gaussian logits of another variance and with flatter slopes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NODES = 60
"""Gauss-Hermite nodes over a logit."""


@dataclass(frozen=True)
class Cap:
    r"""What \(f(z) = c\tanh(z/c)\) does to logits of variance v that weigh tokens by \(e^f\).

    ``variance`` is v' with \(e^{v'} = Ee^{2f}/(Ee^f)^2\), the spread of the weights. Gradients pass \(f'\): ``slope``
    is \(\sqrt{v/v'}\,E[f'e^f]/Ee^f\) for one token's response, ``square`` is \((v/v')\,E[f'^2e^{2f}]/Ee^{2f}\) for
    one query's score terms. 1 without a cap. Derived here; rows of many tokens.
    """

    variance: float
    slope: float = 1.0
    square: float = 1.0

    @classmethod
    def of(cls, variance: float, softcap: float | None) -> Cap:
        """The logits of a cap c over logits of variance v."""
        if softcap is None:
            return cls(variance)
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        z = np.sqrt(variance) * nodes
        f, slope = softcap * np.tanh(z / softcap), 1 - np.tanh(z / softcap) ** 2
        once, twice = weights * np.exp(f), weights * np.exp(2 * f)
        capped = float(np.log(twice.sum() * weights.sum() / once.sum() ** 2))
        ratio = variance / capped
        return cls(
            capped, float(np.sqrt(ratio) * (slope @ once) / once.sum()), float(ratio * (slope**2 @ twice) / twice.sum())
        )
