"""What a part would cost on this machine: a relative of the network with two layers is drawn and timed.

The relative has the network's own widths, type and attention, so that its time and memory per layer are the
network's; theory's count of operations carries them to the full depth.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catenary.errors import InvalidInput
from catenary.study.config import StudyConfig
from catenary.study.memory import resident_memory
from catenary.study.parts import TEXT, Part
from catenary.study.plan import Estimate, Estimator
from catenary.study.source import Source

if TYPE_CHECKING:
    from catenary.measure.pilot import Passes

DEPTHS = ("num_hidden_layers", "n_layer", "n_layers")
LARGEST = 3e8
"""Parameters of a relative that is still drawn for an estimate: 1.2 GB and about five seconds."""
DRAWN, READ = 3.5, 2.0
"""Loading a network in units of drawing as many normal numbers: its own draw, the checks and the digest of its weights.

Measured on one shared core: 18 ns a parameter drawn and 11 ns read, where a normal number took 5.2 ns.
"""
STORING_SECONDS, STORING_BYTES = 1.4, 67 * 2**20
"""What describing and storing a run takes, most of it the libraries for files, measured; nothing is kept then."""
TOKENISER_SECONDS = 0.8
"""Reading a tokenizer and the documents, measured with SmolLM2's: once for each kind of window."""


@dataclass(frozen=True)
class _Relative:
    """Passes of a network of few layers and their operations, whether its embedding is shared, and time of loading."""

    passes: Passes
    operations: float
    tied: bool
    loading: float


def part_estimator(config: StudyConfig, source: Source) -> Estimator:
    """A function from a part to its estimate: loading every network, reading text, and all passes."""

    @cache
    def relative() -> _Relative | None:
        return _relative(config, source)

    def estimate(part: Part) -> Estimate:
        found = relative()
        return _from_sizes(config, source, part) if found is None else _from_relative(config, source, part, found)

    return estimate


def _relative(config: StudyConfig, source: Source) -> _Relative | None:
    """The relative, or None where it would be too large or cannot be made."""
    from catenary.measure.cost import forward_operations, layer_parameters
    from catenary.measure.pilot import pilot
    from catenary.models.load import load

    small = _shrunk(source.located.config)
    if small is None or 2 * layer_parameters(source.architecture) / source.architecture.depth > LARGEST:
        return None
    options: dict[str, Any] = {name: getattr(config, name) for name in ("device", "dtype", "attention")}
    options["vocabulary"] = 16
    try:
        load(small, **options)  # the first one also imports the model's code
        start = time.thread_time()
        model = load(small, **options)
        loading = time.thread_time() - start
    except InvalidInput:
        return None
    if model.architecture is None:
        return None
    passes = pilot(model, config.length)
    tied = bool(getattr(model.module.config, "tie_word_embeddings", False))
    return _Relative(passes, forward_operations(model.architecture, config.length), tied, loading)


def _shrunk(config: Mapping[str, Any]) -> dict[str, Any] | None:
    name = next((name for name in DEPTHS if isinstance(config.get(name), int)), None)
    if name is None:
        return None
    small = {**config, name: min(2, config[name])}
    if isinstance(small.get("layer_types"), list):
        small["layer_types"] = small["layer_types"][: small[name]]
    return small


def _from_relative(config: StudyConfig, source: Source, part: Part, relative: _Relative) -> Estimate:
    from catenary.measure.cost import ITEM_BYTES, forward_operations, layer_parameters, pass_bytes

    architecture, item = source.architecture, ITEM_BYTES[config.dtype]
    one = relative.passes.scaled(forward_operations(architecture, config.length) / relative.operations)
    read, stored = _stored(source) if part.weights == "pretrained" else (0, 0)
    rows = (architecture.vocabulary or 0) if TEXT & set(part.tokens) else 16
    drawn = layer_parameters(architecture) + (1 if relative.tied else 2) * rows * architecture.width
    parameters = read or drawn
    passes = architecture.width if part.method == "exact" else part.probes
    window = one.forward + passes * (one.backward + (one.forward if part.recompute else 0.0))
    loading = relative.loading + parameters * (READ if read else DRAWN) * _normal_seconds()
    text = TOKENISER_SECONDS * len(TEXT & set(part.tokens))
    seconds = part.total * window + part.nets * loading + text
    inputs = config.length * architecture.width * item
    batch = min(config.batch_size, part.windows)
    running = item * parameters + batch * pass_bytes(one.kept, architecture.depth, inputs, recompute=part.recompute)
    if not config.device.startswith("cpu"):
        return Estimate(seconds, running)
    running = max(running, item * parameters + STORING_BYTES)
    # Weights are drawn or read in float32; the file stays mapped while it is read.
    return Estimate(seconds, resident_memory() + max(running, 4 * parameters + stored))


def _stored(source: Source) -> tuple[int, int]:
    """Numbers in the safetensors files, and their bytes."""
    assert source.weights is not None
    paths = sorted(source.weights.glob("*.safetensors"))
    return sum(map(_numbers, paths)), sum(path.stat().st_size for path in paths)


def _numbers(path: Path) -> int:
    """Entries of all tensors of a safetensors file, from its header."""
    with path.open("rb") as data:
        (size,) = struct.unpack("<Q", data.read(8))
        header = json.loads(data.read(size))
    total = 0
    for name, entry in header.items():
        if name != "__metadata__":
            count = 1
            for axis in entry["shape"]:
                count *= axis
            total += count
    return total


@cache
def _normal_seconds() -> float:
    """Processor seconds of one normal number here."""
    from catenary.measure.cost import best_time
    from catenary.models.extra import torch

    numbers, generator = torch.empty(1_000_000), torch.Generator().manual_seed(0)
    return best_time(lambda: numbers.normal_(generator=generator), repeats=3) / numbers.numel()


def _from_sizes(config: StudyConfig, source: Source, part: Part) -> Estimate:
    from catenary.measure.cost import estimate as cost_of

    full = part.weights == "pretrained" or bool(TEXT & set(part.tokens))
    cost = cost_of(
        source.architecture,
        config.length,
        windows=len(part.tokens) * part.windows,
        probes=source.architecture.width if part.method == "exact" else part.probes,
        dtype=config.dtype,
        batch_size=config.batch_size,
        vocabulary=None if full else 16,
        device=config.device,
        recompute=part.recompute,
    )
    return Estimate(part.nets * cost.seconds, cost.bytes)
