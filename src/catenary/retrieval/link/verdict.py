"""The verdict of a link in words: which predictor goes with the curve here and which does not, or no ranking at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from catenary.retrieval.link.agreement import FEWEST_SLOTS, Agreement, Link

RELIABLE = 0.6
"""Split-half reliability, with all slots and without the first, below which nothing is ranked. Of Jacobian profiles of
SmolLM2-135M those of .83 (.77) and .95 (.93) came back with new prompts; one of .56 (.25) went from .72 to -.09."""
LEVEL = 0.05

Word = Literal["agrees", "first slot alone", "runs against", "not shown", "unreliable", "missing"]


@dataclass(frozen=True)
class LinkVerdict:
    """What a link shows.

    Attributes:
        words: one sentence.
        by: a word for each predictor.
        ranking: predictors that are reliable, best first by Spearman; empty where none may be ranked.
        notes: sentences for print.
    """

    words: str
    by: dict[str, Word]
    ranking: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {"words": self.words, "by": dict(self.by), "ranking": list(self.ranking), "notes": list(self.notes)}


def judge_link(link: Link) -> LinkVerdict:
    """Name what goes with the curve.

    - agrees: permutation p below .05, and the intervals with and without the first slot above 0;
    - first slot alone: the former with all slots, but without the first slot the interval reaches 0;
    - runs against: p below .05 and the interval below 0;
    - not shown: anything else; unreliable: split-half reliability below .6, so that no coefficient is read.

    No predictor is ranked where the curve's own reliability is below .6, or where fewer than 5 slots were measured.
    """
    by = {name: _word(one) for name, one in link.agreements.items()}
    refused = _refused(link)
    if refused:
        return LinkVerdict(f"No predictor is ranked: {refused}.", by, (), _notes(link, by, ()))
    ranking = tuple(sorted(
        (name for name, word in by.items() if word not in ("unreliable", "missing") and _known(link.agreements[name])),
        key=lambda name: -link.agreements[name].spearman.value,
    ))  # fmt: skip
    agreeing = [name for name in ranking if by[name] == "agrees"]
    if not agreeing:
        said = "no reliable predictor is shown to go with it" if ranking else "no predictor is reliable"
        return LinkVerdict(f"Of the curve by {link.metric}, {said}.", by, ranking, _notes(link, by, ranking))
    best = link.agreements[agreeing[0]]
    equal = [name for name in agreeing[1:] if not link.differences[agreeing[0], name].low > 0]
    words = f"By rank, {best.label} goes with the curve by {link.metric} (Spearman {best.spearman.text})"
    if equal:
        words += f"; not told apart from it: {_labels(link, equal)}"
    return LinkVerdict(words + ".", by, ranking, _notes(link, by, ranking))


def _refused(link: Link) -> str:
    """Why nothing may be ranked, if so."""
    if link.slots < FEWEST_SLOTS:
        return f"{link.slots} slots were measured, and any order of fewer than {FEWEST_SLOTS} is too likely by chance"
    worst = min(link.reliability, link.reliability_rest)
    if math.isnan(link.reliability) or math.isnan(link.reliability_rest):
        return f"the reliability of the curve by {link.metric} is not known (it is constant, or has too few samples)"
    if worst < RELIABLE:
        return (
            f"the curve by {link.metric} has a split-half reliability of {link.reliability:.2f}, "
            f"{link.reliability_rest:.2f} without its first slot, below {RELIABLE:g}; score more samples"
        )
    return ""


def _known(one: Agreement) -> bool:
    return not math.isnan(one.spearman.value)


def _word(one: Agreement) -> Word:
    if one.reason:
        return "missing"
    if not (one.reliability >= RELIABLE and one.reliability_rest >= RELIABLE):
        return "unreliable"
    if not one.p < LEVEL:
        return "not shown"
    if one.spearman.high < 0:
        return "runs against"
    if one.spearman.low > 0:
        return "agrees" if one.spearman_rest.low > 0 else "first slot alone"
    return "not shown"


def _labels(link: Link, names: list[str]) -> str:
    return ", ".join(link.agreements[name].label for name in names)


def _notes(link: Link, by: dict[str, Word], ranking: tuple[str, ...]) -> tuple[str, ...]:
    notes = [
        f"Reliability of the curve by {link.metric}: {_number(link.reliability)}, {_number(link.reliability_rest)} "
        f"without the first slot, from halves of {link.samples} samples."
    ]
    groups: tuple[tuple[Word, str], ...] = (
        ("agrees", "Go with it, with and without the first slot"),
        ("first slot alone", "Go with it by the first slot alone"),
        ("runs against", "Run against it"), ("not shown", "Not shown to go with it"),
    )  # fmt: skip
    if ranking:
        for word, said in groups:
            names = [name for name in ranking if by[name] == word]
            if names:
                each = ", ".join(f"{link.agreements[n].label} {link.agreements[n].spearman.value:+.2f}" for n in names)
                notes.append(f"{said}: {each}.")
    loose = [name for name, word in by.items() if word == "unreliable"]
    if loose:
        each = ", ".join(
            f"{link.agreements[n].label} {_number(link.agreements[n].reliability)} "
            f"({_number(link.agreements[n].reliability_rest)})" for n in loose
        )  # fmt: skip
        notes.append(f"Not ranked for a reliability below {RELIABLE:g} (without the first slot in brackets): {each}.")
    notes += [
        f"{link.agreements[name].label}: {link.agreements[name].reason}." for name, word in by.items()
        if word == "missing"
    ]  # fmt: skip
    return (*notes, *_warnings(link, by))


def _warnings(link: Link, by: dict[str, Word]) -> list[str]:
    said = [
        "Intervals are percentiles over samples and prompts drawn anew. A drawn curve is noisier than the curve, so "
        "they lie below the point estimate. Permutation p is of one predictor alone and takes slots as exchangeable.",
        "An agreement is a correlation over slots of one template. It names no cause and holds for no single prompt.",
    ]
    trap = link.agreements.get("logp-gold")
    if trap is not None and not trap.reason:
        seen = " It does here." if trap.spearman.value < 0 else ""
        said.append(
            "The gradient of the answer's log-probability is small where the model is sure and large where it fails: "
            f"at the gold slot it can run against the curve whatever the model attends to. Read the logit's.{seen}"
        )
    if by.get("birth") == "agrees":
        said.append(
            "The birth profile goes with this curve. On other templates of the network this was measured on it did not "
            "(-.08, -.32, +.66): do not carry it over to a task that was not measured."
        )
    return said


def _number(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.2f}"
