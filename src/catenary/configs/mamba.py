"""Mamba 1 and Falcon Mamba: one selective state space per layer, nothing else."""

from __future__ import annotations

import math

from catenary.architecture import Architecture, Branch, Layer, Norm, SelectiveStateSpace, Step, Steps
from catenary.configs import limits
from catenary.configs.activations import ACTIVATIONS
from catenary.configs.decoder import Sizes, assemble, read_depth, read_norm, read_width
from catenary.configs.experts import SCALE
from catenary.configs.family import Described, register
from catenary.configs.fields import Fields
from catenary.configs.initial import initial_std
from catenary.configs.state_space import EXPANSION, STATE
from catenary.errors import NotApplicable, invalid

SCATTER = (
    "all channels share the products of b and c, whose scatter between tokens and networks the mean leaves out: {}"
)

FOUND = {
    "mamba": "harmless where a token's own state adds little, .28 dex at the strength of published models",
    "falcon_mamba": ".05 dex at the strength of published models",
}
"""Measured at width 128, with weights that make states as strong as in published models."""


def mamba(fields: Fields) -> Architecture:
    """x + block(norm(x)) in every layer."""
    return _mamba(fields, None)


def falcon_mamba(fields: Fields) -> Architecture:
    """Mamba with norms on what is projected from the values."""
    return _mamba(fields, Norm("rms", fields.number("mixer_rms_eps", most=1.0)))


def _mamba(fields: Fields, inner: Norm | None) -> Architecture:
    r"""Taps and the output matrix are uniform, of variance 1/3 over their inputs; steps' matrix over its rank.

    Steps' biases make softplus log-uniform between ``time_step_min`` and ``time_step_max``, cut at
    ``time_step_floor``. With ``rescale_prenorm_residual`` outputs are divided by sqrt(H).
    """
    depth, width = read_depth(fields), read_width(fields)
    sizes = Sizes(depth, width, 1, 1, width, initial_std(fields))
    channels = fields.optional_integer("intermediate_size", most=4 * limits.WIDTH)
    if channels is None:
        channels = fields.integer("expand", most=EXPANSION) * width
    taps, rank = fields.integer("conv_kernel", most=STATE), read_rank(fields, "time_step_rank", width)
    word = SelectiveStateSpace(
        width=channels,
        state=fields.integer("state_size", most=STATE),
        rank=rank,
        taps=taps,
        activation=fields.choice("hidden_act", known=ACTIVATIONS),
        input_std=sizes.std,
        tap_std=(3 * taps) ** -0.5,
        project_std=sizes.std,
        step_std=fields.number("time_step_scale", most=SCALE) * (3 * rank) ** -0.5,
        output_std=(3 * channels * (depth if fields.boolean("rescale_prenorm_residual") else 1)) ** -0.5,
        steps=_steps(fields),
        norm=inner,
    )
    fields.note(f"approximate: {SCATTER.format(FOUND[fields.family])}")
    norm = read_norm(fields, "rms", "layer_norm_epsilon")
    layers = [Layer((Step((Branch(word, before=norm),)),))] * depth
    return assemble(fields, sizes, layers, final_norm=norm, position="none", length=lambda _: None)


def read_rank(fields: Fields, name: str, width: int) -> int:
    """How many numbers stand behind the steps; ``auto`` is a sixteenth of the width."""
    return math.ceil(width / 16) if fields.raw(name) == "auto" else fields.integer(name, most=limits.WIDTH)


def _steps(fields: Fields) -> Steps:
    if fields.choice("time_step_init_scheme", known=("random", "constant")) == "constant":
        raise NotApplicable("time_step_init_scheme='constant' draws no matrix behind the steps; only 'random' is known")
    least, most, floor = (fields.number(f"time_step_{end}", most=SCALE) for end in ("min", "max", "floor"))
    least = max(least, floor)
    if not 0 < least < most:
        raise invalid("time_step_min", f"must be in (0, time_step_max={most})", least)
    return Steps(range=(least, most))


for _name, _reader in (("mamba", mamba), ("falcon_mamba", falcon_mamba)):
    register(Described((_name,), _reader, approximate=SCATTER.format(FOUND[_name]), defaults={"conv_kernel": 4}))
