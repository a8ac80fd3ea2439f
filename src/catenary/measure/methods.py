"""Which cotangents are pulled back through the network, and what the sum or set of their energies is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jaxtyping import Float

from catenary.measure.probes import cotangent
from catenary.models.extra import torch
from catenary.quantity import ANSWER_GRADIENT, JACOBIAN_NORM, SCALAR_GRADIENT, Quantity
from catenary.registry import Registry


@dataclass(frozen=True)
class Draw:
    """Where the probes of one batch come from: seed, the network's seed, the windows' indices, and how many."""

    seed: int
    net: int
    sequences: Sequence[int]
    probes: int


Cotangents = Callable[[Float[torch.Tensor, "n d"], Draw], Iterator[Float[torch.Tensor, "n d"]]]
"""From the output at one position, one cotangent per window for each backward pass."""


@dataclass(frozen=True)
class Method:
    """A way to turn backward passes into energies.

    ``summed``: the energies of all passes add up to one exact number; else each pass is one entry of the probe
    axis. ``passes`` counts the backward passes from the width d and the number of probes asked for.
    """

    name: str
    quantity: Quantity
    summed: bool
    passes: Callable[[int, int], int]
    cotangents: Cotangents


def _gaussian(last: Float[torch.Tensor, "n d"], draw: Draw) -> Iterator[Float[torch.Tensor, "n d"]]:
    width = last.shape[-1]
    for probe in range(draw.probes):
        rows = [
            torch.from_numpy(cotangent(width, seed=draw.seed, net=draw.net, sequence=sequence, probe=probe))
            for sequence in draw.sequences
        ]
        # Cast before moving: not every device has float64.
        yield torch.stack(rows).to(last.dtype).to(last.device)


def _basis(last: Float[torch.Tensor, "n d"], draw: Draw) -> Iterator[Float[torch.Tensor, "n d"]]:
    for index in range(last.shape[-1]):
        unit = torch.zeros_like(last)
        unit[:, index] = 1
        yield unit


def _direction(last: Float[torch.Tensor, "n d"], draw: Draw) -> Iterator[Float[torch.Tensor, "n d"]]:
    fixed = last.detach()
    yield fixed / fixed.norm(dim=-1, keepdim=True)


def _one(last: Float[torch.Tensor, "n 1"], draw: Draw) -> Iterator[Float[torch.Tensor, "n 1"]]:
    yield torch.ones_like(last)


METHODS: Registry[Method] = Registry("method")

PROBES = METHODS.register("probes", Method("probes", JACOBIAN_NORM, False, lambda width, probes: probes, _gaussian))
"""K Gaussian cotangents: E||J_j^T v||^2 = ||J_j||_F^2."""

EXACT = METHODS.register("exact", Method("exact", JACOBIAN_NORM, True, lambda width, probes: width, _basis))
"""All d basis cotangents: sum_i ||J_j^T e_i||^2 = ||J_j||_F^2."""

SCALAR = METHODS.register("scalar", Method("scalar", SCALAR_GRADIENT, False, lambda width, probes: 1, _direction))
"""The gradient of ||h_L||, that is J_j^T h_L/||h_L||: one pass of one scalar, as in arXiv 2603.10123."""

ANSWER = Method("answer", ANSWER_GRADIENT, True, lambda width, probes: 1, _one)
"""The gradient of one scalar output, exact in one pass; chosen by the output, not by name."""
