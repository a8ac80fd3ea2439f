"""Part: one curve to be measured, as a grid of units (condition x network x batch of windows)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from catenary.measure.aim import USUAL, Aim
from catenary.quantity import Quantity
from catenary.study.config import StudyConfig, Tokens

Weights = Literal["untrained", "pretrained"]
TEXT: frozenset[Tokens] = frozenset({"vanilla", "chunked", "shuffled", "uniform"})


@dataclass(frozen=True)
class Part:
    """One Sample to measure: ``nets`` networks, ``windows`` windows each, under every condition of ``tokens``.

    ``recompute`` saves memory and changes no number: it is how the part is measured, not what.
    """

    name: str
    label: str
    weights: Weights
    tokens: tuple[Tokens, ...]
    nets: int
    windows: int
    probes: int
    method: str = "probes"
    recompute: bool = False
    aim: Aim = USUAL

    @property
    def quantity(self) -> Quantity:
        """What the method measures."""
        return self.aim.quantity(self.method)

    @property
    def total(self) -> int:
        """Windows to measure in all."""
        return len(self.tokens) * self.nets * self.windows


@dataclass(frozen=True)
class Skipped:
    """A part that is not measured, and why; printed and shown in the report."""

    name: str
    reason: str


def wanted_parts(config: StudyConfig) -> tuple[Part, ...]:
    """The parts of a full profile, the check of the prediction first."""
    text = tuple(t for t in config.conditions if t in TEXT)
    other: tuple[Tokens, ...] = tuple(t for t in config.conditions if t not in TEXT and t != "random")
    check: tuple[Tokens, ...] = ("random", *other)
    parts = [
        Part(
            "untrained-random",
            "untrained, random vectors",
            "untrained",
            check,
            config.check_nets,
            config.check_sequences,
            config.probes,
        )
    ]
    if text:
        per_net = config.windows_per_net
        nets = min(config.nets, config.windows)
        parts += [
            Part("untrained", "untrained, documents", "untrained", text, nets, per_net, config.probes),
            Part("trained", "trained, documents", "pretrained", text, 1, config.windows, config.trained_probes),
        ]
    return tuple(parts)
