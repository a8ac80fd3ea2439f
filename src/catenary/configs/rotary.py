"""Rotary position fields: the base, and the factor by which some variants multiply every attention logit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from catenary.configs import limits
from catenary.configs.fields import Fields

DEFAULT_THETA = 10_000.0
"""transformers' base where neither ``rope_parameters`` nor ``rope_theta`` gives one."""

FACTOR = 1e6
"""Upper bound of a context extension factor."""


@dataclass(frozen=True)
class Rotary:
    """RoPE base theta, and the factor on q and on k, so that logits carry its square."""

    theta: float
    attention_factor: float


def read_rotary(fields: Fields, max_length: int) -> Rotary:
    """Read ``rope_parameters``, or the older ``rope_scaling`` and ``rope_theta``.

    The rotation itself never changes which keys are visible, nor the variance of a logit. But transformers
    multiplies the cosines and sines of *yarn* and *longrope* by an attention factor m, so that every logit
    carries m^2: m = 0.1 ln(s) + 1 for yarn (arXiv 2309.00071) and sqrt(1 + ln(s)/ln(L0)) for longrope,
    with s the extension factor and L0 the original context length; ``attention_factor`` in the config wins.
    """
    part = fields.optional_part("rope_scaling") or fields.optional_part("rope_parameters")
    part = part.optional_part("full_attention") or part if part else None
    theta = part.optional_number("rope_theta", least=1.0, most=limits.THETA) if part else None
    if theta is None:
        theta = fields.optional_number("rope_theta", least=1.0, most=limits.THETA)
    if theta is None:
        theta = DEFAULT_THETA
        fields.assume("rope_theta", theta, f"left out; the default of transformers' {fields.family}")
    if part is None:
        return Rotary(theta, 1.0)
    kind = part.text("rope_type", "type") if part.has("rope_type") or part.has("type") else "default"
    factor = _attention_factor(kind, part, fields, max_length)
    if kind != "default":
        effect = f"; every attention logit is multiplied by {factor**2:.4g}" if factor != 1.0 else ""
        fields.note(f"RoPE frequencies scaled by {kind!r}: the rotation is not part of this description{effect}")
    return Rotary(theta, factor)


def _attention_factor(kind: str, part: Fields, fields: Fields, max_length: int) -> float:
    if kind not in ("yarn", "longrope"):
        return 1.0
    given = part.optional_number("attention_factor", most=100.0)
    if given is not None:
        return given
    outer = fields.optional_integer("original_max_position_embeddings", least=2, most=limits.POSITIONS)
    inner = part.optional_integer("original_max_position_embeddings", least=2, most=limits.POSITIONS)
    original = outer or inner or max_length
    extension = part.optional_number("factor", most=FACTOR)
    if extension is None:
        extension = max_length / original
    if kind == "longrope":
        return math.sqrt(1 + math.log(extension) / math.log(original)) if extension > 1 else 1.0
    scale = part.optional_number("mscale", most=100.0)
    scale_all = part.optional_number("mscale_all_dim", most=100.0)
    if scale and scale_all:
        return _yarn(extension, scale) / _yarn(extension, scale_all)
    return _yarn(extension, 1.0)


def _yarn(extension: float, scale: float) -> float:
    return 0.1 * scale * math.log(extension) + 1.0 if extension > 1 else 1.0
