r"""Attention with drawn heads as a mixer: exact in the logit variance, one draw of the network's queries and keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from catenary.theory.mixers import Outcome
from catenary.theory.positions.pairs import Pairs
from catenary.theory.sampled.heads import HeadLaw
from catenary.theory.sampled.scores import HeadPass


@dataclass(frozen=True, eq=False)
class SampledAttention:
    r"""Heads h with drawn queries and keys; values and outputs independent Gaussian, of squared gain \(\kappa_V^2\).

    For inputs of covariance X the outputs have covariance \(\kappa_V^2\,\mathrm{mean}_h A_hXA_h^\top\); backward, the
    mean over heads of ``HeadPass.backward``. Given the drawn logits this is exact at infinite width and values
    averaged over: no expansion in the logit variance, no closure over repeated tokens. Derived here.

    Attributes:
        law: how the heads are drawn.
        gain: \(\kappa_V^2\).
        seed: of this branch's heads; the same mixer draws the same heads from the same inputs.
    """

    law: HeadLaw
    gain: float
    seed: tuple[int, ...]

    def forward(self, x: Pairs) -> Outcome:
        """The pass over single positions; O(heads L^3)."""
        total = np.zeros_like(x.matrix)
        for head in self.law.draw(x.matrix, self.seed):
            total += head.attention @ x.matrix @ head.attention.T
        return Outcome(_pairs(self.gain / self.law.attention.heads * total), PassedSampled(self, x))


@dataclass(frozen=True, eq=False)
class PassedSampled:
    """The forward pass of drawn heads: only its inputs are kept, the heads are drawn again from the seed."""

    mixer: SampledAttention
    x: Pairs

    def backward(self, gradient: Pairs) -> Pairs:
        """Covariance of the inputs' gradients; O(heads L^3), times the head dimension with RoPE or QK-norm."""
        total = np.zeros_like(gradient.matrix)
        law = self.mixer.law
        for head in law.draw(self.x.matrix, self.mixer.seed):
            total += HeadPass.over(head, self.x.matrix).backward(gradient.matrix)
        return _pairs(self.mixer.gain / law.attention.heads * total)


def _pairs(matrix: Float64[np.ndarray, "L L"]) -> Pairs:
    return Pairs(matrix, matrix.diagonal().copy())
