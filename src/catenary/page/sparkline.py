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

    Values of exactly 0, and what lies outside the range, are drawn at its edge. The text alternative gives first,
    middle and last.
    """
    rho = profile.values
    length = len(rho)
    spread = np.unique(np.round((length - 2) * np.linspace(0, 1, POINTS) ** 2).astype(int))
    middle = np.exp(np.log(np.maximum(rho[length // 4 : -(length // 4) or None], 1e-300)).mean())
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
    """log10 of influence over the middle that holds 95 % of all positions of all profiles, and every last token."""
    bounds = []
    for profile in profiles:
        rho = profile.values[profile.values > 0]
        relative = np.log10(rho / np.exp(np.log(rho).mean()))
        bounds.append((float(np.quantile(relative, 0.025)), float(relative[-1])))
    low = min(bound for bound, _ in bounds) - 0.2
    return low, max(max(last for _, last in bounds), low + 1) + 0.1
