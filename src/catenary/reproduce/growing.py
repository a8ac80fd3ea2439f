"""Particle systems of growing size: sampled correlations of the same question at every N of a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catenary.kinetic import Circle, Correlations, correlate, gaussian_readout
from catenary.study.observer import Observer, counting


def sampled_correlations(settings: Mapping[str, Any], observer: Observer) -> Iterator[tuple[int, Correlations]]:
    """N and its correlations, for each of ``tokens`` with as many prompts as its entry of ``samples``.

    Settings: ``tokens``, ``samples``, ``lam``, ``beta``, ``t``, ``M``, ``seed``; prompts of N tokens have seed + N.
    """
    lam, beta, t = (float(settings[name]) for name in ("lam", "beta", "t"))
    sizes = [int(tokens) for tokens in settings["tokens"]]
    with counting(observer, "particle systems", len(sizes)) as progress:
        for done, (tokens, count) in enumerate(zip(sizes, settings["samples"], strict=True), start=1):
            yield tokens, correlate(
                Circle(tokens, beta, lam), t=t, readout=gaussian_readout(int(settings["M"])), samples=int(count),
                seed=int(settings["seed"]) + tokens,
            )
            progress(done, len(sizes))
