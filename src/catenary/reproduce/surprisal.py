r"""How surprising a token is to a network, and text whose order is lost inside its excerpts.

\(s_p=-\ln P(x_p\mid x_{<p})\), in nats. A join of two texts is a token that a network did not expect; to a network
that only knows how often each token occurs it is a token as any other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.boundaries import Layout
from catenary.models.extra import torch
from catenary.models.training import token_losses
from catenary.models.undisturbed import undisturbed
from catenary.text.windows import Windows

Surprisal = Float64[np.ndarray, "n L"]


def surprisal(network: Any, windows: Windows) -> Surprisal:
    """Nats of every token given those in front of it; NaN for a window's first. One window at a time."""
    found = np.full(windows.ids.shape, np.nan)
    with undisturbed(network.module), torch.no_grad():
        for index, ids in enumerate(windows.ids):
            found[index, 1:] = token_losses(network.module, ids[None])[0].double().cpu().numpy()
    return found


def shuffled_inside(windows: Windows, chunk: int, seed: int) -> Windows:
    """The tokens of every excerpt in a random order; excerpts stay where they are, and so does what opens a window."""
    first, rng = len(windows.report.get("bos", {}).get("ids", ())), np.random.default_rng(seed)
    ids = windows.ids.copy()
    for start in range(0, windows.length, chunk):
        part = slice(max(start, first), start + chunk)
        ids[:, part] = rng.permuted(ids[:, part], axis=1)
    return replace(windows, ids=ids, kind="shuffled", seed=seed, sources=())


def lost_by_shuffling(text: Surprisal, shuffled: Surprisal) -> float:
    """Nats per token: the mean over shuffled text less that over the text; 0 for a network that only counts tokens.

    It holds both what order tells the network and what a wrong order misleads it to.
    """
    return float(np.nanmean(shuffled) - np.nanmean(text))


def surprise_at_joins(nats: Surprisal, layout: Layout) -> float:
    """Nats of the first tokens of excerpts, less those of their neighbours 3 to 12 tokens away."""
    return float(layout.contrasts(nats).mean())
