"""Seconds and peak memory of a measurement before it runs: from a short pilot of the network, or from its sizes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catenary.architecture import Architecture
from catenary.errors import invalid

if TYPE_CHECKING:
    from catenary.models.model import Model

PILOT_LENGTHS = (32, 128)
"""Two short lengths: the part of the time that does not grow with the work, and the part that does."""

EFFICIENCY = {True: 0.75, False: 0.25}
"""Speed of a whole network relative to one matrix product of its width, by whether the feed-forward is gated.

Measured on one shared core in float32 at 512 tokens: 0.75 for Qwen2-0.5B's layers, 0.25 for GPT-2 small's, whose
activation function takes longer than its products.
"""

RUNTIME_BYTES = 500 * 2**20
"""Resident memory of Python with torch and transformers before any network, measured."""

ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Cost:
    """Expected wall time in seconds and peak resident memory in bytes; both within about a factor of two."""

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
) -> Cost:
    """Cost of ``measure_jacobian`` with K probes on some windows: one forward and K backward passes per window.

    A Model is timed on two short inputs, and what autograd keeps is counted; ``dtype`` is then the model's own. An
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
        return _from_sizes(model, length, windows, probes, dtype, batch, vocabulary, device)
    return _from_pilot(model, length, windows, probes, batch)


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
) -> Cost:
    if dtype not in ITEM_BYTES:
        raise invalid("dtype", f"must be one of {', '.join(ITEM_BYTES)}", dtype)
    rows = vocabulary if vocabulary is not None else architecture.vocabulary or 0
    # The config does not always say whether the output matrix is the embedding again: count both.
    parameters = layer_parameters(architecture) + 2 * rows * architecture.width
    item = ITEM_BYTES[dtype]
    running = item * (parameters + batch * kept_floats(architecture, length))
    drawing = 4 * parameters  # weights are drawn in float32
    gated = any(inner.gated for inner in architecture.layers[0].feed_forwards)
    speed = EFFICIENCY[gated] * _product_speed(architecture.width, dtype, device)
    seconds = windows * (1 + probes) * forward_operations(architecture, length) / speed
    return Cost(seconds + parameters / 5e7, RUNTIME_BYTES + max(running, drawing))  # 5e7 normal numbers a second


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

    return repeats * 2.0 * 128 * size * 4 * size / _best_time(work, repeats=5)


def _from_pilot(model: Model, length: int, windows: int, probes: int, batch: int) -> Cost:
    from catenary.models.extra import torch

    lengths = tuple(min(length, pilot) for pilot in PILOT_LENGTHS)
    if model.max_length is not None:
        lengths = tuple(min(pilot, model.max_length) for pilot in lengths)
    points = [_Pilot.run(model, pilot) for pilot in sorted(set(lengths))]
    last = points[-1]
    seconds = _extrapolate([(p.length, p.forward + probes * p.backward) for p in points], length)
    kept = _extrapolate([(p.length, p.kept) for p in points], length)
    parameters = sum(parameter.numel() * parameter.element_size() for parameter in model.module.parameters())
    if torch.device(model.device).type != "cpu":
        parameters = 0  # resident memory of the host is what is counted
        kept = 0.0
    return Cost(windows * seconds, int(RUNTIME_BYTES + parameters + batch * max(kept, last.kept)))


def _extrapolate(points: list[tuple[int, float]], length: int) -> float:
    """Linear in the length through the last two points, never below the proportional share of the last point."""
    reach, value = points[-1]
    if length <= reach or len(points) < 2:
        return value * length / reach
    before, low = points[-2]
    slope = max((value - low) / (reach - before), 0.5 * value / reach)
    return value + slope * (length - reach)


@dataclass(frozen=True)
class _Pilot:
    """Seconds of one forward and one backward pass, and bytes autograd kept, at one length."""

    length: int
    forward: float
    backward: float
    kept: float

    @classmethod
    def run(cls, model: Model, length: int) -> _Pilot:
        from catenary.models.anatomy import pilot_vectors
        from catenary.models.extra import torch
        from catenary.models.undisturbed import undisturbed

        held = {parameter.untyped_storage().data_ptr() for parameter in model.module.parameters()}
        sizes: dict[int, int] = {}
        kept: list[Any] = []  # keeps storages alive, so that no address is used twice

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            kept.append(tensor)
            if storage.data_ptr() not in held:
                sizes[storage.data_ptr()] = storage.nbytes()
            return tensor

        vectors = pilot_vectors(model.anatomy.embedding, length).requires_grad_(True)
        mask = torch.ones(vectors.shape[:2], dtype=torch.long, device=vectors.device)
        with undisturbed(model.module):
            forward = _best_time(lambda: model.anatomy.stream(vectors.clone(), mask), repeats=2)
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                last = model.anatomy.stream(vectors.clone(), mask)[:, -1]
            cotangent = torch.ones_like(last)
            backward = _best_time(
                lambda: torch.autograd.grad(last, vectors, cotangent, retain_graph=True)[0].sum().item(), repeats=2
            )
        return cls(length, forward, backward, float(sum(sizes.values())))


def _best_time(work: Callable[[], object], *, repeats: int) -> float:
    """The least of several times; the first run also warms up."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times[1:])
