"""What a part would cost on this machine: a relative of the network with two layers is drawn and timed.

The relative has the network's own widths, type and attention, so that its time and memory per layer are the
network's; theory's count of operations carries them to the full depth.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from catenary.errors import InvalidInput
from catenary.study.config import StudyConfig
from catenary.study.memory import resident_memory
from catenary.study.parts import TEXT, Part
from catenary.study.plan import Estimate, Estimator
from catenary.study.source import Source

if TYPE_CHECKING:
    from catenary.architecture import Architecture
    from catenary.measure.pilot import Passes
    from catenary.models.model import Model

Made = TypeVar("Made")

DEPTHS = ("num_hidden_layers", "n_layer", "n_layers")
LARGEST = 3e8
"""Parameters of a relative that is still drawn for an estimate: 1.2 GB and about five seconds."""
DRAWN, READ = 3.5, 2.0
"""Loading a network in units of drawing as many normal numbers: its own draw, the checks and the digest of its weights.

Measured on one shared core: 18 ns a parameter drawn and 11 ns read, where a normal number took 5.2 ns.
"""
OVERHEAD_LENGTH, OVERHEAD_BELOW = 16, 0.05
"""Tokens at which a window's own overhead is timed, and seconds of a pass above which it is too small to matter."""
LAYER_BELOW = 3e6
"""Parameters of a layer below which making its modules takes longer than drawing its weights."""
STARTING_SECONDS = 2.6
"""A worker's own start: torch, transformers and the model's code; measured, 2.5 to 2.8 s on one shared core."""
STORING_SECONDS, STORING_BYTES = 1.4, 67 * 2**20
"""What describing and storing a run takes, most of it the libraries for files, measured; nothing is kept then."""
TOKENISER_SECONDS = 0.8
"""Reading a tokenizer and the documents, measured with SmolLM2's: once for each kind of window."""


@dataclass(frozen=True)
class _Relative:
    """Passes of a network of few layers and their operations, whether its embedding is shared, and times beside them.

    ``loading`` is the relative's own, ``layer`` what one more layer adds to it beside its drawn numbers, ``window`` and
    ``probe`` what a window and each of its backward passes take beside the passes themselves.
    """

    passes: Passes
    operations: float
    tied: bool
    depth: int
    loading: float
    layer: float
    window: float
    probe: float


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
        model, loading = _timed(lambda: load(small, **options))
        depth, layer = len(model.anatomy.layers), 0.0
        parameters = layer_parameters(source.architecture) / source.architecture.depth
        single = _shrunk(source.located.config, 1)
        if single is not None and depth > 1 and parameters < LAYER_BELOW:
            rest = loading - _timed(lambda: load(single, **options))[1] - DRAWN * parameters * _normal_seconds()
            layer = max(0.0, rest / (depth - 1))
    except InvalidInput:
        return None
    if model.architecture is None:
        return None
    passes = pilot(model, config.length)
    tied = bool(getattr(model.module.config, "tie_word_embeddings", False))
    operations = forward_operations(model.architecture, config.length)
    return _Relative(passes, operations, tied, depth, loading, layer, *_overhead(model, passes))


def _overhead(model: Model, passes: Passes) -> tuple[float, float]:
    """Seconds of a window and of each backward pass beside the passes; nothing where passes are long."""
    from catenary.measure.jacobian import measure_jacobian
    from catenary.measure.pilot import run_pilot
    from catenary.text.synthetic import random_windows

    if passes.forward + passes.backward > OVERHEAD_BELOW:
        return 0.0, 0.0
    fed, few, many = random_windows(OVERHEAD_LENGTH, 1, 0), 1, 5

    def least(probes: int) -> float:
        return min(_timed(lambda: measure_jacobian(model, fed, probes=probes))[1] for _ in range(3))

    measure_jacobian(model, fed, probes=few)
    one, more = least(few), least(many)
    bare = run_pilot(model, OVERHEAD_LENGTH)
    probe = max(0.0, (more - one) / (many - few) - bare.backward)
    return max(0.0, one - bare.forward - bare.backward - probe), probe


def _timed(make: Callable[[], Made]) -> tuple[Made, float]:
    start = time.thread_time()
    made = make()
    return made, time.thread_time() - start


def _shrunk(config: Mapping[str, Any], depth: int = 2) -> dict[str, Any] | None:
    name = next((name for name in DEPTHS if isinstance(config.get(name), int)), None)
    if name is None:
        return None
    small = {**config, name: min(depth, config[name])}
    if isinstance(small.get("layer_types"), list):
        small["layer_types"] = small["layer_types"][: small[name]]
    return small


def _from_relative(config: StudyConfig, source: Source, part: Part, relative: _Relative) -> Estimate:
    from catenary.measure.cost import ITEM_BYTES, forward_operations, layer_parameters, pass_bytes

    architecture, item = source.architecture, ITEM_BYTES[config.dtype]
    one = relative.passes.scaled(forward_operations(architecture, config.length) / relative.operations)
    read, stored = _stored(source) if part.weights == "pretrained" else (0, 0)
    rows = 16 if _only_vectors(part) else architecture.vocabulary or 0
    drawn = layer_parameters(architecture) + (1 if relative.tied else 2) * rows * architecture.width
    parameters = read or drawn
    passes = backward_passes(architecture, part)
    again = one.forward if part.recompute else 0.0
    # The matrix of the vocabulary works on one position alone, forward once and back with every cotangent.
    output = 0.0
    if part.aim.kind != "stream":
        whole = forward_operations(architecture, config.length)
        output = one.forward * 2 * (architecture.vocabulary or 0) * architecture.width / whole
    window = relative.window + one.forward + output + passes * (one.backward + output + again + relative.probe)
    modules = relative.loading + (architecture.depth - relative.depth) * relative.layer
    loading = modules + parameters * (READ if read else DRAWN) * _normal_seconds()
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


def backward_passes(architecture: Architecture, part: Part) -> int:
    """Backward passes per window: of an answer one, by the exact method one for each entry of the output."""
    from catenary.measure.methods import ANSWER, METHODS

    method = ANSWER if part.aim.kind == "answer" else METHODS[part.method]
    width = (architecture.vocabulary or 0) if part.aim.kind == "logits" else architecture.width
    return method.passes(width, part.probes)


def _only_vectors(part: Part) -> bool:
    """Whether a fresh network is drawn without its matrix of the vocabulary, as ``load_net`` does."""
    return not TEXT & set(part.tokens) and part.aim.kind == "stream"


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

    full = part.weights == "pretrained" or not _only_vectors(part)
    cost = cost_of(
        source.architecture,
        config.length,
        windows=len(part.tokens) * part.windows,
        probes=backward_passes(source.architecture, part),
        dtype=config.dtype,
        batch_size=config.batch_size,
        vocabulary=None if full else 16,
        device=config.device,
        recompute=part.recompute,
    )
    return Estimate(part.nets * cost.seconds, cost.bytes)
