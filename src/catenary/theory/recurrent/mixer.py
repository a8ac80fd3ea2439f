"""From the words of a layer without a softmax to its mixer on given positions."""

from __future__ import annotations

from catenary.architecture import Causal, Recurrence, ShortConvolution
from catenary.errors import NotApplicable
from catenary.theory.attention.mixer import PositionsOf
from catenary.theory.mixers import Mixer
from catenary.theory.recurrent.convolution import ConvolutionMixer
from catenary.theory.recurrent.taps import Taps


def recurrent_mixer(word: Recurrence, width: int, positions_of: PositionsOf) -> Mixer:
    """The mixer of ``word`` behind a norm, in a stream of ``width`` channels.

    Raises:
        NotApplicable: a word or an activation the law does not cover.
    """
    sizes = positions_of(Causal()).sizes
    if isinstance(word, ShortConvolution):
        return ConvolutionMixer(word, width, Taps(sizes, word.taps))
    raise NotApplicable(f"the birth law does not cover {type(word).__name__}")
