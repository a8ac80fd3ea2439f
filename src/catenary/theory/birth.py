r"""The birth law: E||d h_L / d e_j||_F^2 of an untrained decoder, from its architecture alone.

A forward recursion carries the covariance C of every pair of tokens through the layers, a backward recursion the
covariance D of the gradients of the last token. No parameter is fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture, Attention, Branch, FeedForward, Recurrence
from catenary.errors import invalid
from catenary.theory.attention.mixer import PositionsOf, attention_mixer
from catenary.theory.embedding import Start
from catenary.theory.feed_forward.mixer import FeedForwardMixer
from catenary.theory.mixers import Mixer
from catenary.theory.positions.kernels import operator
from catenary.theory.positions.pairs import Pairs, Singles
from catenary.theory.positions.portions import PortionsOf, each
from catenary.theory.recurrent.mixer import decays, recurrent_mixer
from catenary.theory.steps import Move, Part, PassedMove

FULL_TAPE = 1 << 30
"""Bytes up to which every layer's intermediate matrices are kept; above, one matrix per layer, and the rest again."""

MEMORY_LIMIT = 16 << 30
"""Bytes above which an exact prediction is refused."""

MakeMixer = Callable[[Branch], Mixer]
"""From a branch to what it does to covariances; asked once per branch of the network, in order."""


def birth_energies(architecture: Architecture, start: Start, mixer_of: MakeMixer) -> Float64[np.ndarray, " n"]:
    r"""\(E\|J_j\|_F^2/d\) for each position (or group of positions), before the final norm.

    For every step, with y = before(x) and \(N\) the scaling of a norm, the stream's covariance becomes

    \[C \leftarrow N_{after}\big[keep^2\,C_y + \sum_b scale_b^2\,N_b\,mix_b(N'_bC_y)\big],\]

    and backward from \(D = e_Le_L^\top\), with the same factors and each mixer's own backward map,

    \[D \leftarrow N_{before}\big[keep^2\,D' + \sum_b scale_b^2\,N'_b\,mix_b^*(N_bD')\big],\quad D' = N_{after}D.\]

    O(H n^2). Holds for independent Gaussian weights and large width: a norm's own derivative across the channels is
    of order 1/d and left out. Where a model has no final norm, a norm behind the last step belongs to the stream.
    Derived here.

    Args:
        architecture: the layers.
        start: from ``embedded``.
        mixer_of: the map of each branch, e.g. from ``mixers``; asked for every branch in order.
    """
    moves = _moves(architecture, mixer_of)
    size = start.stream.same.size
    mixes = [branch.mix for layer in architecture.layers for branch in layer.branches]
    held = sum(held_per_group(mix, architecture.width) for mix in mixes)
    keep = 4 * 8 * size**2 * held <= FULL_TAPE
    tape: list[list[PassedMove] | Pairs] = []
    stream = start.stream
    for layer in moves:
        passed, after = _forward(layer, stream)
        tape.append(passed if keep else stream)
        stream = after
    last = np.zeros((size, size))
    last[-1, -1] = 1.0
    gradient = Pairs(last, last.diagonal().copy(), np.zeros_like(stream.near))
    for layer in reversed(moves):
        taped = tape.pop()
        passed = _forward(layer, taped)[0] if isinstance(taped, Pairs) else taped
        for move in reversed(passed):
            gradient = move.backward(gradient)
    return np.asarray(gradient.same * start.factor)


def held_per_group(mix: Attention | FeedForward | Recurrence, width: int) -> int:
    """How many times four matrices one branch keeps of its forward pass."""
    if isinstance(mix, Attention):
        return len(mix.groups)
    return 1 if isinstance(mix, FeedForward) else 3 + len(decays(mix, width))


def mixers(
    architecture: Architecture,
    positions_of: PositionsOf,
    coupling: str = "strong",
    finite_width: bool = True,
    portions_of: PortionsOf = each,
) -> MakeMixer:
    """The mixers of ``architecture`` on given positions, with a coupling of ``COUPLINGS``; equal branches share one.

    ``finite_width`` includes the 1/d overlap of unrelated tokens (strong coupling only); ``portions_of`` says which
    share of the heads has which kernel.

    Raises:
        InvalidInput: an unknown coupling.
        NotApplicable: an attention kernel, activation or logit variance the law does not cover (when one is made).
    """
    width = architecture.width

    @cache
    def mixer_of(branch: Branch) -> Mixer:
        if isinstance(branch.mix, Attention):
            normalised = branch.before is not None
            return attention_mixer(
                branch.mix, width, positions_of, coupling, finite_width, normalised, portions_of
            )
        if isinstance(branch.mix, FeedForward):
            return FeedForwardMixer(branch.mix, width, branch.before is not None)
        return recurrent_mixer(branch.mix, width, positions_of)

    return mixer_of


def singles(length: int) -> PositionsOf:
    """Every position by itself, for any kernel."""
    return lambda kernel: Singles(operator(kernel, length))


def exact_memory(length: int, layers: int, groups: int = 1) -> int:
    """Bytes an exact prediction takes at its peak: one matrix per layer and 20 at work, L x L in float64.

    Each of a layer's ``groups`` of heads after the first holds 10 more.
    """
    return (layers + 20 + 10 * (groups - 1)) * 8 * length**2


def head_groups(architecture: Architecture) -> int:
    """The most mean kernels that one attention has; decaying states hold as much as 3 and one for every 5 decays.

    Measured: 100 matrices for 7 layers with 30 decays, 51 for 6 with 4, 64 for 4 with 8.
    """
    kinds = set(architecture.layers)
    attention = [len(mix.groups) for layer in kinds for mix in layer.attentions]
    held = [len(decays(mix, architecture.width)) for layer in kinds for mix in layer.recurrences]
    return max([1, *attention, *(3 + math.ceil(number / 5) for number in held if number)])


def exact_energies(
    architecture: Architecture, start: Start, coupling: str = "strong", finite_width: bool = True
) -> Float64[np.ndarray, " L"]:
    """``birth_energies`` with every position by itself, ``start`` over L tokens; refused above ``MEMORY_LIMIT``."""
    length = start.stream.same.size
    check_exact_memory(length, architecture.depth, head_groups(architecture))
    return birth_energies(architecture, start, mixers(architecture, singles(length), coupling, finite_width))


def check_exact_memory(
    length: int,
    layers: int,
    groups: int = 1,
    instead: str = "use method='coarse' (and repeat_probability instead of ids)",
) -> None:
    """Refuse an exact prediction that would not fit, before anything is allocated; ``instead`` says what to try."""
    needed = exact_memory(length, layers, groups)
    if needed > MEMORY_LIMIT:
        raise invalid(
            "length",
            f"must keep {layers} exact layers below {MEMORY_LIMIT >> 30} GiB (this takes {needed / 2**30:.0f})",
            length,
            instead,
        )


def _moves(architecture: Architecture, mixer_of: MakeMixer) -> list[list[Move]]:
    """The steps of every layer."""

    def part(branch: Branch) -> Part:
        return Part(mixer_of(branch), branch.before, branch.after, branch.scale**2)

    return [
        [Move(tuple(map(part, step.branches)), step.keep**2, step.before, step.after) for step in layer.steps]
        for layer in architecture.layers
    ]


def _forward(layer: list[Move], stream: Pairs) -> tuple[list[PassedMove], Pairs]:
    passed = []
    for move in layer:
        moved = move.forward(stream)
        passed.append(moved.passed)
        stream = moved.stream
    return passed, stream
