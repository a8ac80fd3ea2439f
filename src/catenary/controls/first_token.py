"""Whether the stream at the first token is far larger than at the others (massive activation), and from where on."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from jaxtyping import Float64

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import FEW, Subject
from catenary.errors import NotApplicable
from catenary.measure.feed import prepare
from catenary.models.extra import torch
from catenary.models.stream import inputs_of
from catenary.models.undisturbed import undisturbed

MASSIVE = 10.0
"""Ratio from which on a token is massive: untrained networks stay below 2, trained SmolLM2 reaches 166 (measured)."""


def _check(subject: Subject) -> Check:
    ratios = first_token_ratios(subject)
    largest, at = float(ratios.max()), int(ratios.argmax())
    over = np.flatnonzero(ratios > MASSIVE)
    where = "what leaves the last layer" if at == len(ratios) - 1 else f"the stream that enters layer {at}"
    said = f"the first token's norm is at most {largest:.3g} times the median of the others ({where})"
    if len(over):
        said += (
            f"; above {MASSIVE:g} from what enters layer {over[0]} to what enters layer {over[-1]}. Such a token "
            "usually collects attention (a sink): read the profile without it"
        )
    numbers = {"largest_ratio": largest, "layer": at, "starts": int(over[0]) if len(over) else None}
    return judge(NAME, not len(over), said, **numbers)


def first_token_ratios(subject: Subject) -> Float64[np.ndarray, " depth_plus_1"]:
    """||x_0|| / median over j > 0 of ||x_j||, of what enters each layer and what leaves the last; mean over windows.

    Means are of logs. Raises ``NotApplicable`` where a layer's stream has other axes than (windows, tokens, width).
    """
    model, rows = subject.model, []
    feed = prepare(model, subject.first_windows())
    for row in range(min(FEW, len(subject.windows))):
        vectors, mask = feed.vectors([row]), feed.mask([row])
        with ExitStack() as stack:
            stack.enter_context(undisturbed(model.module))
            stack.enter_context(torch.no_grad())
            entered = [stack.enter_context(inputs_of(layer)) for layer in model.anatomy.layers]
            last = model.anatomy.stream(vectors, mask)
        streams = [seen[0] for seen in entered if seen]
        rows.append([_ratio(stream, feed.length) for stream in (*streams, last)])
    return np.asarray(np.exp(np.log(np.array(rows, dtype=np.float64)).mean(axis=0)))


def _ratio(stream: torch.Tensor, length: int) -> float:
    if stream.ndim != 3 or stream.shape[1] != length:
        raise NotApplicable(f"the stream between layers has the shape {tuple(stream.shape)}, not one vector per token")
    norms = stream[0].double().norm(dim=-1)
    return float(norms[0] / norms[1:].median())


NAME = "first token"
FIRST_TOKEN = Control(NAME, "The stream at the first token is about as large as at the others.", _check, few=1)
