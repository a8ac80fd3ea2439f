"""What a prediction costs, estimated before it is begun."""

from __future__ import annotations

from collections import Counter

from catenary.architecture import Architecture, StateSpace
from catenary.errors import NotApplicable
from catenary.theory.positions.portions import PortionsOf, each, merged

EXACT_UNIT = 2e-7
"""Processor seconds of the exact recursion per head group, layer and pair of positions: 1.7e-7 to 2.9e-7 measured."""

COARSE_UNIT = 5e-7
"""The same per pair of groups of positions: 1.3e-7 for 140 groups, 3.7e-7 to 6e-7 for 450 to 510."""

MOST_SECONDS = 60.0
"""A coarse prediction that would take longer is refused."""


def passes(architecture: Architecture, portions_of: PortionsOf = each) -> int:
    """How many mean kernels the recursion passes: one per portion of heads of every attention, at least one a layer."""
    return sum(
        count * max(1, sum(len(portions_of(mix.groups)) for mix in layer.attentions))
        for layer, count in Counter(architecture.layers).items()
    )


def has_state_space(architecture: Architecture) -> bool:
    """Whether a layer has a state space, which up to 512 tokens costs more on groups than by single positions.

    Four layers of Falcon H1 at 256 and 512 tokens: 1.2 and 5.2 processor seconds by position, 2.4 and 17.5 on groups.
    """
    return any(isinstance(mix, StateSpace) for layer in set(architecture.layers) for mix in layer.recurrences)


def exact_seconds(architecture: Architecture, length: int) -> float:
    """Processor seconds of the exact recursion, within a factor of two."""
    return EXACT_UNIT * passes(architecture) * length**2


def coarse_seconds(architecture: Architecture, groups: int) -> float:
    """Processor seconds of the recursion on this many groups, within a factor of four (few groups cost less)."""
    return COARSE_UNIT * passes(architecture, merged) * groups**2


def check_coarse_cost(architecture: Architecture, groups: int, length: int) -> None:
    """Refuse a prediction on groups that would take more than ``MOST_SECONDS``, before it begins."""
    seconds = coarse_seconds(architecture, groups)
    if seconds > MOST_SECONDS:
        raise NotApplicable(
            f"{architecture.depth} layers with {passes(architecture, merged)} mean kernels on {groups} groups of "
            f"positions (length {length}) would take about {seconds:.0f} s, more than {MOST_SECONDS:.0f}; "
            "use a shorter length or fewer layers"
        )
