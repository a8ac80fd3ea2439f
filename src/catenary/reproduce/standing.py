"""How far tokens stand out of their neighbours in influence, and what their surprise has to do with it.

All of a token is taken over the same neighbours: log influence, surprisal, rarity. So what raises a whole stretch of
text alike, such as a loss of order, drops out.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from catenary.boundaries import Layout
from catenary.reproduce.resampling import Curves
from catenary.text.windows import Windows

Tokens = Float64[np.ndarray, "n _"]


def inside(values: Tokens, layout: Layout) -> Tokens:
    """Each value inside an excerpt over its neighbours', all of which lie in the same excerpt and none at its start."""
    shifts = range(layout.far + 1, layout.chunk - layout.far)
    return np.concatenate([layout.contrasts(values, shift) for shift in shifts], axis=1)


def rarity(windows: Windows) -> Tokens:
    """Nats of each token's own frequency in these windows."""
    _, place, counts = np.unique(windows.ids, return_inverse=True, return_counts=True)
    return np.asarray(-np.log(counts[place.reshape(windows.ids.shape)] / windows.ids.size))


def fit(outs: Tokens, nats: Tokens, rare: Tokens) -> Float64[np.ndarray, " terms"]:
    """Least squares of log influence: a constant, per nat of surprisal, per nat of rarity."""
    return np.asarray(np.linalg.lstsq(_terms(nats, rare), outs.ravel())[0])


def fitted(coefficients: Float64[np.ndarray, " terms"], nats: Tokens, rare: Tokens) -> float:
    """What the fit says tokens of such surprisal and rarity stand out by, a ratio, their log-mean."""
    return float(np.exp((_terms(nats, rare) @ coefficients).mean()))


def per_nat(curves: Curves, nats: Tokens, rare: Tokens, layout: Layout) -> float:
    """Slope of log influence in surprisal inside excerpts, rarity held."""
    return float(fit(inside(np.log(curves), layout), inside(nats, layout), inside(rare, layout))[1])


def _terms(nats: Tokens, rare: Tokens) -> Float64[np.ndarray, "m terms"]:
    return np.stack([np.ones(nats.size), nats.ravel(), rare.ravel()], axis=1)
