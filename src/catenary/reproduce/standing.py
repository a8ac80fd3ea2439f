"""How far single tokens inside excerpts stand out of their neighbours, and what their surprise has to do with it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from catenary.boundaries import Layout
from catenary.reproduce.resampling import Curves
from catenary.text.windows import Windows

Tokens = Float64[np.ndarray, "n _"]


def standing(curves: Curves, layout: Layout) -> Tokens:
    """Log influence of every token inside an excerpt over its neighbours', as ``Layout.ratios`` has it at joins."""
    return np.concatenate([layout.ratios(curves, shift) for shift in range(1, layout.chunk)], axis=1)


def inside(values: Tokens, layout: Layout) -> Tokens:
    """What belongs to the tokens of ``standing``, in their order."""
    return np.concatenate([values[:, layout.places(shift)] for shift in range(1, layout.chunk)], axis=1)


def at_joins(values: Tokens, layout: Layout) -> Tokens:
    """What belongs to the first tokens of excerpts whose neighbours all count."""
    return np.asarray(values[:, layout.places()])


def rarity(windows: Windows) -> Tokens:
    """Nats of each token's own frequency in these windows."""
    _, place, counts = np.unique(windows.ids, return_inverse=True, return_counts=True)
    return np.asarray(-np.log(counts[place.reshape(windows.ids.shape)] / windows.ids.size))


def per_nat(outs: Tokens, nats: Tokens, rare: Tokens) -> float:
    """Least-squares slope of log influence in surprisal, between tokens of the same frequency."""
    known = np.stack([np.ones(outs.size), nats.ravel(), rare.ravel()], axis=1)
    return float(np.linalg.lstsq(known, outs.ravel())[0][1])
