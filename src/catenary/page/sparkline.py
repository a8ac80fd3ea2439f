"""A profile as a picture of a few hundred bytes: log influence over position, the last token as a dot."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup, escape

from catenary.profile import Profile

WIDTH, HEIGHT, MARGIN = 168, 44, 4
"""Pixels."""

POINTS = 84
"""Points of the line: one for two pixels, closer together at the start, where the profile is steep."""


def sparkline(profile: Profile, low: float, high: float) -> Markup:
    """The profile between ``low`` and ``high`` (log10 of influence over its middle), as one inline SVG.

    Values of exactly 0, and what lies outside the range (most last tokens), are drawn at its edge. The text
    alternative gives first, middle and last.
    """
    rho = profile.values
    length = len(rho)
    spread = np.unique(np.round((length - 2) * np.linspace(0, 1, POINTS) ** 2).astype(int))
    middle = _middle(profile)
    with np.errstate(divide="ignore"):
        heights = np.clip(np.log10(rho / middle), low, high)
    x = MARGIN + (WIDTH - 3 * MARGIN) * np.arange(length) / (length - 1)
    y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (heights - low) / (high - low)
    points = "L".join(f"{x[j]:.1f} {y[j]:.1f}" for j in spread)
    words = f"first token {rho[0]:.3g}, middle {middle:.3g}, last token {rho[-1]:.3g}"
    return Markup(
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(words)}"><path d="M{points}"/><circle cx="{x[-1]:.1f}" cy="{y[-1]:.1f}" r="2.6"/></svg>'
    )


def common_range(profiles: list[Profile]) -> tuple[float, float]:
    """log10 of influence over the middle that holds 99 % of the tokens of every profile, the last ones apart."""
    bounds = []
    for profile in profiles:
        rho = profile.values[:-1][profile.values[:-1] > 0]
        bounds.append(np.quantile(np.log10(rho / _middle(profile)), (0.005, 0.995)))
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    return float(low) - 0.1, max(float(high), float(low) + 0.5) + 0.1


def _middle(profile: Profile) -> float:
    """Log-mean over the middle half, zeros left out."""
    quarter = len(profile) // 4
    half = profile.values[quarter : len(profile) - quarter]
    return float(np.exp(np.log(half[half > 0]).mean())) if half.any() else float(profile.values.max())
