"""A Llama with one thing of its blocks switched: what norms divide by, or the gate of its feed-forward."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float64

import catenary as ct
from catenary.measure.feed import prepare
from catenary.models.extra import torch
from catenary.models.undisturbed import undisturbed

NORMS = ("input_layernorm", "post_attention_layernorm")
"""In front of attention, and of the feed-forward."""


@dataclass(frozen=True)
class Sizes:
    """Root mean square over windows and components, by layer and position: the norms' inputs, and the opened gates."""

    norms: dict[tuple[int, str], Float64[np.ndarray, " L"]]
    gates: list[Float64[np.ndarray, " L"]]


def sizes(network: Any, windows: ct.Windows) -> Sizes:
    """What each norm divides by and how large each gate is, in the network as it is."""
    feed, rows = prepare(network, windows), list(range(len(windows)))
    norms: dict[tuple[int, str], Float64[np.ndarray, " L"]] = {}
    gates: dict[tuple[int, str], Float64[np.ndarray, " L"]] = {}

    def keep(into: dict[tuple[int, str], Any], key: tuple[int, str], part: Any, given: Any, out: Any) -> None:
        seen = given[0] if into is norms else out
        into[key] = seen.double().pow(2).mean(dim=(0, 2)).sqrt().cpu().numpy()

    with undisturbed(network.module), torch.no_grad(), ExitStack() as stack:
        for index, layer in enumerate(network.anatomy.layers):
            for name in NORMS:
                hook = getattr(layer, name).register_forward_hook(partial(keep, norms, (index, name)))
                stack.callback(hook.remove)
            stack.callback(layer.mlp.act_fn.register_forward_hook(partial(keep, gates, (index, "gate"))).remove)
        network.anatomy.stream(feed.vectors(rows), feed.mask(rows), feed.positions(rows))
    return Sizes(norms, [gates[index, "gate"] for index in range(len(network.anatomy.layers))])


class _Divide(torch.nn.Module):
    """Division by one number, or by one number for each position."""

    def __init__(self, by: Float64[np.ndarray, " L"] | float) -> None:
        super().__init__()
        self.by = torch.tensor(by, dtype=torch.float32)

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        return stream / (self.by if self.by.ndim == 0 else self.by[: stream.shape[1], None])


class _Constant(torch.nn.Module):
    """A gate that is open by the same number whatever it is given."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, gate: torch.Tensor) -> torch.Tensor:
        return torch.full_like(gate, self.by)


@contextmanager
def switched(
    network: Any, measured: Sizes, *, norms: str = "own", gate: str = "own", of: tuple[str, ...] = NORMS
) -> Iterator[None]:
    """Within the context norms divide by what was measured, and gates do not depend on what they are given.

    Args:
        network: a Llama, e.g. ``small_network``.
        measured: its ``sizes``.
        norms: ``own``, ``by position`` (what each divided by there), or ``one`` (one number for all positions).
        of: whose norms: attention's, the feed-forward's, or both.
        gate: ``own``, or ``one``: opened by one number, which leaves a linear feed-forward as large as the gated one.
    """
    with ExitStack() as stack:
        for index, layer in enumerate(network.anatomy.layers):
            for name in of if norms != "own" else ():
                by = measured.norms[index, name]
                _put(stack, layer, name, _Divide(by if norms == "by position" else _rms(by)))
            if gate != "own":
                _put(stack, layer.mlp, "act_fn", _Constant(_rms(measured.gates[index])))
        yield


def _rms(values: Float64[np.ndarray, " L"]) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _put(stack: ExitStack, parent: Any, name: str, part: torch.nn.Module) -> None:
    """Put ``part`` in the place of a module until the stack unwinds."""
    stack.callback(setattr, parent, name, getattr(parent, name))
    setattr(parent, name, part)
