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
from catenary.models.stream import accepts
from catenary.models.undisturbed import undisturbed
from catenary.text.windows import Windows

Surprisal = Float64[np.ndarray, "n L"]


def surprisal(network: Any, windows: Windows) -> Surprisal:
    """Nats of every token given those in front of it; NaN for a window's first. One window at a time."""
    module, found = network.module, np.full(windows.ids.shape, np.nan)
    with undisturbed(module), torch.no_grad():
        for index, ids in enumerate(windows.ids):
            tokens = torch.from_numpy(np.array(ids[None])).to(network.device)
            options = {"attention_mask": torch.ones_like(tokens), "use_cache": False}
            known = {name: value for name, value in options.items() if accepts(module, name)}
            logits = module(input_ids=tokens, **known).logits[0, :-1].float()
            nats = torch.nn.functional.cross_entropy(logits, tokens[0, 1:], reduction="none")
            found[index, 1:] = nats.double().cpu().numpy()
    return found


def shuffled_inside(windows: Windows, chunk: int, seed: int) -> Windows:
    """The tokens of every excerpt in a random order; excerpts stay where they are, and so does what opens a window."""
    first, rng = len(windows.report.get("bos", {}).get("ids", ())), np.random.default_rng(seed)
    ids = windows.ids.copy()
    for start in range(0, windows.length, chunk):
        part = slice(max(start, first), start + chunk)
        ids[:, part] = rng.permuted(ids[:, part], axis=1)
    return replace(windows, ids=ids, kind="shuffled", seed=seed, sources=())


def order_gain(text: Surprisal, shuffled: Surprisal) -> float:
    """Nats per token by which order helps: the mean over shuffled text less that over the text. 0 if only counts do."""
    return float(np.nanmean(shuffled) - np.nanmean(text))


def excess(nats: Surprisal, layout: Layout) -> float:
    """Nats by which the first tokens of excerpts are more surprising than all others."""
    joins = np.zeros(layout.length, dtype=bool)
    joins[layout.chunk :: layout.chunk] = True
    return float(np.nanmean(nats[:, joins]) - np.nanmean(nats[:, ~joins]))
