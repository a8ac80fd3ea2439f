"""Sliding windows: read as full causal attention where they never bite, refused by name elsewhere."""

from __future__ import annotations

from catenary.configs import limits
from catenary.configs.fields import Fields
from catenary.errors import NotApplicable

FULL = "full_attention"
SLIDING = "sliding_attention"


def read_window(fields: Fields) -> int | None:
    """``sliding_window``: how many keys a query sees, itself included; None where there is no window.

    0 is a window (in transformers it leaves the token alone), not the absence of one.
    """
    return fields.optional_integer("sliding_window", least=0, most=limits.POSITIONS)


def require_idle_window(fields: Fields, window: int, off: str) -> None:
    """Accept a window that no context of the model outgrows, with a note; refuse any other.

    ``off`` says how to switch it off in a copy of the config.

    Raises:
        NotApplicable: the window is below ``max_position_embeddings``.
    """
    longest = fields.integer("max_position_embeddings", most=limits.POSITIONS)
    if window < longest:
        raise NotApplicable(
            f"{fields.family} with sliding_window={window}, below max_position_embeddings={longest}: windows come "
            f"with a later version; for lengths up to the window {off} in a copy of the config"
        )
    fields.causal_up_to = window
    fields.note(
        f"sliding_window={window} is not below max_position_embeddings={longest}: read as full causal attention"
    )


def require_full_layers(fields: Fields, depth: int) -> None:
    """Refuse ``layer_types`` that name anything but full attention.

    Raises:
        NotApplicable: naming the first other kind and its layer.
        InvalidInput: the list has not one name per layer.
    """
    for index, kind in enumerate(fields.optional_texts("layer_types", count=depth) or ()):
        if kind != FULL:
            refuse_layer(fields, index, kind)


def refuse_layer(fields: Fields, index: int, kind: str) -> None:
    """Refuse the layer ``index`` (from 0) of the given kind by name."""
    raise NotApplicable(
        f"{fields.family} with layer_types[{index}]={kind[:60]!a}: only {FULL!r} layers are described so far"
    )


def require_idle_pattern(fields: Fields, depth: int) -> None:
    """The window rule of the Qwen families: only with ``use_sliding_window``, from layer ``max_window_layers`` on.

    Explicit ``layer_types`` win over ``max_window_layers``, as in transformers.
    """
    window = read_window(fields) if fields.boolean("use_sliding_window") else None
    kinds = fields.optional_texts("layer_types", count=depth)
    if kinds is None:
        first = fields.integer("max_window_layers", least=0, most=limits.POSITIONS)
        kinds = (FULL,) * min(first, depth) + (SLIDING if window is not None else FULL,) * max(depth - first, 0)
    for index, kind in enumerate(kinds):
        if kind == SLIDING and window is not None:
            require_idle_window(fields, window, "set use_sliding_window to false")
        elif kind != FULL:
            refuse_layer(fields, index, kind)
