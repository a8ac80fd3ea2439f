"""From curves, shapes and comparisons to the plain cells and sentences that the page prints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catenary.comparison import Comparison
from catenary.drawing import clean, is_predicted, unique
from catenary.page.claims import Contents
from catenary.profile import Profile
from catenary.reading import Reading, number
from catenary.sample import Sample
from catenary.shape import Shape, default_average
from catenary.validity import ValidityCard

Part = Profile | Sample
"""One curve: a profile, or a sample of one condition and one step."""

TOGETHER = 4
"""Up to this many curves share one chart; more are drawn one chart per condition."""

SIDE = ("LIM", "energy share", "single-token")
"""Shape numbers that stand in the second table: other authors' indices, and ones that are read with a warning."""

CONDITIONS: Mapping[str, str] = {
    "random": "Random token vectors", "zipf": "Zipf tokens", "vanilla": "One document per window",
    "chunked": "Excerpts of different documents joined",
    "shuffled": "The same excerpts with their tokens in random order", "uniform": "Ids drawn uniformly",
    "given": "Given tokens",
}


@dataclass(frozen=True)
class Cell:
    """One cell: the number, what stands small beside it, and whether it is no more than noise."""

    main: str
    aside: str = ""
    quiet: bool = False

    @property
    def long(self) -> bool:
        """Whether the small text is a sentence and needs its own line."""
        return len(self.aside) > 20


@dataclass(frozen=True)
class Row:
    """One line of a table: name, meaning, and one cell per column."""

    name: str
    meaning: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A caption, column heads and rows."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def parts(items: Sequence[Profile | Sample]) -> tuple[Part, ...]:
    """Every curve on its own, under a label that is short, printable and unlike the others."""
    single: list[Part] = []
    for item in items:
        if isinstance(item, Sample):
            single += [item.select(c, s) for c in item.conditions for s in item.steps]
        else:
            single.append(item)
    return tuple(
        replace(part, label=label) for part, label in zip(single, unique([p.label for p in single]), strict=True)
    )


def groups(single: Sequence[Part]) -> list[tuple[str, tuple[Part, ...]]]:
    """Which curves share a chart: all of them up to ``TOGETHER``, else by condition, the fullest chart first."""
    if len(single) <= TOGETHER:
        return [("", tuple(single))]
    by_condition: dict[str, list[Part]] = {}
    for part in single:
        by_condition.setdefault(condition(part), []).append(part)
    made = []
    for name, members in sorted(by_condition.items(), key=lambda entry: -len(entry[1])):
        for start in range(0, len(members), TOGETHER):
            made.append((CONDITIONS.get(name, clean(name) if name else ""), tuple(members[start : start + TOGETHER])))
    return made


def condition(part: Part) -> str:
    """The input condition of a curve, or an empty word."""
    if isinstance(part, Sample):
        return part.conditions[0]
    return str(part.provenance.get("condition", ""))


def contents(single: Sequence[Part]) -> Contents:
    """Which kinds of curve there are; weights are known from provenance, theories from their card."""
    known = {weights(part) for part in single}
    predicted = any(isinstance(part, Profile) and is_predicted(part) for part in single)
    return Contents(predicted, "untrained" in known, "pretrained" in known)


def weights(part: Part) -> object:
    """``"untrained"`` or ``"pretrained"`` as the provenance of a measurement says, else None."""
    return part.weights if isinstance(part, Sample) else part.provenance.get("weights")


def model_name(single: Sequence[Part]) -> str:
    """The model that the first curve with a named one belongs to, or an empty word."""
    for part in single:
        for entry in (part.provenance.get("model"), part.provenance.get("architecture")):
            name = entry.get("name") if isinstance(entry, Mapping) else entry
            if isinstance(name, str) and name:
                return name
    return ""


