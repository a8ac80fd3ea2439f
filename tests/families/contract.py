"""A type's law against real untrained networks of that type, and against the plain law of a Llama-like decoder."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import catenary as ct
from catenary.architecture import Architecture, Branch, Embedding, FeedForward, HeadGroup, Layer, Recurrence, Step
from catenary.architecture import Attention as Heads
from families.case import LENGTH, Case

EDGES = (0, 1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 63, 64)
"""Position groups: single ones at both ends, eight positions each between."""


@dataclass(frozen=True)
class Verdict:
    """Errors of log10 rms over position groups: median and largest of the type's law, median of the plain law.

    ``floor`` is the median standard error of the measurement itself over networks.
    """

    median: float
    largest: float
    plain: float
    floor: float


def verify(model_type: str, case: Case, *, networks: int = 32, sequences: int = 4, probes: int = 1) -> Verdict:
    """Measure ``networks`` untrained networks, each fed ``sequences`` of random vectors, and compare."""
    config = {"model_type": model_type, **case.config}
    architecture = ct.read_config(config)
    expected = grouped(ct.predict(architecture, length=LENGTH).values ** 2)
    other = grouped(ct.predict(plain(architecture), length=LENGTH).values ** 2)
    seen = grouped(measured(config, networks, sequences, probes))
    reached = seen.mean(0) > 0
    level = 0.5 * np.log10(seen.mean(0)[reached])
    assert ((expected > 0) == reached).all(), "positions that no path reaches have no energy, and only those"
    own = 0.5 * np.log10(expected[reached]) - level
    missed = 0.5 * np.log10(other[reached]) - level
    scatter = seen.std(0, ddof=1)[reached] / np.sqrt(networks) / seen.mean(0)[reached] / (2 * np.log(10))
    return Verdict(*(float(x) for x in (
        np.median(np.abs(own)), np.abs(own).max(), np.median(np.abs(missed)), np.median(scatter),
    )))  # fmt: skip


def measured(config: dict[str, Any], networks: int, sequences: int, probes: int) -> NDArray[np.float64]:
    """||J_j^T v||^2 per network and position, averaged over sequences and probes."""
    windows = ct.random_windows(LENGTH, sequences, 0)
    with warnings.catch_warnings():
        # Routers and biases of experts are drawn as zeros in some types, which is what their law describes.
        warnings.filterwarnings("ignore", message=".*constant: a dead")
        return np.stack([
            ct.measure_jacobian(ct.load(config, seed=seed), windows, probes=probes, batch_size=sequences)
            .energy[0, 0, 0].mean((0, 1))
            for seed in range(networks)
        ])  # fmt: skip


def grouped(energies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over each position group, on the last axis."""
    return np.stack([energies[..., start:stop].mean(-1) for start, stop in pairwise(EDGES)], -1)


def plain(architecture: Architecture) -> Architecture:
    """The same matrices in a plain decoder: causal heads, pre-norm branches one after the other, no multipliers."""
    layers = tuple(Layer(tuple(_plain_steps(layer, architecture))) for layer in architecture.layers)
    attention = next(mix for layer in layers for mix in layer.attentions)
    embedding = Embedding(attention.value_std, position_std=architecture.embedding.position_std)
    return replace(architecture, layers=layers, embedding=embedding)


def _heads(width: int) -> Heads:
    """Attention for a network that has none: as strong as a value of unit variance."""
    std = width**-0.5
    return Heads((HeadGroup(4),), kv_heads=4, head_dim=width // 4, query_scale=1.0, qk_norm=False, query_key_std=0.0,
                 value_std=std, output_std=std, rotary=None)  # fmt: skip


def _plain_steps(layer: Layer, architecture: Architecture) -> list[Step]:
    parts: list[Branch | Step] = [*layer.branches, *layer.steps]
    found = [norm for part in parts for norm in (part.before, part.after)]
    norm = next(norm for norm in (architecture.final_norm, *found) if norm)
    heads = next((mix for layer in architecture.layers for mix in layer.attentions), _heads(architecture.width))
    steps = []
    for branch in layer.branches:
        mix = heads if isinstance(branch.mix, Recurrence) else branch.mix
        if isinstance(mix, Heads):
            mix = replace(
                mix, groups=(HeadGroup(mix.heads),), softcap=None, sink=None, gate=None, latent=None,
                output_std=mix.value_std,
            )  # fmt: skip
        elif isinstance(mix, FeedForward):
            mix = replace(mix, experts=None, gate=None, limit=None, offset=0.0, bottleneck=None)
        steps.append(Step((Branch(mix, before=norm),)))
    return steps
