"""The birth law where the tokens are known: from an architecture and ids to energies, with repeats and rotation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from jaxtyping import Float64, Int64

from catenary.architecture import Architecture, Attention, Branch, Kernel, Recurrence, Rotary
from catenary.errors import NotApplicable
from catenary.theory.attention.gates import Gated
from catenary.theory.attention.scores import Scores
from catenary.theory.birth import MakeMixer, birth_energies, mixers, singles
from catenary.theory.embedding import embedded
from catenary.theory.feed_forward.mixer import GATES
from catenary.theory.mixers import Mixer, Outcome, Passed
from catenary.theory.positions.pairs import Matrix, Pairs
from catenary.theory.repeats.attention import RepeatedAttention

WEAKEST_LOGITS = 1e-4
"""Logit variance below which the law is taken at this variance: the profile moves in proportion to the rest."""


CAPPED = 0.4
"""Largest standard deviation of the logits over their soft-cap that was compared with networks."""


def repeated_energies(
    architecture: Architecture, ids: Int64[np.ndarray, " L"], finite_width: bool = True
) -> Float64[np.ndarray, " L"]:
    r"""\(E\|J_j\|_F^2/d\) per position for given tokens, before the final norm; ``birth_energies`` with repeats.

    Root mean square over untrained networks. Measured against Qwen2- and Llama-like networks with Zipf and text ids,
    logit variance up to 2.7, L up to 512: within .06 dex per class of equally frequent tokens and .04 at the last
    token. O(H L^2 log L) in single precision from L = 192 on. Derived here: ``docs/repeats.md``.

    Args:
        architecture: any residual layout; attention that is uniform over what it sees on average.
        ids: one token per position.
        finite_width: include the 1/d overlap of unrelated tokens.

    Raises:
        NotApplicable: ALiBi, recurrent mixers, logits near their soft-cap, or scores without a norm in front.
    """
    equal = np.asarray(ids)[:, None] == np.asarray(ids)
    start = embedded(architecture, equal.astype(np.float64))
    return birth_energies(architecture, start, repeated_mixers(architecture, ids, finite_width))


def repeated_mixers(architecture: Architecture, ids: Int64[np.ndarray, " L"], finite_width: bool = True) -> MakeMixer:
    """The mixers of ``architecture`` over the tokens ``ids``; equal branches share one."""
    width, equal = architecture.width, np.asarray(ids)[:, None] == np.asarray(ids)

    def group_mixer(attention: Attention, kernel: Kernel, gain: float, own_norm: bool) -> Mixer:
        rotary, dims = attention.rotary, effective_dims(attention, width)
        turning = None if rotary is None else rotation(rotary, dims, len(equal))
        scores = covered_scores(attention, width, finite_width)
        return RepeatedAttention(gain, scores, equal, turning, kernel, own_norm)

    return grouped_mixers(architecture, group_mixer)


GroupMixer = Callable[[Attention, Kernel, float, bool], Mixer]
"""From an attention, the kernel of a head group, its squared gain and whether queries and keys have their own norm."""


def grouped_mixers(architecture: Architecture, group_mixer: GroupMixer) -> MakeMixer:
    """Mixers whose attention is the sum of a mixer per head group, behind its gate; equal branches share one."""
    width, feed_forward = architecture.width, mixers(architecture, singles(1))

    @cache
    def mixer_of(branch: Branch) -> Mixer:
        attention = branch.mix
        if isinstance(attention, Recurrence):
            raise NotApplicable(f"repeated tokens have no law where a layer mixes by a {type(attention).__name__}")
        if not isinstance(attention, Attention):
            return feed_forward(branch)
        own_norm = attention.qk_norm and branch.before is None
        parts = tuple(
            group_mixer(attention, group.kernel, attention.gain(width) * group.heads / attention.heads, own_norm)
            for group in attention.groups
        )
        mixer = parts[0] if len(parts) == 1 else Together(parts)
        if attention.gate is None:
            return mixer
        return Gated(mixer, GATES[attention.gate.function], width * attention.gate.std**2)

    return mixer_of


def rotation(rotary: Rotary, head_dim: float, length: int) -> Matrix:
    r"""\(c_{ik} = \frac{dims}{h_d}\,\overline{\cos(\theta_f(i-k))} + 1 - \frac{dims}{h_d}\) for all pairs.

    The factor that rotary positions put on the mean product of a query and a key drawn from equal vectors; 1 for the
    share of channels that are not turned.
    """
    i = np.arange(length)
    return np.asarray(rotation_factors(rotary, head_dim, length)[np.abs(i[:, None] - i)])


def rotation_factors(rotary: Rotary, head_dim: float, length: int) -> Float64[np.ndarray, " L"]:
    """``rotation`` by distance."""
    frequencies = rotary.theta ** (-np.arange(0, rotary.dims, 2) / rotary.dims)
    factors = np.zeros(length)
    for frequency in frequencies:
        factors += np.cos(np.arange(length) * frequency)
    share = rotary.dims / head_dim
    return np.asarray(share * factors / frequencies.size + 1 - share)


@dataclass(frozen=True, eq=False)
class Together:
    """Head groups of one attention: the sum of their mixers."""

    groups: tuple[Mixer, ...]

    def forward(self, x: Pairs) -> Outcome:
        """The pass of every group."""
        outcomes = [group.forward(x) for group in self.groups]
        return Outcome(_sum(o.added for o in outcomes), PassedTogether(tuple(o.passed for o in outcomes)))


@dataclass(frozen=True, eq=False)
class PassedTogether:
    """The forward pass of all groups."""

    groups: tuple[Passed, ...]

    def backward(self, gradient: Pairs) -> Pairs:
        """Covariance of the inputs' gradients."""
        return _sum(group.backward(gradient) for group in self.groups)


def _sum(parts: Iterable[Pairs]) -> Pairs:
    first, *rest = parts
    for part in rest:
        first = first.plus(part)
    return first


def covered_scores(attention: Attention, width: int, finite_width: bool) -> Scores:
    """The law of an attention's logits; a cap they often reach is refused."""
    scores = Scores.of(attention, width, finite_width)
    if scores.softcap is not None and scores.variance > (CAPPED * scores.softcap) ** 2:
        raise NotApplicable(
            f"the law of repeated tokens needs logits below {CAPPED} of their soft-cap {scores.softcap:g}, "
            f"got a standard deviation of {math.sqrt(scores.variance):.3g}"
        )
    return scores if scores.variance >= WEAKEST_LOGITS else replace(scores, variance=WEAKEST_LOGITS)


def effective_dims(attention: Attention, width: int) -> float:
    """Channels of a head, in units of what one turned channel adds to the logits' variance.

    Channels from a normalised latent of rank r add r / width of what those straight from the stream add.
    """
    latent = attention.latent
    if latent is None:
        return attention.head_dim
    return latent.rotary_dim + latent.plain_dim * latent.rank / width
