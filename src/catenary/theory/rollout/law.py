"""The rollout as a registered theory: priors from a config, strengths from the birth law unless given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture, Attention
from catenary.errors import NotApplicable, invalid, unknown
from catenary.profile import Profile
from catenary.protocols import TokenLaw
from catenary.quantity import PATH_WEIGHT
from catenary.theory.birth_law import pair_rate
from catenary.theory.rollout.attention import Head, Heads, head_mean
from catenary.theory.rollout.content import Content, content_diagonal
from catenary.theory.rollout.control import control_quantity
from catenary.theory.rollout.product import rollout_row
from catenary.theory.rollout.published import departures, one_series_slopes
from catenary.theory.rollout.schedules import Given, Schedule, read_schedule
from catenary.theory.rollout.sides import mask_of, slope_of
from catenary.theory.strengths import predicted_strengths
from catenary.theory.theories import THEORIES, check_options
from catenary.validity import ValidityCard

OPTIONS = ("schedule", "content", "content_unit", "temperature", "compat")

BORN = ("birth", "energy")
"""Schedules from the birth law: ratios of norms |a|/(|x|+|a|), or shares of energy a^2/(x^2+a^2)."""

UNITS = ("logit", "product")
"""What a content prior is given in: logits, or products q.k that the attention has not scaled yet."""


@dataclass(frozen=True)
class Choice:
    """The options of one rollout, checked."""

    schedule: Schedule | str
    content: Content
    unit: str
    temperature: float
    compat: str | None

    @property
    def departures(self) -> frozenset[str]:
        """Which departures of the published code are asked for."""
        return departures(self.compat)


@final
class Rollout:
    """Row L of the residual-aware attention rollout, from positions, masks and strengths alone."""

    name = "rollout"
    summary = "residual-aware attention rollout of arXiv 2602.16837; strengths at birth unless a schedule is given"

    def predict(
        self, architecture: Architecture, length: int, tokens: TokenLaw, options: Mapping[str, Any]
    ) -> Profile:
        r"""The last row of \(P = R_{T-1}\cdots R_0\), one factor per attention of the architecture.

        Args:
            architecture: gives masks, slopes, heads, and the scale of products q.k.
            length: L >= 2.
            tokens: only how often two are equal is used, for the strengths at birth; ids count as such a rate.
            options: ``schedule`` ("birth": the birth law's strengths; "energy": its shares of energy, which its own
                profile follows more closely; or one per attention as ``read_schedule`` takes them), ``content`` (0; or
                as ``content_diagonal`` takes it, heads in the config's order), ``content_unit`` ("logit", or "product"
                for q.k without the attention's factor), ``temperature`` (1), ``compat`` (None, or departures of the
                published code, see ``DEPARTURES``).

        Raises:
            InvalidInput: an option is unknown or out of range.
            NotApplicable: no attention, slopes inside chunks, or, without a schedule, no birth law.
        """
        choice = _choice(options)
        attentions = _attentions(architecture)
        layers = attention_layers(architecture, length, choice)
        schedule = choice.schedule
        if isinstance(schedule, str):
            schedule = _at_birth(schedule, architecture, length, tokens)
        strengths = schedule.strengths(len(attentions), clip="clipped-strengths" in choice.departures)
        control = control_quantity(layers, strengths)
        compat = f", {choice.compat}" if choice.compat else ""
        return Profile(
            rollout_row(layers, strengths),
            PATH_WEIGHT,
            f"rollout, {schedule.words}{compat}",
            "expectation",
            card=_card(architecture, length, strengths, control),
            provenance={
                "theory": self.name,
                "architecture": architecture.name,
                "length": length,
                "schedule": strengths.tolist(),
                "content": np.asarray(choice.content, dtype=np.float64).tolist(),
                "content_unit": choice.unit,
                "temperature": choice.temperature,
                "compat": choice.compat,
                "control_quantity": control,
            },
        )


def attention_layers(architecture: Architecture, length: int, choice: Choice) -> tuple[Heads, ...]:
    """A_t of every attention of ``architecture`` from the bottom, from its masks, slopes and the content prior."""
    attentions = _attentions(architecture)
    most = max(attention.heads for attention in attentions)
    if len({attention.heads for attention in attentions}) > 1 and np.ndim(choice.content) == 2:
        raise NotApplicable("content per head needs layers of equally many heads; give one number per layer")
    first = "content-in-first-heads" in choice.departures
    content = content_diagonal(choice.content, len(attentions), most, first)
    made: dict[tuple[Head, ...], Heads] = {}
    layers = []
    for attention, row in zip(attentions, content, strict=True):
        heads = _heads(attention, row[: attention.heads], choice, architecture.family)
        if heads not in made:
            made[heads] = head_mean(heads, length)
        layers.append(made[heads])
    return tuple(layers)


def _at_birth(kind: str, architecture: Architecture, length: int, tokens: TokenLaw) -> Given:
    rate = tokens.repeat_probability if tokens.ids is None else pair_rate(tokens.ids)
    born = predicted_strengths(architecture, length, rate)
    if kind == "energy":
        return Given(tuple(row.energy for row in born.of()), "birth-law energy")
    return Given(born.values(), "birth-law")


def _attentions(architecture: Architecture) -> tuple[Attention, ...]:
    found = tuple(attention for layer in architecture.layers for attention in layer.attentions)
    if not found:
        raise NotApplicable(f"{architecture.name} has no attention to roll out")
    return found


def _heads(
    attention: Attention, content: Float64[np.ndarray, " heads"], choice: Choice, family: str
) -> tuple[Head, ...]:
    kernels = [group.kernel for group in attention.groups for _ in range(group.heads)]
    slopes = _slopes(np.array([slope_of(kernel) for kernel in kernels]), attention, choice.departures, family)
    if choice.unit == "product" and "unscaled-content" not in choice.departures:
        content = content * attention.query_scale
    return tuple(
        Head(float(slope), mask_of(kernel), float(own), choice.temperature)
        for slope, kernel, own in zip(slopes, kernels, content, strict=True)
    )


def _slopes(
    slopes: Float64[np.ndarray, " heads"], attention: Attention, asked: frozenset[str], family: str
) -> Float64[np.ndarray, " heads"]:
    """The model's own slopes, or those that the published code has in their place."""
    if not slopes.any():
        return slopes
    factor = attention.head_dim**-0.5 if family == "falcon" else 1.0
    if "one-series-slopes" in asked:
        slopes = one_series_slopes(attention.heads) * factor
    return slopes / factor if "bare-slope" in asked else slopes


