"""Tables of sines and cosines as fixed positions, in the two spacings of frequencies that are in use."""

from __future__ import annotations

from catenary.architecture import Sinusoid
from catenary.errors import invalid

THETA = 10_000.0


def paper_sinusoid(width: int) -> Sinusoid:
    """Frequencies theta^(-2f/d), f < d/2 (arXiv 1706.03762, section 3.5)."""
    return Sinusoid(THETA, width / 2)


def fairseq_sinusoid(width: int) -> Sinusoid:
    """Frequencies theta^(-f/(d/2 - 1)), f < d/2, so that the last is 1/theta: tensor2tensor's and fairseq's table.

    Fairseq's first position is 2, behind those of the padding token.
    """
    if width < 4:
        raise invalid("hidden_size", "must be >= 4 for these sinusoidal positions", width)
    return Sinusoid(THETA, width // 2 - 1, offset=2)
