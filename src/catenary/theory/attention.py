"""From the words of an attention to its mixer on given positions, and a refusal for every word that has no law."""

from __future__ import annotations

from collections.abc import Callable

from catenary.architecture import Alibi, Attention, Kernel
from catenary.errors import NotApplicable
from catenary.theory.attending import AttentionMixer, Heads
from catenary.theory.couplings import COUPLINGS
from catenary.theory.mixers import Mixer
from catenary.theory.pairs import Positions

PositionsOf = Callable[[Kernel], Positions]
"""From a mean attention kernel to its averages on the recursion's positions."""


def attention_mixer(
    attention: Attention,
    width: int,
    positions_of: PositionsOf,
    coupling: str = "strong",
    finite_width: bool = True,
    own_norm: bool = False,
) -> Mixer:
    """The mixer of one attention; ``own_norm`` where QK-norm is the only norm in front of the scores.

    Raises:
        InvalidInput: an unknown coupling.
        NotApplicable: a word or a logit variance the law does not cover.
    """
    check_words(attention, coupling)
    make = COUPLINGS[coupling]
    heads = []
    for group in attention.groups:
        positions = positions_of(group.kernel)
        law = make(attention, width, positions.counts, positions.sizes, finite_width)
        heads.append(Heads(group.heads / attention.heads, positions, law))
    return AttentionMixer(attention.gain(width), tuple(heads), own_norm)


def check_words(attention: Attention, coupling: str) -> None:
    """Refuse what the mixer would silently leave out."""
    for word in ("softcap", "sink", "gate", "latent"):
        if getattr(attention, word) is not None:
            raise NotApplicable(f"the birth law does not cover attention with a {word}")
    if coupling == "strong" and any(isinstance(group.kernel, Alibi) for group in attention.groups):
        raise NotApplicable(
            "the strong coupling needs equal mean attention, which ALiBi has not; coupling='first-order' covers it"
        )
