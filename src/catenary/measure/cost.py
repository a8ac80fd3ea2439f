"""Seconds and peak memory of a measurement before it runs: from a short pilot of the network, or from its sizes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catenary.architecture import Architecture
from catenary.errors import invalid

if TYPE_CHECKING:
    from catenary.models.model import Model

WORKING = 1.5
"""Numbers at work in a pass beside those kept, in units of what one layer keeps."""

EFFICIENCY = {True: 0.75, False: 0.25}
"""Speed of a whole network relative to one matrix product of its width, by whether the feed-forward is gated.

Measured on one shared core in float32 at 512 tokens: 0.75 for Qwen2-0.5B's layers, 0.25 for GPT-2 small's, whose
activation function takes longer than its products.
"""

RUNTIME_BYTES = 410 * 2**20
"""Resident memory of Python with torch and transformers beside the weights, measured with three networks."""

ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Cost:
    """Expected processor time in seconds, which is wall time on an idle machine, and peak resident memory in bytes."""

    seconds: float
    bytes: int

    @property
    def words(self) -> str:
        """Rounded, with units a person reads."""
        minutes = self.seconds / 60
        long = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
        took = f"{self.seconds:.0f} s" if minutes < 2 else long
        return f"about {took}, {self.bytes / 2**30:.1f} GiB"

    def __add__(self, other: Cost) -> Cost:
        """One after the other: times add, the larger peak counts."""
        return Cost(self.seconds + other.seconds, max(self.bytes, other.bytes))


def estimate(
    model: Model | Architecture,
    length: int,
    windows: int,
    probes: int,
    dtype: str = "float32",
    *,
    batch_size: int = 1,
    vocabulary: int | None = None,
    device: str = "cpu",
    recompute: bool = False,
) -> Cost:
    """Cost of ``measure_jacobian`` with K probes on some windows: one forward and K backward passes per window.

    A Model is timed on two inputs of up to 1,024 tokens, and what autograd keeps is counted; ``dtype`` is then the
    model's own. With ``recompute`` every backward pass has one more forward pass, and layers keep their inputs. An
    Architecture is costed by its sizes and the speed of one matrix product here, including drawing the network;
    ``vocabulary`` is its number of embedding rows, the config's if None, and ``device`` where that product is
    timed. ``method="exact"`` has as many probes as the width.

    Raises:
        InvalidInput: for a length, number of windows, probes or batch size below 1.
    """
    for name, value in (("length", length), ("windows", windows), ("probes", probes), ("batch_size", batch_size)):
        if value < 1:
            raise invalid(name, "must be >= 1", value)
    batch = min(batch_size, windows)
    if isinstance(model, Architecture):
        return _from_sizes(model, length, windows, probes, dtype, batch, vocabulary, device, recompute)
    return _from_pilot(model, length, windows, probes, batch, recompute)


def forward_operations(architecture: Architecture, length: int) -> float:
    """Multiplications and additions of one forward pass without the vocabulary matrix.

    2 P L for P parameters in the layers' matrices, and 4 L^2 (heads * head_dim) per layer for the attention.
    A backward pass to the inputs through frozen weights costs as much again.
    """
    mixing = sum(heads.heads * heads.head_dim for layer in architecture.layers for heads in layer.attentions)
    return 2.0 * layer_parameters(architecture) * length + 4.0 * length**2 * mixing


def layer_parameters(architecture: Architecture) -> int:
    """Entries of all matrices in the layers."""
    total = 0
    for layer in architecture.layers:
        for heads in layer.attentions:
            total += 2 * architecture.width * heads.head_dim * (heads.heads + heads.kv_heads)
        for inner in layer.feed_forwards:
            copies = inner.experts.count if inner.experts else 1
            total += copies * (3 if inner.gated else 2) * architecture.width * inner.width
    return total


def kept_floats(architecture: Architecture, length: int) -> int:
    """Numbers autograd keeps for one window under sdpa.

    5 d + (3 or 5) m per layer and token, for a gated or plain feed-forward of width m; counted in transformers'
    Qwen2 (within 2 %) and GPT-2 (within 12 %).
    """
    inner = [branch for layer in architecture.layers for branch in layer.feed_forwards]
    chosen = sum((3 if b.gated else 5) * b.width * (b.experts.top if b.experts else 1) for b in inner)
    return (5 * architecture.width * architecture.depth + chosen) * length


def _from_sizes(
    architecture: Architecture,
    length: int,
    windows: int,
    probes: int,
    dtype: str,
    batch: int,
    vocabulary: int | None,
    device: str,
    recompute: bool,
) -> Cost:
    if dtype not in ITEM_BYTES:
        raise invalid("dtype", f"must be one of {', '.join(ITEM_BYTES)}", dtype)
    rows = vocabulary if vocabulary is not None else architecture.vocabulary or 0
    # The config does not always say whether the output matrix is the embedding again: count both.
    parameters = layer_parameters(architecture) + 2 * rows * architecture.width
    item = ITEM_BYTES[dtype]
    kept, inputs = item * kept_floats(architecture, length), item * length * architecture.width
    running = item * parameters + batch * pass_bytes(kept, architecture.depth, inputs, recompute=recompute)
    drawing = 4 * parameters  # weights are drawn in float32
    gated = any(inner.gated for inner in architecture.layers[0].feed_forwards)
    speed = EFFICIENCY[gated] * _product_speed(architecture.width, dtype, device)
    passes = 1 + probes * (2 if recompute else 1)
    seconds = windows * passes * forward_operations(architecture, length) / speed
    return Cost(seconds + parameters / 5e7, int(RUNTIME_BYTES + max(running, drawing)))  # 5e7 normal numbers a second


def _product_speed(width: int, dtype: str, device: str) -> float:
    """Operations per second of (128, d) x (d, 4d) products on ``device``.

    On the CPU half types are costed as float32, which is safe: some processors are slower with them.
    """
    from catenary.models.device import find_device
    from catenary.models.extra import torch

    on_cpu = find_device(device).type == "cpu"
    kind = torch.float64 if dtype == "float64" else torch.float32 if on_cpu else getattr(torch, dtype)
    size, repeats = max(256, min(width, 2048)), 1 if on_cpu else 50
    left = torch.ones((128, size), dtype=kind, device=device)
    right = torch.ones((size, 4 * size), dtype=kind, device=device)

    def work() -> float:
        for _ in range(repeats):
            product = left @ right
        return product[0, 0].item()  # waits for an accelerator to finish

    return repeats * 2.0 * 128 * size * 4 * size / best_time(work, repeats=5)


def _from_pilot(model: Model, length: int, windows: int, probes: int, batch: int, recompute: bool) -> Cost:
    from catenary.measure.pilot import pilot
    from catenary.models.extra import torch

    one = pilot(model, length)
    depth = len(model.anatomy.layers)
    seconds = one.forward + probes * (one.backward + (one.forward if recompute else 0.0))
    parameters = sum(parameter.numel() * parameter.element_size() for parameter in model.module.parameters())
    item = model.embedding_weight.element_size()
    inner = batch * pass_bytes(one.kept, depth, length * model.width * item, recompute=recompute)
    base = 0 if torch.device(model.device).type != "cpu" else RUNTIME_BYTES
    return Cost(windows * seconds, int(base + parameters + inner))


def pass_bytes(kept: float, depth: int, inputs: float, *, recompute: bool) -> float:
    """Peak bytes of the passes of one window: what autograd keeps, and what is at work beside it.

    ``kept`` is what it keeps without recomputation and ``inputs`` the size of one layer's input. At work are about
    1.5 times the numbers of one layer (measured: 1.5 in GPT-2 at 512 tokens); recomputation keeps the layers' inputs
    and the inside of one layer.
    """
    layer = kept / depth
    return WORKING * layer + (depth * inputs + layer if recompute else kept)


def best_time(work: Callable[[], object], *, repeats: int) -> float:
    """The least processor time of several runs; one more before them warms up."""
    times = []
    for _ in range(repeats + 1):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times[1:])
