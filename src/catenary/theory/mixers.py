"""What the second-moment recursion needs of a branch: covariances forward, covariances of gradients backward.

Attention and feed-forward networks are mixers; norms, scales and residual steps are the recursion's own business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from catenary.theory.positions.pairs import Pairs


@runtime_checkable
class Passed(Protocol):
    """What one branch keeps of its forward pass."""

    def backward(self, gradient: Pairs) -> Pairs:
        """Covariance of the gradients at the branch's inputs, from that at its outputs; ``gradient`` stays whole."""
        ...


@dataclass(frozen=True, eq=False)
class Outcome:
    """One branch's forward pass: covariance per coordinate of its outputs, whose memory is free to be overwritten."""

    added: Pairs
    passed: Passed


@runtime_checkable
class Mixer(Protocol):
    """A branch without its norms."""

    def forward(self, x: Pairs) -> Outcome:
        """The pass over inputs of covariance ``x`` (unit diagonal behind a norm); ``x`` stays whole."""
        ...
