r"""Rollouts that differ from the published one in one thing each: what is added up, and what a layer's step weighs.

The published row follows \(R_t = (1-\lambda_t)I + \lambda_tA_t\) and adds sizes: \(v \leftarrow R_t^\top v\). Jacobians
that point in unrelated ways add in squares instead, \(E \leftarrow (R_t^{\circ2})^\top E\), and the row is the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from catenary.models.extra import torch
from catenary.text.windows import Windows

Row = Float64[np.ndarray, " L"]
Map = Float64[np.ndarray, "L L"]
Strengths = Float64[np.ndarray, " layers"]


@dataclass(frozen=True, eq=False)
class Step:
    r"""One layer's attention in one window.

    Attributes:
        attention: the heads' mean A.
        values: \(\|\sum_hA_{hij}W_O^hW_V^hG P_j\|_F^2/d\): the attention branch's derivative in key j at frozen
            weights, squared, without the norm's division; G are the norm's gains, P_j projects the key's own stream
            out.
        norms: root mean square of the stream, which the norm divides by.
    """

    attention: Map
    values: Map
    norms: Row

    def moved(self, *, first_as_others: bool = False) -> Map:
        """``values`` over the squared norms; the first token's can be the mean of the others'."""
        norms = self.norms.copy()
        if first_as_others:
            norms[0] = norms[1:].mean()
        return np.asarray(self.values / norms**2)


def steps_of(network: Any, windows: Windows) -> Iterator[list[Step]]:
    """The steps of every window from the bottom layer, for a Llama: whole maps are held, so for short windows."""
    from catenary.measure.feed import prepare
    from catenary.models.attention_calls import attention_calls
    from catenary.models.undisturbed import undisturbed

    feed, layers = prepare(network, windows), network.anatomy.layers
    heads = int(network.module.config.num_attention_heads)
    with undisturbed(network.module), torch.no_grad():
        grams = [_gram(layer, heads) for layer in layers]
        for index in range(len(windows)):
            streams: list[Any] = []
            steps: list[Step] = []

            def receive(call: Any, streams: list[Any] = streams, steps: list[Step] = steps) -> None:
                steps.append(_step(call, layers[call.layer], grams[call.layer], streams[-1]))

            with ExitStack() as stack:
                for layer in layers:
                    hook = layer.input_layernorm.register_forward_pre_hook(
                        lambda _, given, to=streams: to.append(given[0][0])
                    )
                    stack.callback(hook.remove)
                stack.enter_context(attention_calls(network.anatomy, (1, feed.length), receive))
                network.anatomy.stream(feed.vectors([index]), feed.mask([index]), feed.positions([index]))
            yield steps


def sizes_row(attentions: Sequence[Map], strengths: Strengths) -> Row:
    """The published rollout's last row."""
    row = _last(attentions[0].shape[0])
    for one, strength in zip(attentions[::-1], strengths[::-1], strict=True):
        row = (1 - strength) * row + strength * (row @ one)
    return row


def squares_row(attentions: Sequence[Map], strengths: Strengths) -> Row:
    """Root of the last row of the product of the squared entries."""
    row = _last(attentions[0].shape[0])
    for one, strength in zip(attentions[::-1], strengths[::-1], strict=True):
        row = row @ ((1 - strength) * np.eye(row.size) + strength * one) ** 2
    return np.asarray(np.sqrt(row))


def values_row(steps: Sequence[Step], *, first_as_others: bool = False) -> Row:
    """The same with I plus the squared derivative of the branch for the squared entries: no strengths."""
    row = _last(steps[0].norms.size)
    for step in steps[::-1]:
        row = row + row @ step.moved(first_as_others=first_as_others)
    return np.asarray(np.sqrt(row))


def sunk(mean: Map) -> Map:
    """The first token's measured share, mean over queries, and the rest of each row uniform."""
    return _behind(mean, np.ones(mean.shape[0] - 1))


def by_distance(mean: Map) -> Map:
    """The first token's share, and the rest by the distance's mean weight: position, but no place of its own."""
    length = mean.shape[0]
    kernel = np.array([np.diagonal(mean[1:, 1:], -gap).mean() for gap in range(length - 1)])
    return _behind(mean, kernel)


def _behind(mean: Map, kernel: Float64[np.ndarray, " gaps"]) -> Map:
    """The first token's mean share, and the rest of each row by a kernel of the distance, 0 to L - 2."""
    length = mean.shape[0]
    share = mean[1:, 0].mean()
    made = np.zeros((length, length))
    made[0, 0], made[1:, 0] = 1.0, share
    for query in range(1, length):
        weights = kernel[query - np.arange(1, query + 1)]
        made[query, 1 : query + 1] = (1 - share) * weights / weights.sum()
    return made


def _last(length: int) -> Row:
    row = np.zeros(length)
    row[-1] = 1.0
    return row


def _output(layer: Any, heads: int) -> Any:
    """W_O by head, (H, d, d_v)."""
    matrix = layer.self_attn.o_proj.weight.double()
    return matrix.reshape(matrix.shape[0], heads, -1).transpose(0, 1)


def _gram(layer: Any, heads: int) -> Any:
    """Frobenius products of the heads' maps from the normed stream, over d."""
    output = _output(layer, heads)
    read = (layer.self_attn.v_proj.weight * layer.input_layernorm.weight).double().reshape(
        -1, output.shape[2], output.shape[1]
    )
    whole = output @ read.repeat_interleave(heads // read.shape[0], dim=0)
    return torch.einsum("hab,kab->hk", whole, whole) / output.shape[1]


def _step(call: Any, layer: Any, gram: Any, stream: Any) -> Step:
    output = _output(layer, call.heads)
    width = output.shape[1]
    value = call.value[0].double().repeat_interleave(call.heads // call.value.shape[1], dim=0)
    brought = (value @ output.transpose(1, 2)).transpose(0, 1)  # key, head, d
    along = brought @ brought.transpose(1, 2) / width**2
    weights = call.rows(0, call.length)[0].double()
    spread = torch.einsum("jhk,kij->hij", gram - along, weights)
    squares = (weights * spread).sum(0).clamp(min=0)
    norms = (stream.double().square().mean(-1) + layer.input_layernorm.variance_epsilon).sqrt()
    return Step(weights.mean(0).numpy(), squares.numpy(), norms.numpy())
