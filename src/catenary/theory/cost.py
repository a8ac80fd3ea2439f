"""What a prediction costs, estimated before it is begun."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from catenary.architecture import (
    Architecture,
    GatedRecurrence,
    LinearAttention,
    SelectiveStateSpace,
    ShortConvolution,
    StateSpace,
)
from catenary.errors import NotApplicable
from catenary.theory.positions.portions import PortionsOf, each, merged
from catenary.theory.recurrent.mixer import decays

EXACT_UNIT = 2e-7
"""Processor seconds of the exact recursion per head group, layer and pair of positions: 1.7e-7 to 2.9e-7 measured."""

COARSE_UNIT = 5e-7
"""The same per pair of groups of positions: 1.3e-7 for 140 groups, 3.7e-7 to 6e-7 for 450 to 510."""

EXACT_STREAMS, EXACT_DECAY = 5e-7, 6.6e-8
"""The exact recursion's seconds per pair in a layer of decaying states, and per decay of its heads: 6e-7 to 2.5e-6
measured for 4 to 30 decays."""

COARSE_STREAMS, COARSE_DECAY = 7e-7, 2.9e-7
"""The same on groups: 1.7e-6 to 9.3e-6 for 4 to 30 decays on 240 groups, 1.5 times that on 130."""

MOST_SECONDS = 60.0
"""A coarse prediction that would take longer is refused."""


def passes(architecture: Architecture, portions_of: PortionsOf = each) -> int:
    """How many mean kernels the recursion passes: one per portion of heads of every attention, at least one a layer."""
    return sum(
        count * max(1, sum(len(portions_of(mix.groups)) for mix in layer.attentions))
        for layer, count in Counter(architecture.layers).items()
    )


FIXED, SINGLE = 0.6, 0.3
"""What a decay costs beside that of a state space: fixed ones (linear attention), and with one state each besides."""


SHARES: Mapping[type, float] = {LinearAttention: FIXED, GatedRecurrence: SINGLE}


@dataclass(frozen=True)
class States:
    """How many layers have decaying states, how many decays stand for their heads in all, and their work in decays."""

    layers: int
    decays: int
    work: float


def states(architecture: Architecture) -> States:
    """The decaying states of all layers together."""
    layers, total, work = 0, 0, 0.0
    for layer, count in Counter(architecture.layers).items():
        for mix in layer.recurrences:
            if not isinstance(mix, ShortConvolution):
                number = count * len(decays(mix, architecture.width))
                share = SHARES.get(type(mix), 1.0)
                layers, total, work = layers + count, total + number, work + share * number
    return States(layers, total, work)


def has_random_rates(architecture: Architecture) -> bool:
    """Whether a layer has channels of many rates, drawn or counted up: a state space, a gated recurrence."""
    kinds = (StateSpace, GatedRecurrence, SelectiveStateSpace)
    return any(isinstance(mix, kinds) for layer in set(architecture.layers) for mix in layer.recurrences)


def exact_seconds(architecture: Architecture, length: int) -> float:
    """Processor seconds of the exact recursion, within a factor of two."""
    found = states(architecture)
    beside = EXACT_UNIT * passes(architecture)
    return (beside + EXACT_STREAMS * found.layers + EXACT_DECAY * found.work) * length**2


def coarse_seconds(architecture: Architecture, groups: int) -> float:
    """Processor seconds of the recursion on this many groups, within a factor of four (few groups cost less)."""
    found = states(architecture)
    beside = COARSE_UNIT * passes(architecture, merged)
    return (beside + COARSE_STREAMS * found.layers + COARSE_DECAY * found.work) * groups**2


def affordable_groups(architecture: Architecture) -> int:
    """The most groups on which ``coarse_seconds`` stays within ``MOST_SECONDS``."""
    return math.isqrt(int(MOST_SECONDS / coarse_seconds(architecture, 1)))


def check_coarse_cost(architecture: Architecture, groups: int, length: int) -> None:
    """Refuse a prediction on groups that would take more than ``MOST_SECONDS``, before it begins."""
    seconds = coarse_seconds(architecture, groups)
    if seconds > MOST_SECONDS:
        total = states(architecture).decays
        more = f" and {total} decays of states" if total else ""
        raise NotApplicable(
            f"{architecture.depth} layers with {passes(architecture, merged)} mean kernels{more} on {groups} groups "
            f"of positions (length {length}) would take about {seconds:.0f} s, more than {MOST_SECONDS:.0f}; "
            "use a shorter length or fewer layers"
        )
