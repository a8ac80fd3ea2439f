"""A rollout that counts what attention writes, not how much it looks: weights times the sizes of what they bring."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.reproduce.resampling import Curves
from catenary.text.windows import Windows


def written_rollout(network: Any, windows: Windows, strengths: Float64[np.ndarray, " layers"]) -> Curves:
    r"""Last row with \(\sum_h A_{hij}\nu_{hj} / \sum_{hj} A_{hij}\nu_{hj}\) for A, \(\nu_{hj} = \|v_{hj}W_O^h\|\).

    Where every head's values have one size it is the rollout of the heads' mean. Whole maps are held: short windows.

    Args:
        network: from ``load``, with an output matrix behind every attention.
        windows: token windows.
        strengths: lambda_t of every layer from the bottom.
    """
    from catenary.measure.feed import prepare
    from catenary.models.attention_call import AttentionCall
    from catenary.models.attention_calls import attention_calls
    from catenary.models.extra import torch
    from catenary.models.output_matrix import output_matrices
    from catenary.models.undisturbed import undisturbed

    feed, rows = prepare(network, windows), []
    with undisturbed(network.module), torch.no_grad():
        matrices = output_matrices(network.anatomy)
        for index in range(len(windows)):
            maps: list[Float64[np.ndarray, "L L"]] = []

            def receive(call: AttentionCall, to: list[Any] = maps) -> None:
                to.append(_written(call, matrices[call.layer].sizes(call)[0].double().cpu().numpy()))

            with attention_calls(network.anatomy, (1, feed.length), receive):
                network.anatomy.stream(feed.vectors([index]), feed.mask([index]), feed.positions([index]))
            row = np.zeros(feed.length)
            row[-1] = 1.0
            for one, strength in zip(maps[::-1], strengths[::-1], strict=True):
                row = (1 - strength) * row + strength * (row @ one)
            rows.append(row)
    return np.stack(rows)


def _written(call: Any, sizes: Float64[np.ndarray, "H L"]) -> Float64[np.ndarray, "L L"]:
    """Each row: the share of every key in what all heads bring, by size."""
    found = np.zeros((call.length, call.length))
    for start, block in call.blocks():
        weights = block[0].double().cpu().numpy()
        stop = start + weights.shape[1]
        found[start:stop, :stop] = np.einsum("hqk,hk->qk", weights, sizes[:, :stop])
    return np.asarray(found / found.sum(axis=1, keepdims=True))
