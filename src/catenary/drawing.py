"""From profiles to what a chart draws: safe labels, colours and dashes, and which positions are kept."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from catenary.block_line import BlockLine, block_line
from catenary.errors import invalid
from catenary.profile import Profile
from catenary.sample import Sample
from catenary.shape import default_average

LONGEST = 2000
"""Profiles longer than this are thinned before they are drawn."""

KEPT = 1500
"""At most about this many positions of a thinned profile are drawn: two per pixel of a wide chart."""

PALETTE = ("#2a72b5", "#c2570c", "#0b8468", "#9556b8", "#94740a", "#6b7480")
"""Line colours: at least 3:1 against white and against #11151a, and apart for the common colour deficiencies."""

PALETTE_DARK = ("#6fb4f0", "#f79a5c", "#46cba6", "#cb9bec", "#d9b648", "#a9b3bf")
"""The same hues for a dark page, in the same order."""

MEASURED_DASHES = ((1, 0), (24, 2), (12, 2), (24, 2, 4, 2), (6, 2), (12, 2, 3, 2))
PREDICTED_DASHES = ((5, 3), (2, 2), (5, 2, 1, 2), (8, 2), (3, 1))
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")


@dataclass(frozen=True, eq=False)
class Curve:
    """One profile, its drawable label, and the colour, dash and marker that tell it from the others.

    ``blocks`` is the line of a curve that scatters; its tokens are then drawn faint behind it.
    """

    profile: Profile
    label: str
    colour: str
    dash: tuple[int, ...]
    shape: str
    blocks: BlockLine | None = None

    @property
    def predicted(self) -> bool:
        """Whether a theory gave this curve (it is then dashed and drawn on top)."""
        return is_predicted(self.profile)


def is_predicted(profile: Profile) -> bool:
    """Whether a theory gave this profile: it has a validity card, or it is an expectation."""
    return profile.card is not None or profile.average == "expectation"


def curves(items: Sequence[Profile | Sample]) -> tuple[Curve, ...]:
    """One curve per profile and per (condition, step) of a sample, in the order given.

    A sample is averaged as ``catenary.shape.describe`` averages it: log-mean where trained, root mean square else.

    Raises:
        InvalidInput: for an empty sequence, for anything that is neither a Profile nor a Sample, for two
            different quantities, and for more than six curves.
    """
    found = [pair for item in items for pair in _profiles(item)]
    profiles = [profile for profile, _ in found]
    if not 1 <= len(profiles) <= len(PALETTE):
        raise invalid("items", f"must give 1 to {len(PALETTE)} curves", len(profiles), "draw the others apart")
    names = {profile.quantity.name for profile in profiles}
    if len(names) > 1:
        raise invalid("items", "must all be of one quantity", sorted(names), "draw one chart for each")
    drawn: list[Curve] = []
    for (profile, blocks), label in zip(found, unique([p.label for p in profiles]), strict=True):
        predicted = is_predicted(profile)
        dashes = PREDICTED_DASHES if predicted else MEASURED_DASHES
        before = sum(curve.predicted == predicted for curve in drawn)
        n = len(drawn)
        drawn.append(Curve(profile, label, PALETTE[n], dashes[before % len(dashes)], SHAPES[n], blocks))
    return tuple(drawn)


def _profiles(item: Profile | Sample) -> list[tuple[Profile, BlockLine | None]]:
    if isinstance(item, Profile):
        return [(item, block_line(item))]
    if isinstance(item, Sample):
        parts = [item.select(c, s) for c in item.conditions for s in item.steps]
        profiles = [part.profile(default_average(part)) for part in parts]
        return [(profile, block_line(profile, part)) for profile, part in zip(profiles, parts, strict=True)]
    raise invalid("items", "must be Profiles or Samples", item)


def clean(text: str, limit: int = 60) -> str:
    """A text as one line of at most ``limit`` printable characters.

    Control, format (bidirectional overrides among them), surrogate and unassigned characters become U+FFFD,
    because SVG is XML and cannot hold them; runs of white space become one space.
    """
    head = text[: 8 * limit]
    kept = "".join(
        character if character.isspace() or unicodedata.category(character)[0] != "C" else "\ufffd"
        for character in head
    )
    line = " ".join(kept.split()) or "unnamed"
    return line if len(line) <= limit and len(head) == len(text) else line[: limit - 1] + "…"


def unique(labels: Sequence[str]) -> list[str]:
    """The labels cleaned, and numbered where two would read alike."""
    taken: list[str] = []
    for label in map(clean, labels):
        candidate, n = label, 1
        while candidate in taken:
            n += 1
            candidate = f"{label} ({n})"
        taken.append(candidate)
    return taken


def kept(profile: Profile, limit: int | None = KEPT) -> Int64[np.ndarray, " k"]:
    """Which positions (from 0) are drawn: all up to L = 2000 or without a limit, else at most ``limit`` of them.

    Half of them is spaced uniformly, a quarter logarithmically from the first token, a quarter logarithmically from
    the last; the first and last token and the extremes of the curve with and without its ends are always there.
    """
    length = len(profile)
    if limit is None or length <= LONGEST:
        return np.arange(length)
    quarter = limit // 4 - 2
    near = np.round(np.geomspace(1, length, quarter)).astype(np.int64) - 1
    body = profile.values[1:-1]
    extremes = [0, length - 1, profile.values.argmax(), profile.values.argmin(), 1 + body.argmax(), 1 + body.argmin()]
    uniform = np.round(np.linspace(0, length - 1, 2 * quarter)).astype(np.int64)
    return np.unique(np.concatenate([near, length - 1 - near, uniform, np.array(extremes, dtype=np.int64)]))


def rows(curve: Curve, limit: int | None = KEPT, blocks: bool = True) -> list[dict[str, Any]]:
    """What is drawn of one curve: its kept tokens, then its blocks where it has any and they are asked for.

    A token's row has token (from 1), x, value and band; the last one ``marker``. Beside blocks, tokens are
    ``detail`` and the first one has ``start``. A block's row stands at its centre and has ``block``, its tokens in
    words. Values are rounded to five significant digits: a thousandth of a line width on any chart.
    """
    profile, line = curve.profile, curve.blocks if blocks else None
    length = len(profile)
    behind = {"detail": 1} if line else {}
    made = [
        {"curve": curve.label, "token": int(j) + 1, "x": digits((j + 0.5) / length), "value": digits(profile.values[j]),
         **_band(profile, j), **behind}
        for j in kept(profile, limit)
    ]
    made[-1]["marker"] = curve.shape
    if line is None:
        return made
    made[0]["start"] = curve.shape
    return made + [
        {"curve": curve.label, "token": (span.start + 1 + span.stop) / 2, "x": digits(line.centres[k]),
         **({} if np.isnan(line.values[k]) else {"value": digits(line.values[k])}), **_band(line, k),
         "block": f"{span.name}, mean"}
        for k, span in enumerate(line.spans)
    ]


def _band(of: Profile | BlockLine, n: int) -> dict[str, float]:
    return {} if of.low is None or of.high is None else {"low": digits(of.low[n]), "high": digits(of.high[n])}


def digits(value: float) -> float:
    """A number with five significant digits."""
    return float(f"{value:.5g}")
