"""The answer in one glance: one verdict for each kind of curve, and how well the prediction holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catenary.comparison import Comparison
from catenary.drawing import clean, is_predicted
from catenary.page.view import GLANCE, Part, condition, minus, weights
from catenary.profile import Profile
from catenary.reading import Reading, number
from catenary.shape import Shape

INPUTS: Mapping[str, str] = {
    "random": "random vectors", "zipf": "Zipf tokens", "vanilla": "single documents", "chunked": "joined excerpts",
    "shuffled": "shuffled excerpts", "uniform": "uniform tokens", "given": "given tokens",
}
"""Conditions in words that fit into a sentence."""

KINDS = ("predicted", "untrained", "pretrained")
TITLES: Mapping[str, str] = {
    "predicted": "At birth, predicted", "untrained": "At birth, measured", "pretrained": "Trained",
}


@dataclass(frozen=True)
class Answer:
    """What one kind of curve looks like.

    Attributes:
        title: the kind, such as ``At birth, predicted``.
        verdicts: (shape in words, the inputs that have it; empty where all inputs agree).
        basis: what the verdict rests on.
        numbers: the two ratios behind it, named, with their intervals or their range over the inputs.
    """

    title: str
    verdicts: tuple[tuple[str, str], ...]
    basis: str
    numbers: tuple[tuple[str, str], ...]


def kind(part: Part) -> str:
    """Predicted, untrained or pretrained; an empty word where provenance does not say."""
    if isinstance(part, Profile) and is_predicted(part):
        return "predicted"
    return str(weights(part) or "")


def answers(single: Sequence[Part], shapes: Mapping[str, Shape]) -> list[Answer]:
    """One answer per kind; prediction and untrained measurement share one where they agree on every shape.

    Curves of no known kind are each their own.
    """
    found = {name: [part for part in single if kind(part) == name] for name in KINDS}
    words = {name: {shapes[part.label].verdict.words for part in members} for name, members in found.items()}
    made = []
    both = words["predicted"] == words["untrained"] and len(words["predicted"]) == 1
    if both:
        members = found["predicted"] + found["untrained"]
        made.append(_answer("At birth", members, shapes, "predicted and measured: "))
    for name in KINDS[2 * both :]:
        if found[name]:
            made.append(_answer(TITLES[name], found[name], shapes))
    return made + [_answer(part.label, [part], shapes) for part in single if kind(part) not in KINDS]


def _answer(title: str, members: Sequence[Part], shapes: Mapping[str, Shape], before: str = "") -> Answer:
    held = [shapes[part.label] for part in members]
    together: dict[str, list[Part]] = {}
    for part, shape in zip(members, held, strict=True):
        together.setdefault(shape.verdict.words, []).append(part)
    agreed = len(together) == 1
    verdicts = tuple((capital(words), "" if agreed else _inputs(parts)) for words, parts in together.items())
    return Answer(title, verdicts, capital(before + _inputs(members)), _numbers(held))


def _inputs(members: Sequence[Part]) -> str:
    names = dict.fromkeys(INPUTS.get(name, clean(name)) for part in members if (name := condition(part)))
    return ", ".join(names) or ", ".join(dict.fromkeys(part.label for part in members))


def _numbers(shapes: Sequence[Shape]) -> tuple[tuple[str, str], ...]:
    return tuple((GLANCE[name], _span([shape[name] for shape in shapes])) for name in ("peak/trough", "last/mid"))


def _span(readings: Sequence[Reading]) -> str:
    """One or two ratios with their intervals, or the range of several."""
    known = [r for r in readings if not math.isnan(r.value)]
    if not known:
        return "undefined"
    if len(known) <= 2 and all(r.low is not None and r.high is not None for r in known):
        return ", ".join(r.text for r in known)
    low, high = (number(pick(r.value for r in known)) for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def ordered(held: Sequence[Comparison], single: Sequence[Part]) -> list[Comparison]:
    """Comparisons with a prediction against an untrained measurement first, then against any other, then the rest."""
    kinds = {part.label: kind(part) for part in single}

    def rank(comparison: Comparison) -> int:
        sides = [kinds.get(side.label, kind(side)) for side in (comparison.a, comparison.b)]
        if sides.count("predicted") != 1:
            return 2
        return 0 if "untrained" in sides else 1

    return sorted(held, key=rank)


NOUNS: Mapping[str, str] = {
    "predicted": "Prediction", "untrained": "untrained measurement", "pretrained": "trained measurement",
}


def subjects(held: Sequence[Comparison], single: Sequence[Part]) -> list[str]:
    """What each comparison is of, short where both kinds are known: ``Prediction and untrained measurement: ...``."""
    kinds = {part.label: (kind(part), condition(part)) for part in single}
    made = []
    for comparison in held:
        sides = [kinds.get(side.label, (kind(side), condition(side))) for side in (comparison.a, comparison.b)]
        if all(name in NOUNS for name, _ in sides) and sides[0][0] != sides[1][0]:
            inputs = ", ".join(dict.fromkeys(INPUTS.get(c, clean(c)) for _, c in sides if c))
            made.append(capital(" and ".join(NOUNS[name] for name, _ in sides)) + (f": {inputs}" if inputs else ""))
        else:
            made.append(f"{comparison.a.label} and {comparison.b.label}")
    return made


def agreement(held: Sequence[Comparison], single: Sequence[Part]) -> tuple[str, str]:
    """How far the prediction is from the untrained measurement beside the noise, and where it is worst.

    The first sentence is of random vectors where they were measured, because there the law is held against what it
    describes; else of the first such comparison. The second is of all of them. Both are empty where there is none.
    """
    kinds = {part.label: (kind(part), condition(part)) for part in single}
    found = []
    for comparison in ordered(held, single):
        a, b = (kinds.get(side.label, (kind(side), condition(side))) for side in (comparison.a, comparison.b))
        if {a[0], b[0]} == {"predicted", "untrained"}:
            name = b[1] or a[1]
            found.append((comparison, name, f" on {INPUTS.get(name, clean(name))}" if name else ""))
    if not found:
        return "", ""
    comparison, _, where = next((entry for entry in found if entry[1] == "random"), found[0])
    return _held(comparison, where), _worst([(comparison, where) for comparison, _, where in found])


def _held(comparison: Comparison, where: str) -> str:
    error, floor = comparison.median_error, comparison.noise_floor
    if math.isnan(error):
        return f"Prediction and untrained measurement cannot be compared in logs{where}."
    size = f"{number(error)} dex ({100 * (10**error - 1):.2g} %) in the median"
    shape = "in shape " if comparison.shape_only else ""
    if math.isnan(floor):
        return f"Prediction and untrained measurement differ {shape}by {size}{where}; no noise floor is known."
    if error <= floor:
        return (f"Prediction and untrained measurement agree {shape}within the noise{where}: they differ by {size}, "
                f"the noise floor is {number(floor)} dex.")
    times = f"{number(error / floor)} times the" if floor > 0 else "above a"
    return (f"Prediction and untrained measurement differ {shape}by {size}{where}, {times} noise floor "
            f"of {number(floor)} dex.")


def _worst(found: Sequence[tuple[Comparison, str]]) -> str:
    """The region where a prediction is farthest off, over every comparison with an untrained measurement."""
    regions = [(reading, span, where) for comparison, where in found
               for reading, span in zip(comparison.regions, comparison.deviation.spans, strict=True)
               if not math.isnan(reading.value)]
    if not regions:
        return ""
    reading, span, where = max(regions, key=lambda entry: abs(entry[0].value))
    place = f"{span.name} token" if span.size == 1 and not span.name.isdigit() else f"tokens {span.name}"
    floor = "" if reading.floor is None else f", where the noise floor is {number(reading.floor)}"
    return f"Farthest off by region: {minus(f'{reading.value:+.3f}')} dex, {place}{where}{floor}."
