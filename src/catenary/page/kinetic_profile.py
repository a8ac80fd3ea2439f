"""`kinetic profile`: the retrieval profile of one or several heads, its shape in words and its extrema."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from jaxtyping import Float64

from catenary.errors import NotApplicable, invalid
from catenary.kinetic.closed_form.retrieval import log_retrieval_profile
from catenary.kinetic.closed_form.several_heads import Extremum, Head, extrema, heads_profile
from catenary.kinetic.closed_form.thresholds import t_crit, t_monotone, t_sufficient
from catenary.page import kinetic_charts as charts
from catenary.page.exhibit import Exhibit, Plate
from catenary.page.kinetic_charts import POSITIONS
from catenary.reading import number

MOST_CURVES = 6
"""Colours there are."""


def profile_exhibit(*, heads: Sequence[Head], times: Sequence[float], M: float) -> Exhibit:
    """The retrieval profile of one or several heads at up to six times, with its extrema and regime."""
    if not 1 <= len(times) <= MOST_CURVES:
        raise invalid("time", f"must be given 1 to {MOST_CURVES} times", len(times))
    curves, marked, rows, data, found, shapes, sentences = [], [], [], [], [], [], []
    for t in times:
        values, bends = _seen(heads, t, M)
        name, shape = f"t = {t:g}", shape_of(bends, values)
        shapes.append((shape, t))
        sentences.append(shape_words(bends, values))
        curves.append((name, values))
        marked += [(name, bend.kind, bend.sigma, bend.value) for bend in bends]
        data += [(t, float(x), float(v)) for x, v in zip(POSITIONS, values, strict=True)]
        marks = [vars(bend) | _logarithm(heads, t, M, bend) for bend in bends]
        found.append({"t": t, "shape": shape, "last": float(values[-1]), "extrema": marks})
        rows += [
            (name, shape, str(bend.kind), f"{bend.sigma:.6g}", _value(bend, _logarithm(heads, t, M, bend)),
             f"{bend.curvature:.4g}", f"{values[-1] - bend.value:.4g}")
            for bend in bends
        ] or [(name, shape, "none", "", "", "", "")]  # fmt: skip
    several = len(times) > 1
    verdict = _shapes(shapes) if several else sentences[0]
    bounds = _bounds(heads[0], M) if len(heads) == 1 else {}
    numbers = [(words, number(value)) for words, value in bounds.items()]
    notes = (
        *(f"t = {t:g}: {words}" for t, words in zip(times, sentences, strict=True) if several),
        "A soft read-out at the last of N tokens finds the source with the density 1 + 2 S/N relative to chance, to "
        "first order in 1/N: S is where the source's position enters.",
    )
    words = "; ".join(f"weight {w:g}, lambda {lam:g}, beta {b:g}" for w, lam, b in heads)
    chart = charts.profiles(POSITIONS, curves, marked)
    plate = Plate(
        "profile", chart, f"Retrieval profile over the source's position. {verdict}",
        "Retrieval of a source by its position in the prompt; points mark the interior extrema.",
    )  # fmt: skip
    return Exhibit(
        name="profile", kicker="Kinetic theory", title="Retrieval profile", verdict=verdict, notes=notes,
        numbers=(("heads", words), ("token angles M", f"{M:g}"), *numbers), plates=(plate,),
        caption="Interior extrema", rows=tuple(rows),
        columns=("time", "shape", "extremum", "position", "S", "curvature", "below the last"),
        fields=("t", "sigma0", "S"), data=data,
        parameters={"heads": [list(head) for head in heads], "times": list(times), "M": M},
        results={"bounds": bounds, "profiles": found},
    )  # fmt: skip


def _seen(
    heads: Sequence[Head], t: float, M: float
) -> tuple[Float64[np.ndarray, " positions"], Sequence[Extremum]]:
    """The profile where it is drawn, and its extrema; heads that cancel to rounding give zeros and none."""
    try:
        values = np.asarray(heads_profile(POSITIONS, heads=heads, t=t, M=M))
        size = np.asarray(heads_profile(POSITIONS, heads=[(abs(w), lam, b) for w, lam, b in heads], t=t, M=M))
        if (np.abs(values) <= 1e-13 * size).all():
            return np.zeros_like(values), ()
        return values, extrema(heads=heads, t=t, M=M)
    except NotApplicable:
        raise NotApplicable(f"the profile leaves float64 at t = {t:g}: take a smaller --time, or --beta") from None


def _logarithm(heads: Sequence[Head], t: float, M: float, bend: Extremum) -> dict[str, float]:
    """The logarithm of an extremum's value, where one head of positive weight has it."""
    weight, lam, beta = heads[0]
    if len(heads) > 1 or weight < 0:
        return {}
    log = log_retrieval_profile(bend.sigma, lam=lam, beta=beta, t=t, M=M)
    return {"log_value": math.log(weight) + float(log)}