def averaged(part: Part) -> str:
    """In words: what one curve is an average of."""
    if isinstance(part, Profile):
        return _sentence("expectation computed from the config" if is_predicted(part) else _average(part.average))
    counts = [(part.nets, "network"), (part.sequences, "sequence"), (part.probes, "probe")]
    words = ", ".join(f"{n:,} {name}{'s' if n != 1 else ''}" for n, name in counts)
    return _sentence(f"{_average(default_average(part))} over {words}")


def _average(average: str) -> str:
    return {"rms": "root mean square", "log": "log-mean", "mean": "mean"}.get(average, "single curve")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def sureness(shape: Shape) -> str:
    """In words: how sure a shape is."""
    if shape.unknown:
        return "" if shape.average == "expectation" else _sentence(shape.unknown)
    return f"Noise floor of a block {number(shape.noise_floor)} dex"


GLANCE: Mapping[str, str] = {
    "peak/trough": "highest / lowest block", "argmin": "lowest block at x", "first/mid": "first token / middle",
    "last/mid": "last token / middle", "share last": "last token's share",
}
"""Shape numbers that stand in the table of one line per curve, and their heads."""


def glance(shapes: Sequence[Shape]) -> Table:
    """One line per curve: its shape, the numbers behind the word, and how sure they are."""
    return Table(
        "Shape of each curve. In brackets: 95 % interval.",
        ("shape", *GLANCE.values(), "noise floor, dex"),
        tuple(Row(shape.label, _sampled(shape),
                  (Cell(shape.verdict.words), *(_reading(shape[name]) for name in GLANCE),
                   _plain(shape.noise_floor, shape.unknown)))
              for shape in shapes),
    )


def _sampled(shape: Shape) -> str:
    if shape.count:
        return f"{shape.count} {shape.unit}s"
    return "computed, no scatter" if shape.average == "expectation" else "scatter not known"


def shape_tables(shapes: Sequence[Shape]) -> tuple[Table, Table]:
    """The shape table and the table of further indices, one column per curve."""
    heads = tuple(shape.label for shape in shapes)
    verdict = Row("verdict", "shape of the body, and whether the last token is a spike",
                  tuple(Cell(shape.verdict.words) for shape in shapes))
    certainty = [
        Row("noise floor", "of a block log-mean, dex: half against half, over √2",
            tuple(_plain(shape.noise_floor, shape.unknown) for shape in shapes)),
        Row("reliability", "split-half correlation of the blocks",
            tuple(_plain(shape.reliability, shape.unknown or "a half is constant") for shape in shapes)),
    ]
    rows = [Row(name, meaning, tuple(map(_reading, cells)))
            for name, meaning, cells in _lines([shape.readings for shape in shapes])]
    main = [row for row in rows if not row.name.startswith(SIDE)]
    side = [row for row in rows if row.name.startswith(SIDE)]
    return (
        Table("Every number of the shape, with its meaning.", heads, (verdict, *main, *certainty)),
        Table("Further indices of the same curves.", heads, tuple(side)),
    )


def comparison_tables(comparisons: Sequence[Comparison], subjects: Sequence[str]) -> tuple[Table, Table]:
    """Errors by region of positions, and every other figure, one column per comparison."""
    heads = tuple(f"{subject}{' (shape)' if c.shape_only else ''}"
                  for subject, c in zip(subjects, comparisons, strict=True))
    regions = [[replace(reading, name=span.name) for reading, span in zip(c.regions, c.deviation.spans, strict=True)]
               for c in comparisons]
    by_region = [Row(name, "", tuple(_reading(cell, signed=True) for cell in cells))
                 for name, _, cells in _lines(regions)]
    names = {reading.name for c in comparisons for reading in c.regions}
    rest = [Row(name, meaning, tuple(map(_reading, cells)))
            for name, meaning, cells in _lines([c.readings for c in comparisons]) if name not in names]
    shape = " Shape: after removing one overall factor." if any(c.shape_only for c in comparisons) else ""
    return (
        Table("Median log10 ratio by region of positions (dex; 0.30 is a factor of 2). Small: the noise floor. "
              f"Pale: no more than noise.{shape}", heads, tuple(by_region)),
        Table("All other figures.", heads, tuple(rest)),
    )


