"""What was found in a network, in words: layers, final norm, embedding, position coding, and what mixes positions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from catenary.models.anatomy import Anatomy
from catenary.models.extra import torch
from catenary.models.rope import rotary_buffers


@dataclass(frozen=True)
class Portrait:
    """One network's parts by their paths.

    Attributes:
        layers: the list of layers and their number.
        final_norm: path of the norm behind the last layer, empty without one.
        embedding: path of the token embedding.
        positions: rotary, learned, or neither (ALiBi, relative positions, a recurrence, or none).
        mixers: the kind of every layer, as the config names it, else the class of its attention.
    """

    layers: str
    final_norm: str
    embedding: str
    positions: str
    mixers: str


def portrait(module: torch.nn.Module, anatomy: Anatomy) -> Portrait:
    """Name the parts that ``dissect`` found in ``module``."""
    paths = {id(part): name for name, part in module.named_modules()}
    first = paths[id(anatomy.layers[0])]
    return Portrait(
        f"{first.rpartition('.')[0]} x {len(anatomy.layers)}",
        "" if anatomy.final_norm is None else paths[id(anatomy.final_norm)],
        paths[id(anatomy.embedding)],
        _positions(module, anatomy),
        _runs(_kinds(module, anatomy)),
    )


def _positions(module: torch.nn.Module, anatomy: Anatomy) -> str:
    if rotary_buffers(module):
        return "rotary"
    for name, part in anatomy.backbone.named_modules():
        table = isinstance(part, torch.nn.Embedding) and part is not anatomy.embedding
        if table and any(word in (name + _class(part)).lower() for word in ("pos", "wpe")):
            return "learned or sinusoidal"
    tables = [name for name, _ in anatomy.backbone.named_buffers()]
    if any("rotary" in name for name in tables):
        return "rotary"
    if any(word in name for name in tables for word in ("pos_encoding", "embed_positions")):
        return "learned or sinusoidal"
    return "neither rotary nor learned"


def _kinds(module: torch.nn.Module, anatomy: Anatomy) -> list[str]:
    config: Any = getattr(module, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    named = getattr(text, "layer_types", None)
    if isinstance(named, list | tuple) and len(named) == len(anatomy.layers):
        return [str(kind) for kind in named]
    return [_mixer(layer) for layer in anatomy.layers]


def _mixer(layer: torch.nn.Module) -> str:
    """The class of the first child whose class is named after attention, a mixer or a recurrence."""
    for _, part in layer.named_modules():
        if any(word in _class(part).lower() for word in MIXERS) and part is not layer:
            return _class(part)
    return _class(layer)


MIXERS = ("attention", "attn", "mixer", "mamba", "recurrent", "lstm")


def _class(part: torch.nn.Module) -> str:
    return type(part).__name__


def _runs(kinds: list[str]) -> str:
    """Equal neighbours together: ``sliding_attention x 5, full_attention``."""
    runs = [(kind, len(list(group))) for kind, group in itertools.groupby(kinds)]
    return ", ".join(kind if count == 1 else f"{kind} x {count}" for kind, count in runs)
