r"""Content of real attention: how much a query's product with its own key exceeds that with earlier keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from catenary.errors import NotApplicable
from catenary.measure.feed import prepare
from catenary.models.attention_call import AttentionCall, wide
from catenary.models.attention_calls import attention_calls
from catenary.models.extra import torch
from catenary.models.model import Model, adopt
from catenary.models.undisturbed import undisturbed
from catenary.text.windows import Windows
from catenary.theory.rollout.published import departures


@dataclass(frozen=True, eq=False)
class AttentionContent:
    r"""Means of products q.k per window, layer and head; ``scaled`` says whether they are logits.

    Attributes:
        own: \(\frac1L\sum_i s\,q_ik_i\).
        earlier: the mean of \(s\,q_ik_j\) over all pairs j < i.
        scaled: True with s the attention's own factor, False with s = 1.
    """

    own: Float64[np.ndarray, "window layer head"]
    earlier: Float64[np.ndarray, "window layer head"]
    scaled: bool

    @property
    def diagonal(self) -> Float64[np.ndarray, "layer head"]:
        """own - earlier, over windows: what the theory ``rollout`` takes as ``content``."""
        return np.asarray((self.own - self.earlier).mean(axis=0))


def measure_content(
    model: Model | torch.nn.Module,
    windows: Windows | Int[np.ndarray, "n L"],
    *,
    scaled: bool = True,
    compat: str | None = None,
) -> AttentionContent:
    r"""Content prior of every layer and head: mean_i q_i.k_i against mean_{j<i} q_i.k_j, without any map.

    The second mean is \(\sum_i q_i\cdot\sum_{j<i}k_j\) over \(L(L-1)/2\) pairs: O(L d) per head. Rotary positions are
    in q and k; ALiBi is not. Products are accumulated in float64.

    Args:
        model: from ``load``, or a transformers module you hold, left as found.
        windows: token windows, or their ids, without padding; L >= 3.
        scaled: multiply by the attention's own factor, so that the numbers are logits.
        compat: departures of the published code; ``unscaled-content`` is ``scaled=False``.

    Raises:
        NotApplicable: a layer without softmax attention, or one whose q.k was not seen, or that is not scaled by one
            factor (a soft cap) where ``scaled``, by name.

    Source: arXiv 2602.16837, its published notebook, which leaves products unscaled.
    """
    held = model if isinstance(model, Model) else adopt(model)
    given = windows if isinstance(windows, Windows) else Windows(np.asarray(windows))
    scaled = scaled and "unscaled-content" not in departures(compat)
    feed = prepare(held, given)
    found: list[list[tuple[np.ndarray, np.ndarray]]] = []
    with undisturbed(held.module), torch.no_grad():
        for index in range(len(given)):
            layers: list[tuple[np.ndarray, np.ndarray]] = []

            def receive(call: AttentionCall, to: list[tuple[np.ndarray, np.ndarray]] = layers) -> None:
                to.append(_means(call, scaled))

            with attention_calls(held.anatomy, (1, feed.length), receive) as seen:
                held.anatomy.stream(feed.vectors([index]), feed.mask([index]), feed.positions([index]))
            if seen.without:
                named = ", ".join(f"{layer} ({mixer})" for layer, mixer in sorted(seen.without.items()))
                raise NotApplicable(f"{held.label}: layers without softmax attention have no content: {named}")
            found.append(layers)
    own, earlier = (np.array([[part[k] for part in layers] for layers in found]) for k in (0, 1))
    return AttentionContent(own, earlier, scaled)


def _means(call: AttentionCall, scaled: bool) -> tuple[np.ndarray, np.ndarray]:
    if call.query is None or call.key is None:
        raise NotApplicable(f"the products q.k of layer {call.layer} were not seen; load with attention='sdpa'")
    if scaled and call.scale is None:
        raise NotApplicable(
            f"the logits of layer {call.layer} are no multiple of q.k (a soft cap); scaled=False gives bare products"
        )
    factor = call.scale if scaled and call.scale is not None else 1.0
    query, key = wide(call.query)[0].double(), wide(call.key)[0].double()
    key = key.repeat_interleave(call.heads // key.shape[0], dim=0)
    before = key.cumsum(dim=1) - key
    pairs = call.length * (call.length - 1) / 2
    own = (query * key).sum((-2, -1)) / call.length
    earlier = (query * before).sum((-2, -1)) / pairs
    return np.asarray((factor * own).cpu().numpy()), np.asarray((factor * earlier).cpu().numpy())