def _choice(options: Mapping[str, Any]) -> Choice:
    check_options("rollout", options, OPTIONS)
    schedule, compat = options.get("schedule", "birth"), options.get("compat")
    unit, temperature = options.get("content_unit", "logit"), options.get("temperature", 1.0)
    if unit not in UNITS:
        raise unknown("content_unit", str(unit), UNITS)
    if not isinstance(temperature, int | float) or isinstance(temperature, bool) or not 0 < temperature < np.inf:
        raise invalid("temperature", "must be finite and > 0", temperature)
    departures(compat)
    read = schedule if isinstance(schedule, str) and schedule in BORN else read_schedule(schedule)
    return Choice(read, options.get("content", 0.0), unit, float(temperature), compat)


def _card(
    architecture: Architecture, length: int, strengths: Float64[np.ndarray, " layers"], control: float
) -> ValidityCard:
    return ValidityCard(
        logit_variance=architecture.logit_variance if architecture.attends else None,
        width=architecture.width,
        length_over_width=length / architecture.width,
        expected_median_error=None,
        token_spread=None,
        statements=(
            "Weights of paths through positive attention alone: no values, no feed-forward, no attention-score path. "
            "They sum to 1; their scale is not that of ||J_j||_F.",
            f"Sum of strengths {strengths.sum():.3g}, control quantity {control:.3g}: what leaves a position at most.",
            "Strengths are ratios of norms. A random network adds branches in square, so its Jacobian mixes less than "
            "the rollout of the same strengths.",
        ),
        assumed=architecture.assumed,
        not_expressed=architecture.not_expressed,
    )


ROLLOUT = THEORIES.register("rollout", Rollout())