def _lines(columns: Sequence[Sequence[Reading]]) -> list[tuple[str, str, list[Reading | None]]]:
    """Readings of several columns side by side, by name, in the order they first appear."""
    meanings: dict[str, str] = {}
    for column in columns:
        for reading in column:
            meanings.setdefault(reading.name, reading.meaning)
    tables = [{reading.name: reading for reading in column} for column in columns]
    return [(name, meaning, [table.get(name) for table in tables]) for name, meaning in meanings.items()]


def _reading(reading: Reading | None, signed: bool = False) -> Cell:
    if reading is None:
        return Cell("")
    if math.isnan(reading.value):
        return Cell("–", reading.reason)
    main = minus(f"{reading.value:+.3f}" if signed else number(reading.value))
    quiet = reading.floor is not None and abs(reading.value) <= reading.floor
    if reading.low is not None and reading.high is not None:
        return Cell(main, minus(f"[{number(reading.low)}, {number(reading.high)}]"), quiet)
    return Cell(main, "" if reading.floor is None else f"floor {reading.floor:.2g}", quiet)


def minus(text: str) -> str:
    """A number with a minus sign as wide as its plus; exponents keep their hyphen."""
    return text.replace("-", "\u2212").replace("e\u2212", "e-")


def _plain(value: float, reason: str) -> Cell:
    return Cell("–", reason) if math.isnan(value) else Cell(number(value))


@dataclass(frozen=True)
class Card:
    """A validity card with the labels of the predictions that share it."""

    label: str
    lines: tuple[tuple[str, str], ...]
    statements: tuple[str, ...]
    assumed: tuple[str, ...]
    not_expressed: tuple[str, ...]


def cards(single: Sequence[Part]) -> list[Card]:
    """The validity cards of all predictions; equal ones once."""
    labels: dict[ValidityCard, list[str]] = {}
    for part in single:
        if isinstance(part, Profile) and part.card is not None:
            labels.setdefault(part.card, []).append(part.label)
    return [
        Card("; ".join(names), _card_lines(card), card.statements, card.assumed, card.not_expressed)
        for card, names in labels.items()
    ]


def _card_lines(card: ValidityCard) -> tuple[tuple[str, str], ...]:
    error, spread = card.expected_median_error, card.token_spread
    variances = card.layer_variances
    by_layer = f", {number(min(variances))} to {number(max(variances))} over layers" if len(set(variances)) > 1 else ""
    logits = "no layer has attention" if card.logit_variance is None else f"{number(card.logit_variance)}{by_layer}"
    return (
        ("trust", f"{card.light}: {card.sentence}" if card.sentence else card.light),
        ("attention-logit variance at birth", logits),
        ("condensed attention (v > 2 ln i)", f"the first {card.condensed:,} tokens" if card.condensed > 1 else "none"),
        ("width", f"{card.width:,}"),
        ("length / width", number(card.length_over_width)),
        ("expected median error", "never measured in this regime" if error is None else f"{number(error)} dex"),
        ("scatter of one network and sequence", "not known" if spread is None else f"{number(spread)} dex per token"),
    )


def flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested plain values as (dotted name, text) lines; long texts are cut, long lists are counted."""
    lines: list[tuple[str, str]] = []
    for key, entry in value.items():
        name = clean(f"{prefix}{key}", 80)
        if isinstance(entry, Mapping) and entry:
            lines += flat(entry, f"{name}.")
        elif isinstance(entry, (list, tuple)) and entry and isinstance(entry[0], Mapping):
            lines += flat({str(n): part for n, part in enumerate(entry[:4])}, f"{name}.")
        elif isinstance(entry, (list, tuple)) and len(entry) > 24:
            lines.append((name, f"{len(entry):,} entries"))
        else:
            text = ", ".join(map(str, entry)) if isinstance(entry, (list, tuple)) else str(entry)
            lines.append((name, clean(text, 300)))
    return lines
