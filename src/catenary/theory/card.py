"""The validity card of the birth law: what was measured in this regime, and where to stop trusting it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from catenary.architecture import Architecture
from catenary.validity import Light, ValidityCard

SPREAD_VARIANCES = (0.13, 0.36, 0.85, 1.64, 2.7, 6.25)
SPREADS = (0.12, 0.17, 0.24, 0.30, 0.32, 0.35)
"""Per-token standard deviation (dex) of one network, one sequence and one probe, measured at these variances."""

ERRORS = {
    "strong": ((1.0, 0.02), (10.7, 0.05)),
    "first-order": ((0.36, 0.02), (1.0, 0.05), (2.7, 0.2), (6.25, 0.3), (10.7, 0.4)),
    "uniform": ((0.13, 0.04),),
}
"""Per coupling: up to this logit variance, the largest median |log10 error| that was measured."""

REPEATED_ERRORS = {"strong": ((1.0, 0.03), (2.7, 0.04))}
"""The same where the law of repeated tokens was used: the largest error of a frequency class, texts of 128 to 512
tokens, rounded up."""

PAIR_ERRORS = {
    "strong": ((0.4, 0.03), (2.7, 0.17)),
    "first-order": ((0.4, 0.03), (2.7, 0.4)),
    "uniform": ((0.13, 0.04),),
}
"""The same where repeats enter the embeddings' covariance alone; from .4 on it is the error of a frequency class."""

TokenKnowledge = Literal["distinct", "repeated", "pairs"]
"""What a prediction used of the tokens: all different; which ones are equal; how often two are equal."""

TABLES: Mapping[TokenKnowledge, Mapping[str, tuple[tuple[float, float], ...]]] = {
    "distinct": ERRORS,
    "repeated": REPEATED_ERRORS,
    "pairs": PAIR_ERRORS,
}

SLIGHT = 0.005
"""dex. A finite-width term that moves the profile by less may be extrapolated: a quarter of the smallest error."""

MEASURED_REACH = 4.0
"""Largest length/width at which the law was compared with networks."""


NEAR = 1.01
"""A variance this close above one that was measured counts as measured: 10.74, at width 8,192, against 10.69."""

APPROXIMATE = "approximate: "
"""How the reading of a config begins a note on a model type that the description holds only in part."""

TRUSTED = 0.03
"""dex. Up to this median error (7 %) a prediction is shown green."""


@dataclass(frozen=True)
class Regime:
    """What a prediction was made of, as far as its validity depends on it.

    ``reason`` says why ids were given and the law of repeated tokens was not used.
    """

    length: int
    coupling: str
    tokens: TokenKnowledge
    finite_width_effect: float | None = None
    reason: str = ""


def birth_card(architecture: Architecture, regime: Regime) -> ValidityCard:
    """The card of one prediction of the birth law.

    Expected errors are medians over positions of |log10 prediction/measurement| against the root mean square over
    ensembles of untrained networks: random distinct tokens, widths 256 to 2048, length/width up to 4. Outside what
    was measured, and for what is approximate, the error is None, not a guess. Source: measured for this package.
    """
    variance = architecture.logit_variance
    reach = regime.length / architecture.width
    steps = TABLES[regime.tokens].get(regime.coupling, ())
    error = next((error for bound, error in steps if variance <= bound * NEAR), None)
    if reach > MEASURED_REACH and (regime.finite_width_effect is None or regime.finite_width_effect > SLIGHT):
        error = None
    variances = tuple(
        max(attention.logit_variance(architecture.width) for attention in layer.attentions)
        for layer in architecture.layers
        if layer.attentions
    )
    light, sentence = _glance(architecture, regime, error)
    return ValidityCard(
        logit_variance=variance if architecture.attends else None,
        width=architecture.width,
        length_over_width=reach,
        expected_median_error=None if _approximation(architecture) else error,
        token_spread=token_spread(variance) if architecture.attends else None,
        statements=tuple(_statements(architecture, regime, error)),
        assumed=architecture.assumed,
        not_expressed=architecture.not_expressed,
        light=light,
        sentence=sentence,
        layer_variances=variances,
        condensed=min(regime.length, int(math.exp(min(variance, 100.0) / 2))) if variance > 0 else 0,
    )


