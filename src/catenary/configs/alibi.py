"""ALiBi's slopes, one head group each: BLOOM's and Falcon's order of heads, and MPT's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from catenary.architecture import Alibi, Attention, HeadGroup


def biased(attentions: Sequence[Attention], groups: tuple[HeadGroup, ...]) -> tuple[Attention, ...]:
    """These attentions with a slope for every head."""
    return tuple(replace(attention, groups=groups) for attention in attentions)


def bloom_heads(heads: int, factor: float = 1.0) -> tuple[HeadGroup, ...]:
    r"""Slopes \(2^{-8k/n}\), k = 1..n, for n heads; where n is no power of two, those of the power below, then more.

    With \(n_0 = 2^{\lfloor\log_2 n\rfloor}\) the first \(n_0\) heads have \(2^{-8k/n_0}\), the others every second
    slope of \(2n_0\) heads: \(2^{-8(2k-1)/(2n_0)}\), k = 1, 2, ... (arXiv 2108.12409 as transformers' BLOOM and Falcon
    have it). ``factor`` multiplies every slope.
    """
    below = 1 << (heads.bit_length() - 1)
    slopes = [2 ** (-8 * k / below) for k in range(1, below + 1)]
    slopes += [2 ** (-8 * (2 * k - 1) / (2 * below)) for k in range(1, heads - below + 1)]
    return _groups(slopes, factor)


def mpt_heads(heads: int, most: float) -> tuple[HeadGroup, ...]:
    r"""Slopes \(2^{-mk/n}\), k = 1..n, m = ``most``; where n is no power of two, n of those of the power above.

    Every second slope from the second on comes first, then every second from the first on, as in transformers' MPT.
    """
    above = 2 ** math.ceil(math.log2(heads))
    slopes = [2 ** (-most * k / above) for k in range(1, above + 1)]
    if above != heads:
        slopes = (slopes[1::2] + slopes[::2])[:heads]
    return _groups(slopes, 1.0)


def _groups(slopes: Sequence[float], factor: float) -> tuple[HeadGroup, ...]:
    return tuple(HeadGroup(1, Alibi(factor * slope)) for slope in slopes)
