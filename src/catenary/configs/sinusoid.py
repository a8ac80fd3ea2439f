"""Tables of sines and cosines as fixed positions, in the two spacings of frequencies that are in use."""

from __future__ import annotations

from catenary.architecture import Sinusoid

THETA = 10_000.0


def paper_sinusoid(width: int) -> Sinusoid:
    """Frequencies theta^(-2f/d), f < d/2 (arXiv 1706.03762, section 3.5)."""
    return Sinusoid(THETA, width / 2)


def fairseq_sinusoid(width: int) -> Sinusoid:
    """Frequencies theta^(-f/(d/2 - 1)), f < d/2, so that the last is 1/theta: tensor2tensor's and fairseq's table."""
    return Sinusoid(THETA, width // 2 - 1)
