"""A config with some of its fields changed, and which fields its family reads at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catenary.configs.class_facts import class_facts
from catenary.configs.family import FAMILIES
from catenary.configs.fields import SPELLINGS
from catenary.configs.read import open_fields, text_part
from catenary.errors import unknown

PER_LAYER = ("layer_types", "no_rope_layers", "attention_layers", "mlp_layer_types")
"""Lists with one entry per layer: they follow a change of the depth."""

DEPTH = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")


def read_fields(config: Mapping[str, Any]) -> dict[str, object]:
    """Every field that the config's family reads, with its value here or the class default (None without one)."""
    fields = open_fields(config)
    FAMILIES[fields.family].read(fields)
    _, part = text_part(config)
    defaults = class_facts(fields.family).defaults
    return {name: part.get(name, defaults.get(name)) for name in sorted(fields.read)}


def changed_config(config: Mapping[str, Any], changes: Mapping[str, object]) -> dict[str, Any]:
    """A copy of ``config`` with ``changes`` in its text part; lists with one entry per layer follow the depth.

    A field may go by another family's name for it (``num_hidden_layers`` for GPT-2's ``n_layer``): the name that
    the config or its family uses is changed. A per-layer list is cut, or its last full period of at most 8 layers
    repeated.

    Raises:
        InvalidInput: the family does not read a field of that name; the message has the nearest one.
    """
    known = read_fields(config)
    _, part = text_part(config)
    part = dict(part)
    for name, value in changes.items():
        spelled = _spelled(name, part, known)
        before = part.get(spelled, known[spelled])
        part[spelled] = value
        if spelled in DEPTH and isinstance(before, int) and isinstance(value, int):
            for listed in PER_LAYER:
                if isinstance(part.get(listed), list) and len(part[listed]) == before:
                    part[listed] = _of_length(part[listed], value)
    return part


def one_field(config: Mapping[str, Any], names: Sequence[str]) -> tuple[str, str] | None:
    """The first two of ``names`` that mean one field of this config, or None where all are different fields."""
    known = read_fields(config)
    _, part = text_part(config)
    own = open_fields(config).own_name
    seen: dict[str, str] = {}
    for name in names:
        field = own(_spelled(name, part, known))
        if field in seen:
            return seen[field], name
        seen[field] = name
    return None


def _spelled(name: str, part: Mapping[str, Any], known: Mapping[str, object]) -> str:
    """The name under which the config holds, or its family reads, the field."""
    if name in part and name in known:
        return name
    for spellings in SPELLINGS:
        if name in spellings:
            held = [other for other in spellings if other in known]
            return next((other for other in held if other in part), held[0] if held else name)
    if name not in known:
        raise unknown("field", name, sorted(known))
    return name


def _of_length(entries: list[Any], length: int) -> list[Any]:
    if length <= len(entries):
        return entries[:length]
    for period in range(1, min(8, len(entries)) + 1):
        if all(entries[n] == entries[n % period] for n in range(len(entries))):
            break
    return [entries[n] if n < len(entries) else entries[len(entries) - period + (n - len(entries)) % period]
            for n in range(length)]
