"""From the words of a layer without a softmax to its mixer on given positions."""

from __future__ import annotations

import numpy as np

from catenary.architecture import (
    Alibi,
    Causal,
    GatedRecurrence,
    LinearAttention,
    Recurrence,
    SelectiveStateSpace,
    ShortConvolution,
    StateSpace,
)
from catenary.theory.attention.mixer import PositionsOf
from catenary.theory.feed_forward.activations import activation
from catenary.theory.feed_forward.mixer import GATES
from catenary.theory.mixers import Mixer
from catenary.theory.positions.pairs import Vector
from catenary.theory.recurrent.convolution import ConvolutionMixer
from catenary.theory.recurrent.gated import GatedMixer
from catenary.theory.recurrent.heads import Share, linear_shares, radius_shares, selective_shares, state_space_shares
from catenary.theory.recurrent.linear import RecurrentMixer
from catenary.theory.recurrent.memory import Memory
from catenary.theory.recurrent.selective import SelectiveMixer
from catenary.theory.recurrent.streams import Stream
from catenary.theory.recurrent.taps import Taps


def recurrent_mixer(word: Recurrence, width: int, positions_of: PositionsOf) -> Mixer:
    """The mixer of ``word`` behind a norm, in a stream of ``width`` channels.

    Raises:
        NotApplicable: an activation the law does not cover, or heads that no equal groups hold.
    """
    match word:
        case ShortConvolution():
            return ConvolutionMixer(word, width, Taps(positions_of(Causal()).sizes, word.taps))
        case LinearAttention():
            return _linear_attention(word, width, positions_of)
        case StateSpace():
            return _state_space(word, width, positions_of)
        case GatedRecurrence():
            return _gated(word, width, positions_of)
        case SelectiveStateSpace():
            return _selective(word, width, positions_of)


def decays(word: Recurrence, width: int) -> tuple[Alibi, ...]:
    """The mean kernels whose averages the mixer needs."""
    match word:
        case LinearAttention():
            groups: tuple[tuple[Share, ...], ...] = (linear_shares(word),)
        case StateSpace():
            groups = state_space_shares(word, width)
        case GatedRecurrence():
            groups = (radius_shares(word),)
        case SelectiveStateSpace():
            groups = (selective_shares(word, _stored(word, width, np.ones(1)).energy()),)
        case _:
            groups = ()
    return tuple(Alibi(share.decay.slope) for group in groups for share in group)


def _linear_attention(word: LinearAttention, width: int, positions_of: PositionsOf) -> Mixer:
    stream = Stream(activation(word.activation), width * word.input_std**2)
    return RecurrentMixer(
        gain=len(word.slopes) * word.head_dim * word.output_std**2,
        query=stream,
        key=stream,
        value=stream,
        gate=Stream(GATES[word.gate.function], width * word.gate.std**2),
        step_variance=0.0,
        entries=word.head_dim,
        skip=0.0,
        groups=(_memories(linear_shares(word), positions_of),),
        norm=word.norm,
        norm_last=False,
    )


def _state_space(word: StateSpace, width: int, positions_of: PositionsOf) -> Mixer:
    step = width * word.input_std**2
    function, taps = activation(word.activation), Taps(positions_of(Causal()).sizes, word.taps)
    value, key, query, step_scale, gate = (scale**2 for scale in word.input_scales)
    return RecurrentMixer(
        gain=word.heads * word.head_dim * word.output_std**2,
        query=Stream(function, step * query, taps, word.tap_std**2),
        key=Stream(function, step * key, taps, word.tap_std**2),
        value=Stream(function, step * value, taps, word.tap_std**2),
        gate=Stream(activation("silu"), step * gate),
        step_variance=step * step_scale,
        entries=word.state,
        skip=word.skip,
        groups=tuple(_memories(shares, positions_of) for shares in state_space_shares(word, width)),
        norm=word.norm,
        norm_last=word.norm_at == "behind gate",
    )


def _gated(word: GatedRecurrence, width: int, positions_of: PositionsOf) -> Mixer:
    step = width * word.input_std**2
    return GatedMixer(
        gain=word.width * word.output_std**2,
        branch=Stream(activation(word.activation), step),
        taps=Taps(positions_of(Causal()).sizes, word.taps),
        variance=step * word.tap_std**2,
        memories=_memories(radius_shares(word), positions_of),
    )


def _selective(word: SelectiveStateSpace, width: int, positions_of: PositionsOf) -> Mixer:
    values = _stored(word, width, positions_of(Causal()).sizes)
    gate = Stream(activation("silu"), width * word.input_std**2)
    return SelectiveMixer(word, values, gate, _memories(selective_shares(word, values.energy()), positions_of))


def _stored(word: SelectiveStateSpace, width: int, sizes: Vector) -> Stream:
    """The values u."""
    taps = Taps(sizes, word.taps)
    return Stream(activation(word.activation), width * word.input_std**2, taps, word.tap_std**2)


def _memories(shares: tuple[Share, ...], positions_of: PositionsOf) -> tuple[tuple[float, Memory], ...]:
    return tuple((each.share, Memory(each.decay, positions_of(Alibi(each.decay.slope)))) for each in shares)
