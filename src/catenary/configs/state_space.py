"""Mamba 2 as configs name it: heads, groups, state, taps and steps of a layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from catenary.architecture import Layer, Norm, StateSpace, Steps
from catenary.configs import limits
from catenary.configs.activations import ACTIVATIONS
from catenary.configs.decoder import Sizes
from catenary.configs.fields import Fields
from catenary.configs.received import received
from catenary.errors import NotApplicable, invalid

STATE = 1 << 16
"""Upper bound of a state's entries, and of a convolution's taps; published ones stay below 300."""

EXPANSION = 1 << 10
"""Upper bound of ``mamba_expand``."""

BIAS = 1.0
"""What the classes of Bamba, Granite 4 and Falcon H1 give every step's bias."""


def read_inner_width(fields: Fields, sizes: Sizes) -> int:
    """``mamba_expand`` times the width of the stream."""
    return fields.integer("mamba_expand", most=EXPANSION) * sizes.width


def read_state_space(fields: Fields, sizes: Sizes, inner: int, norm: Norm | None, **more: Any) -> StateSpace:
    """The layer whose ``inner`` channels are its heads'; ``more`` goes to ``StateSpace``.

    Raises:
        InvalidInput: a field is missing or out of range, or heads do not fill the channels or the groups.
    """
    heads, groups = (fields.integer(f"mamba_n_{name}", most=limits.HEADS) for name in ("heads", "groups"))
    head_dim = inner // heads
    if heads * head_dim != inner:
        raise invalid("mamba_n_heads", f"must divide the layer's {inner} channels", heads)
    if fields.raw("mamba_d_head") != "auto":
        given = fields.integer("mamba_d_head", most=limits.WIDTH)
        if given != head_dim:
            raise invalid("mamba_d_head", f"must be {inner} channels / mamba_n_heads = {head_dim}", given)
    if heads % groups:
        raise invalid("mamba_n_groups", f"must divide mamba_n_heads={heads}", groups)
    word = StateSpace(
        heads=heads,
        head_dim=head_dim,
        groups=groups,
        state=fields.integer("mamba_d_state", most=STATE),
        taps=fields.integer("mamba_d_conv", most=STATE),
        activation=fields.choice("hidden_act", known=ACTIVATIONS),
        input_std=sizes.std,
        tap_std=sizes.std,
        output_std=sizes.std,
        steps=Steps(BIAS, limits=read_step_limits(fields)),
        norm=norm,
        **more,
    )
    note_strong_state(fields, word, sizes.width)
    return word


STRONG = 0.05
"""Own share of the state up to which networks were found within .05 dex; at 6 the error is .13 dex."""


def note_strong_state(fields: Fields, word: StateSpace, width: int) -> None:
    """Say on the card where the states outweigh what passes them by."""
    share = word.own_share(width)
    if share > STRONG:
        fields.note(
            f"approximate: a token's own state has {share:.2g} times the energy of what passes the state by; with 6 "
            "times the law errs by .13 dex (median), as the norm behind it is taken at its mean"
        )


def check_attends(layers: Sequence[Layer], family: str) -> None:
    """Refuse a network without attention: what its states carry far falls below anything a network shows."""
    if not any(layer.attentions for layer in layers):
        raise NotApplicable(
            f"{family} without an attention layer is not described: beyond the reach of its convolutions the influence "
            "of a token falls by an order of magnitude or so per token, below what can be compared with a network"
        )


def read_step_limits(fields: Fields) -> tuple[float, float] | None:
    """``time_step_limit``: two numbers, the second may be infinite; None where nothing is cut.

    transformers saves an infinite one as ``{"__float__": "Infinity"}``.
    """
    given = fields.optional_list("time_step_limit")
    if given is None:
        return None
    plain = [math.inf if entry == {"__float__": "Infinity"} else entry for entry in given]
    numbers = [float(entry) for entry in plain if isinstance(entry, int | float)]
    if len(given) != 2 or len(numbers) != 2 or not 0 <= numbers[0] < numbers[1]:
        raise invalid("time_step_limit", "must be null or two numbers, 0 <= least < most", received(list(given)))
    return None if numbers[0] == 0 and math.isinf(numbers[1]) else (numbers[0], numbers[1])
