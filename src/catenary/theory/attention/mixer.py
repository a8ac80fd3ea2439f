"""From the words of an attention to its mixer on given positions, and a refusal for every word that has no law."""

from __future__ import annotations

from collections.abc import Callable

from catenary.architecture import Attention, Kernel
from catenary.errors import NotApplicable
from catenary.theory.attention.attending import AttentionMixer, Heads
from catenary.theory.attention.coupling import Rows
from catenary.theory.attention.couplings import COUPLINGS
from catenary.theory.attention.gates import Gated
from catenary.theory.attention.scores import Scores
from catenary.theory.feed_forward.mixer import GATES
from catenary.theory.mixers import Mixer
from catenary.theory.positions.pairs import Positions
from catenary.theory.positions.portions import PortionsOf, each

PositionsOf = Callable[[Kernel], Positions]
"""From a mean attention kernel to its averages on the recursion's positions."""


def attention_mixer(
    attention: Attention,
    width: int,
    positions_of: PositionsOf,
    coupling: str = "strong",
    finite_width: bool = True,
    normalised: bool = True,
    portions_of: PortionsOf = each,
) -> Mixer:
    """The mixer of one attention, ``normalised`` where a norm is in front of it.

    ``portions_of`` says which share of the heads has which kernel; ``merged`` is cheaper for many ALiBi slopes.

    Raises:
        InvalidInput: an unknown coupling.
        NotApplicable: a word or a logit variance the law does not cover.
    """
    make, scores = COUPLINGS[coupling], Scores.of(attention, width, finite_width)
    own_norm = attention.qk_norm and not normalised
    if own_norm and not scores.plain:
        raise NotApplicable("the birth law does not cover a sink or soft-cap on scores that only QK-norm normalises")
    heads = []
    for portion in portions_of(attention.groups):
        positions = positions_of(portion.kernel)
        law = make(scores, Rows(positions.counts, positions.sizes))
        heads.append(Heads(portion.share, positions, law))
    mixer = AttentionMixer(attention.gain(width), tuple(heads), own_norm, normalised)
    if attention.gate is None:
        return mixer
    return Gated(mixer, GATES[attention.gate.function], width * attention.gate.std**2)