def _value(bend: Extremum, logarithm: dict[str, float]) -> str:
    """The value, as a power of ten where float64 rounds it to 0."""
    if bend.value == 0 and logarithm:
        return f"10^{logarithm['log_value'] / math.log(10):.1f}"
    return f"{bend.value:.6g}"


def _shapes(shapes: Sequence[tuple[str, float]]) -> str:
    """``U at t = 1 and 3, hump at t = 5``."""
    parts = []
    for shape, group in groupby(shapes, key=lambda pair: pair[0]):
        *most, last = [f"{t:g}" for _, t in group]
        parts.append(f"{shape} at t = {', '.join(most)} and {last}" if most else f"{shape} at t = {last}")
    words = ", ".join(parts)
    return words[0].upper() + words[1:]


def _percent(fraction: float) -> str:
    """A position in percent: whole, but never 0 or 100 for a position inside the prompt."""
    percent = 100 * fraction
    if percent < 1:
        return f"{percent:.2g} %"
    beyond = 2 - math.floor(math.log10(100 - percent)) - 1 if percent > 99 else 0
    return f"{percent:.{min(beyond, 14)}f} %"


def shape_of(bends: Sequence[Extremum], values: Float64[np.ndarray, " n"]) -> str:
    """The shape's name from its extrema in order, and from its ends where it has none."""
    kinds = "".join(bend.kind[1] for bend in bends)
    names = {"i": "U", "ia": "hump", "iai": "W", "a": "inverted U"}
    if not kinds and values.min() == values.max():
        return "flat"
    if kinds:
        return names.get(kinds, f"{len(kinds)} extrema")
    return "primacy" if values[0] > values[-1] else "recency"


def shape_words(bends: Sequence[Extremum], values: Float64[np.ndarray, " n"]) -> str:
    """The shape in a sentence."""
    shape = shape_of(bends, values)
    places = " and ".join(_percent(bend.sigma) for bend in bends if bend.kind == "minimum")
    if shape == "U":
        depth = 100 * (1 - bends[0].value / values[-1])
        return f"U shape: primacy, recency, and worst at {places} of the prompt, {depth:.0f} % below the last position"
    if shape == "hump":
        return f"Hump: worst at {places}, best of the rest at {_percent(bends[1].sigma)}, then falling to the end"
    if shape == "W":
        return f"W shape: two wells, at {places} of the prompt"
    if shape == "primacy":
        return "Primacy: retrieval falls from the first token to the last, no interior minimum"
    if shape == "flat":
        return "Flat: retrieval is the same at every position"
    if shape == "recency":
        return "Recency: retrieval rises from the first token to the last"
    return f"{shape[0].upper()}{shape[1:]} between the first and the last position"


def _bounds(head: Head, M: float) -> dict[str, float]:
    _, lam, beta = head
    named = {"U proved below t": t_sufficient, "recency ends at t": t_crit, "hump ends at t": t_monotone}
    return {words: float(bound(lam, beta, M)) for words, bound in named.items() if math.isfinite(bound(lam, beta, M))}
