"""Slot weights from a stored curve, and relevance scores of documents from JSON or from a framework's objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from catenary.errors import InvalidInput, MissingResource, invalid
from catenary.retrieval.order.assign import SlotWeights
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.records import MeanCurve, read_curve
from catenary.retrieval.statistics.curve import slot_curve


@dataclass(frozen=True)
class Scored:
    """Documents by name with their relevance, in the order given; larger is more relevant."""

    names: tuple[str, ...]
    relevance: tuple[float, ...]


def read_scores(text: str) -> Scored:
    """Relevance from the JSON text of a list of numbers, or of an object ``{document: number}``.

    The documents of a list are called document 1, document 2 and so on.

    Raises:
        InvalidInput: for anything else, an empty list, or a number that is not finite.
    """
    rule = "must be a JSON list of numbers or an object {document: number}"
    try:
        held = json.loads(text, object_pairs_hook=_distinct)
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput(f"scores are not JSON: {error}") from error
    if isinstance(held, dict):
        names, values = list(held), list(held.values())
    elif isinstance(held, list):
        names, values = [f"document {k}" for k in range(1, len(held) + 1)], held
    else:
        raise invalid("scores", rule, held)
    if not values or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        raise invalid("scores", rule, held)
    if not np.isfinite(values).all():
        raise invalid("scores", "must be finite", held)
    return Scored(tuple(names), tuple(float(v) for v in values))


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose names differ: JSON would silently keep the last of two."""
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise invalid("scores", "must name each document once", ", ".join(twice))
    return dict(pairs)


def read_scores_file(path: str) -> Scored:
    """Relevance from a JSON file, or from standard input where the path is ``-``."""
    import sys

    if path == "-":
        return read_scores(sys.stdin.read())
    try:
        return read_scores(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise MissingResource(f"cannot read {path}: {error.strerror or error}") from error


def relevance_of(count: int, scores: Sequence[float | None] | None) -> list[float]:
    """Relevance of documents: their scores, or, where none has one, falling in the order they come.

    Raises:
        InvalidInput: where some have a score and others none, or one is no number.
    """
    if scores is None or all(score is None for score in scores):
        return [-float(rank) for rank in range(count)]
    try:
        known = [float(score) for score in scores if score is not None]
    except (TypeError, ValueError) as fault:
        raise invalid("scores", "must be numbers", list(scores)) from fault
    if len(known) < count:
        raise invalid("scores", "must be there for every document or for none", f"{len(known)} of {count}")
    return known


def weights_of(curve: Outcomes | MeanCurve, metric: str = "logp") -> SlotWeights:
    """Slot weights: the means of a metric of outcomes over complete samples, or a published curve's means."""
    if len(curve.slots) < 2:
        raise invalid("curve", "must have two slots or more to order documents by", tuple(curve.slots))
    if isinstance(curve, MeanCurve):
        x = np.array(curve.slots) / max(curve.of - 1, 1)
        return SlotWeights(tuple(x.tolist()), curve.means)
    found = slot_curve(curve, metric, resamples=1)
    return SlotWeights(tuple(found.x.tolist()), tuple(found.mean.tolist()))


def read_weights(path: Path | str, metric: str = "logp") -> SlotWeights:
    """Slot weights from the file that `catenary retrieve` wrote, or from a published curve's; see ``read_curve``."""
    return weights_of(read_curve(path), metric)