def _glance(architecture: Architecture, regime: Regime, error: float | None) -> tuple[Light, str]:
    """The traffic light and its sentence: the first reason that applies, the worst first."""
    variance = architecture.logit_variance
    if error is None and variance > 10.7 * NEAR:
        return "red", f"Logit variance {variance:.3g}: the law was never measured above 10.7; do not rely on it."
    if error is None and regime.length / architecture.width > MEASURED_REACH:
        return "amber", "Longer than four times the width: the finite-width term is extrapolated there."
    if error is None:
        return "red", f"With this input the {regime.coupling} coupling was never measured at variance {variance:.2g}."
    if missing := _approximation(architecture):
        return "amber", f"The law leaves something of this model type out; {missing}."
    if error > TRUSTED:
        return "amber", f"Measured here, with a median error of up to {error:.2g} dex ({_per_cent(error)} %)."
    if regime.length / architecture.width > MEASURED_REACH:
        return "green", (
            "Longer than four times the width, where the law was not measured; the finite-width term, all that is "
            f"extrapolated, is too small to matter: median error at most {error:.2g} dex ({_per_cent(error)} %)."
        )
    return "green", f"Measured in this regime: median error at most {error:.2g} dex ({_per_cent(error)} %)."


def _approximation(architecture: Architecture) -> str:
    """What the law leaves out of this model type, empty where it leaves out nothing: its errors are of other types."""
    return next((note for note in architecture.not_expressed if note.startswith(APPROXIMATE)), "")


def _per_cent(dex: float) -> str:
    return f"{100 * (10**dex - 1):.0f}"


def token_spread(variance: float) -> float | None:
    """Per-token spread (dex) of a single network around the law, interpolated in ln v; None above v = 10.7.

    Below v = 0.13 the value there is kept: one probe's own noise is most of it.
    """
    if variance > 10.7 * NEAR:
        return None
    if variance <= SPREAD_VARIANCES[0]:
        return SPREADS[0]
    return float(np.interp(np.log(variance), np.log(SPREAD_VARIANCES), SPREADS))


def _statements(architecture: Architecture, regime: Regime, error: float | None) -> list[str]:
    variance, reach = architecture.logit_variance, regime.length / architecture.width
    said = [
        *([architecture.standing] if architecture.standing else []),
        "The law predicts the root mean square over networks and sequences, not one network.",
        _variance_statement(architecture, regime, error),
    ]
    spread = token_spread(variance) if architecture.attends else None
    if spread is not None:
        said.append(f"One network, one sequence and one probe scatter around it by {spread:.2f} dex per token.")
    if variance > 1:
        said.append("One network cannot confirm or refute the law here: pool at least 100 (network, sequence) pairs.")
    accuracy = "0.03 dex" if variance <= 1 else "0.05 to 0.1 dex"
    said.append(f"The first 8 tokens, one by one, are verified only to {accuracy}.")
    if reach > MEASURED_REACH:
        said.append(
            f"Length/width is {reach:.2g}; the law was measured up to {MEASURED_REACH:.0f}, so the finite-width term "
            f"is extrapolated{_effect_words(regime.finite_width_effect)}."
        )
    said += _token_statements(architecture, regime)
    limit = architecture.max_length
    if architecture.position != "learned" and limit is not None and regime.length > limit:
        said.append(f"The config names {limit} positions; a length of {regime.length} is beyond what it was made for.")
    if architecture.position == "learned" and limit is not None and regime.length > limit:
        said.append(f"The network has {limit} learned positions; a length of {regime.length} cannot be measured on it.")
    return said


def _token_statements(architecture: Architecture, regime: Regime) -> list[str]:
    turned = architecture.position == "rope"
    if regime.tokens == "distinct":
        return ["RoPE is left out: for distinct tokens it moves the mean profile by less than 0.01 dex."] * turned
    if regime.tokens == "repeated":
        return [
            "Repeated tokens and RoPE are in it: up to logit variance 2.7 a class of equally frequent tokens errs by "
            "up to 0.06 dex, the last token by 0.04; by frequency class alone, above 512 tokens, by 0.025 more."
        ]
    said = [f"The law of repeated tokens was not used: {regime.reason}."] if regime.reason else []
    said.append(
        "Repeats enter by how often two tokens are equal: verified for logit variance up to 0.4; at 2.7 a class of "
        "equally frequent tokens errs by up to 0.17 dex."
    )
    if turned:
        said.append("Repeated tokens with RoPE, which is left out: the last token is up to 0.2 dex too high.")
    return said


def _variance_statement(architecture: Architecture, regime: Regime, error: float | None) -> str:
    variance, coupling = architecture.logit_variance, regime.coupling
    about = f"Attention-logit variance at birth {variance:.2g}" if architecture.attends else "No layer has attention"
    if error is not None and _approximation(architecture):
        return f"{about}. The errors measured elsewhere do not cover what is approximate here."
    if error is not None:
        return f"{about}: median error of log10 at most {error:.2g} where it was measured."
    if variance > 10.7 * NEAR:
        return f"{about}: above 10.7 the law was never measured."
    return f"{about}: with the {coupling} coupling and this input the law was not measured here."


def _effect_words(effect: float | None) -> str:
    return "" if effect is None else f"; leaving it out moves the profile by up to {effect:.2g} dex"
