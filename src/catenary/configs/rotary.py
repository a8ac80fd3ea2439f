"""Rotary position fields: base, turned channels, and the factor by which some variants multiply every logit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catenary.architecture import Rotary
from catenary.configs import limits
from catenary.configs.class_facts import THETA
from catenary.configs.fields import Fields
from catenary.errors import invalid

FACTOR = 1e6
"""Upper bound of a context extension factor."""

LAYER_KINDS = ("full_attention", "sliding_attention", "chunked_attention")
"""Keys under which ``rope_parameters`` may hold one object per kind of layer."""


@dataclass(frozen=True)
class Turning:
    """How a layer turns its queries and keys, and the factor its logits carry for it."""

    rotary: Rotary
    logit_factor: float = 1.0


def read_turnings(fields: Fields, head_dim: int, kinds: Sequence[str], *, partial: float = 1.0) -> tuple[Turning, ...]:
    """One ``read_turning`` per layer, for layers of these kinds."""
    found = {kind: read_turning(fields, head_dim, kind, partial=partial) for kind in dict.fromkeys(kinds)}
    return tuple(found[kind] for kind in kinds)


def read_local_turnings(fields: Fields, head_dim: int, kinds: Sequence[str]) -> tuple[Turning, ...]:
    """One rotation per layer where sliding layers have their own, as in Gemma 3 and OLMo 3.

    ``rope_scaling`` and ``rope_theta`` are those of the full layers; sliding layers are not scaled and have the base
    ``rope_local_base_freq``, or the class's own, unless ``rope_parameters`` hold one object per kind.
    """
    full = read_turning(fields, head_dim)
    if "sliding_attention" not in kinds:
        return (full,) * len(kinds)
    local = _turning(fields, _part(fields, "sliding_attention", nested=True), head_dim, "sliding_attention",
                     base="rope_local_base_freq")  # fmt: skip
    return tuple(local if kind == "sliding_attention" else full for kind in kinds)


def read_turning(
    fields: Fields,
    head_dim: int,
    kind: str = "full_attention",
    *,
    partial: float = 1.0,
    theta: float | None = None,
    also: Mapping[str, str] | None = None,
) -> Turning:
    r"""Read ``rope_parameters``, or the older ``rope_scaling``, ``rope_theta`` and ``partial_rotary_factor``.

    Of each head the first \(2 \lceil \lfloor f h_d \rfloor / 2 \rceil\) channels turn, f the partial factor
    (``partial``: the class's own). ``theta``: the class's base for this kind of layer where the config gives none.
    ``also``: scaling types that the class reads as another.

    The rotation itself never changes which keys are visible, nor the variance of a logit. But transformers
    multiplies the cosines and sines of *yarn* and *longrope* by an attention factor m, so that every logit
    carries m^2: m = 0.1 ln(s) + 1 for yarn (arXiv 2309.00071) and sqrt(1 + ln(s)/ln(L0)) for longrope,
    with s the extension factor and L0 the original context length; ``attention_factor`` in the config wins.

    Raises:
        InvalidInput: a field of the wrong type or out of range, or an odd head that is turned whole.
    """
    return _turning(fields, _part(fields, kind), head_dim, kind, partial=partial, theta=theta, also=also)


def _part(fields: Fields, kind: str, *, nested: bool = False) -> Fields | None:
    """The object that describes layers of ``kind``; with ``nested`` only one that is theirs alone."""
    part = fields.optional_part("rope_scaling") or fields.optional_part("rope_parameters")
    if part is not None and any(part.has(name) for name in LAYER_KINDS):
        return part.optional_part(kind)
    return None if nested else part


def _turning(
    fields: Fields,
    part: Fields | None,
    head_dim: int,
    kind: str,
    *,
    base: str = "rope_theta",
    partial: float = 1.0,
    theta: float | None = None,
    also: Mapping[str, str] | None = None,
) -> Turning:
    factor = _number(part, fields, "partial_rotary_factor", 1.0)
    turned = int(head_dim * (partial if factor is None else factor))
    if turned % 2 and turned == head_dim:
        raise invalid("head_dim", "must be even for rotary positions", head_dim)
    found = part.optional_number("rope_theta", most=limits.THETA, least=1.0) if part is not None else None
    if found is None:
        found = fields.optional_number(base, most=limits.THETA, least=1.0)
    if found is None:
        found = _class_theta(fields, kind) if theta is None else theta
        fields.assume(base, found, f"left out; the default of transformers' {fields.family}")
    rotary = Rotary(found, turned + turned % 2)
    if part is None:
        return Turning(rotary)
    scaling = part.text("rope_type", "type") if part.has("rope_type") or part.has("type") else "default"
    scaling = (also or {}).get(scaling, scaling)
    attention = _attention_factor(scaling, part, fields)
    if scaling != "default":
        effect = f"; every attention logit is multiplied by {attention**2:.4g}" if attention != 1.0 else ""
        fields.note(f"RoPE frequencies scaled by {scaling!r}: the rotation is not part of this description{effect}")
    return Turning(rotary, attention**2)


def _number(part: Fields | None, fields: Fields, name: str, most: float, least: float = 0.0) -> float | None:
    """The value in the rotary part, else the config's own."""
    inner = part.optional_number(name, most=most, least=least) if part is not None else None
    return fields.optional_number(name, most=most, least=least) if inner is None else inner


def _class_theta(fields: Fields, kind: str) -> float:
    if isinstance(fields.theta, float | int):
        return float(fields.theta)
    return float(fields.theta.get("global" if kind == "full_attention" else "local", THETA))


def _attention_factor(kind: str, part: Fields, fields: Fields) -> float:
    if kind not in ("yarn", "longrope"):
        return 1.0
    given = part.optional_number("attention_factor", most=100.0)
    if given is not None:
        return given
    max_length = fields.integer("max_position_embeddings", most=limits.POSITIONS)
    outer = fields.optional_integer("original_max_position_embeddings", least=2, most=limits.POSITIONS)
    inner = part.optional_integer("original_max_position_embeddings", least=2, most=limits.POSITIONS)
    original = outer or inner or max_length
    extension = part.optional_number("factor", most=FACTOR)
    if extension is None:
        extension = max_length / original
    if kind == "longrope":
        return math.sqrt(1 + math.log(extension) / math.log(original)) if extension > 1 and original > 1 else 1.0
    scale = part.optional_number("mscale", most=100.0)
    scale_all = part.optional_number("mscale_all_dim", most=100.0)
    if scale and scale_all:
        return _yarn(extension, scale) / _yarn(extension, scale_all)
    return _yarn(extension, 1.0)


def _yarn(extension: float, scale: float) -> float:
    return 0.1 * scale * math.log(extension) + 1.0 if extension > 1 else 1.0
