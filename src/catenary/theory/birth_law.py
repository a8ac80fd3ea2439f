"""The birth law as a registered theory: which recursion to run, and what travels with the profile."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float64, Int64

from catenary.architecture import Architecture
from catenary.errors import NotApplicable, invalid, unknown
from catenary.profile import Profile
from catenary.protocols import TokenLaw
from catenary.quantity import JACOBIAN_NORM
from catenary.theory.attention.couplings import COUPLINGS
from catenary.theory.birth import check_exact_memory, exact_energies, head_groups
from catenary.theory.card import MEASURED_REACH, Regime, TokenKnowledge, birth_card
from catenary.theory.coarse import coarse_energies
from catenary.theory.cost import exact_seconds
from catenary.theory.embedding import embedded
from catenary.theory.repeats.law import repeated_energies
from catenary.theory.repeats.long import long_energies
from catenary.theory.theories import THEORIES, check_options

METHODS = ("auto", "exact", "coarse")

EXACT_UP_TO = 512
"""``auto`` is coarse above this length, where groups of positions are within .5 % and cost a tenth."""

EXACT_SECONDS = 3.0
"""``auto`` is coarse where the exact recursion is estimated to take longer: many slopes, many layers."""


@dataclass(frozen=True)
class Choice:
    """The options of one prediction, checked."""

    coupling: str
    method: str
    finite_width: bool


@final
class BirthLaw:
    """E||J_j||_F^2 of the untrained network from its architecture, with no fitted parameter."""

    name = "birth"
    summary = "root-mean-square Jacobian norm of the untrained network, no fitted parameter"

    def predict(
        self, architecture: Architecture, length: int, tokens: TokenLaw, options: Mapping[str, Any]
    ) -> Profile:
        r"""\(\sqrt{d\,D_{jj}}\) of ``birth_energies``, exact or on groups of positions.

        Args:
            architecture: what the config says.
            length: L >= 2.
            tokens: ids, or their repeat probability. With ids and the strong coupling the law of repeated tokens
                is used, exact up to 512 tokens and by frequency class above; where it does not cover the
                architecture, repeats enter the embeddings' covariance alone and the card says so.
            options: ``coupling`` ("strong", "first-order", "uniform"), ``method`` ("auto", "exact", "coarse"),
                ``finite_width`` (True: with the 1/d overlap of unrelated tokens).

        Raises:
            InvalidInput: an unknown option or value, or an exact prediction that would take more than 16 GiB.
            NotApplicable: an architecture outside the law, or ids with method "coarse" and another coupling.
        """
        choice = _choice(architecture, options, length, tokens)
        reach = architecture.causal_up_to
        if reach is not None and length > reach:
            raise NotApplicable(
                f"length must be at most {reach} for this config, got {length}: beyond that many tokens the data "
                "chooses which ones attention sees, and no law from the config alone holds"
            )
        solved = _solve(architecture, length, tokens, choice)
        effect = _finite_width_effect(architecture, length, choice, solved)
        words = "" if choice.coupling == "strong" else f", {choice.coupling} coupling"
        return Profile(
            np.sqrt(architecture.width * solved.energies),
            JACOBIAN_NORM,
            f"predicted at birth{words}",
            "expectation",
            card=birth_card(architecture, Regime(length, choice.coupling, solved.tokens, effect, solved.reason)),
            provenance={
                "theory": self.name,
                "length": length,
                "options": asdict(choice),
                "tokens": _token_summary(tokens) | {"law": solved.tokens},
                "architecture": architecture_summary(architecture),
            },
        )


@dataclass(frozen=True, eq=False)
class Solved:
    """Energies, what the law knew of the tokens, and why it did not know more."""

    energies: Float64[np.ndarray, " L"]
    tokens: TokenKnowledge
    reason: str = ""


def _solve(architecture: Architecture, length: int, tokens: TokenLaw, choice: Choice) -> Solved:
    """Run the recursion that fits the tokens: distinct ones, known ids with repeats, or a rate of repeats."""
    ids, reason = tokens.ids, ""
    repeated = ids is not None and np.unique(ids).size < length
    if ids is not None and repeated and choice.coupling == "strong":
        solve = repeated_energies if choice.method == "exact" else long_energies
        try:
            return Solved(solve(architecture, ids, choice.finite_width), "repeated")
        except NotApplicable as error:
            reason = str(error)
    known: TokenKnowledge = "pairs" if repeated or tokens.repeat_probability > 0 else "distinct"
    if choice.method == "exact":
        check_exact_memory(length, architecture.depth, head_groups(architecture))
        start = embedded(architecture, _equal(tokens, length))
        return Solved(exact_energies(architecture, start, choice.coupling, choice.finite_width), known, reason)
    rate = tokens.repeat_probability if ids is None else pair_rate(ids)
    return Solved(coarse_energies(architecture, length, rate, choice.coupling, choice.finite_width), known, reason)


def pair_rate(ids: Int64[np.ndarray, " L"]) -> float:
    """Share of pairs of different positions that hold the same token."""
    counts = np.unique(ids, return_counts=True)[1].astype(np.float64)
    return float(counts @ (counts - 1)) / (ids.size * (ids.size - 1))


def architecture_summary(architecture: Architecture) -> dict[str, Any]:
    """The architecture as plain JSON values, equal layers once with their count."""
    summary = asdict(architecture)
    summary["layers"] = [
        {"count": count, "layer": asdict(layer)} for layer, count in Counter(architecture.layers).items()
    ]
    return dict(json.loads(json.dumps(summary)))


def _choice(architecture: Architecture, options: Mapping[str, Any], length: int, tokens: TokenLaw) -> Choice:
    check_options("birth", options, ("coupling", "method", "finite_width"))
    coupling, method = options.get("coupling", "strong"), options.get("method", "auto")
    finite_width = options.get("finite_width", True)
    COUPLINGS[coupling]
    if method not in METHODS:
        raise unknown("method", str(method), METHODS)
    if not isinstance(finite_width, bool):
        raise invalid("finite_width", "must be True or False", finite_width)
    if method == "auto":
        exact = length <= EXACT_UP_TO and (
            tokens.ids is not None
            or exact_seconds(architecture, length) <= EXACT_SECONDS
        )
        method = "exact" if exact or (tokens.ids is not None and coupling != "strong") else "coarse"
    if method == "coarse" and tokens.ids is not None and coupling != "strong":
        raise NotApplicable(
            f"method 'coarse' holds token ids with the strong coupling only, not {coupling!r}; use method='exact', or "
            "repeat_probability, the share of pairs of positions with equal ids"
        )
    return Choice(coupling, method, finite_width)


def _equal(tokens: TokenLaw, length: int) -> Float64[np.ndarray, "L L"]:
    """Probability that the tokens of two positions are equal; 1 on the diagonal."""
    if tokens.ids is not None:
        return np.asarray(tokens.ids[:, None] == tokens.ids, dtype=np.float64)
    equal = np.full((length, length), tokens.repeat_probability)
    np.fill_diagonal(equal, 1.0)
    return equal


def _finite_width_effect(architecture: Architecture, length: int, choice: Choice, solved: Solved) -> float | None:
    """Largest |log10 change| of the profile without the finite-width term, where that term is extrapolated."""
    if length / architecture.width <= MEASURED_REACH or choice.coupling != "strong" or not choice.finite_width:
        return None
    known = choice.method == "coarse" and solved.tokens == "distinct"
    finite = solved.energies if known else coarse_energies(architecture, length)
    infinite = coarse_energies(architecture, length, finite_width=False)
    reached = finite > 0
    return float(np.abs(0.5 * np.log10(finite[reached] / infinite[reached])).max())


def _token_summary(tokens: TokenLaw) -> dict[str, Any]:
    if tokens.ids is None:
        return {"repeat_probability": tokens.repeat_probability}
    return {"distinct": int(np.unique(tokens.ids).size)}


THEORIES.register("birth", BirthLaw())
