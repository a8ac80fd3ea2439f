"""Which kind of attention each layer has, and the mean kernel that kind gives."""

from __future__ import annotations

from collections.abc import Sequence

from catenary.architecture import Causal, Chunk, Kernel, Window
from catenary.configs import limits
from catenary.configs.fields import Fields
from catenary.errors import InvalidInput, NotApplicable, invalid

FULL = "full_attention"
SLIDING = "sliding_attention"
CHUNKED = "chunked_attention"


def read_kinds(fields: Fields, depth: int, otherwise: Sequence[str] | None = None) -> tuple[str, ...]:
    """``layer_types``, one name per layer; where it is left out ``otherwise``, or full attention everywhere."""
    given = fields.optional_texts("layer_types", count=depth)
    if given is not None:
        return given
    return (FULL,) * depth if otherwise is None else tuple(otherwise)


def full_every(depth: int, period: int, kind: str = SLIDING) -> tuple[str, ...]:
    """Layers of ``kind`` with full attention in the last of every ``period``; none where ``period`` is 0."""
    return tuple(kind if period == 0 or (index + 1) % period else FULL for index in range(depth))


def qwen_kinds(fields: Fields, depth: int) -> tuple[str, ...]:
    """The Qwen rule: with ``use_sliding_window``, layers from ``max_window_layers`` on slide.

    Explicit ``layer_types`` win over ``max_window_layers``, as in transformers; a window counts only with
    ``use_sliding_window``, so that without it a sliding layer has no window and is refused.
    """
    given = fields.optional_texts("layer_types", count=depth)
    if given is not None:
        return given
    if read_qwen_window(fields) is None:
        return (FULL,) * depth
    first = fields.integer("max_window_layers", least=0, most=limits.POSITIONS)
    return (FULL,) * min(first, depth) + (SLIDING,) * max(depth - first, 0)


def read_qwen_window(fields: Fields) -> int | None:
    """``sliding_window`` where ``use_sliding_window`` is true, else None."""
    return read_window(fields) if fields.boolean("use_sliding_window") else None


def read_window(fields: Fields, name: str = "sliding_window") -> int | None:
    """How many keys a query sees, its own included; None where there is no window."""
    width = fields.optional_integer(name, least=0, most=limits.POSITIONS)
    if width == 0:
        raise invalid(name, "must be >= 1, or null for none", 0, "transformers would mask every key")
    return width


def kernels(
    fields: Fields, kinds: Sequence[str], *, window: int | None = None, chunk: int | None = None
) -> tuple[Kernel, ...]:
    """The mean kernel of layers of these kinds: ``Causal``, ``Window(window)`` or ``Chunk(chunk)``.

    Raises:
        NotApplicable: a kind that is no softmax attention over a band, naming the layer.
        InvalidInput: a sliding or chunked layer without its width.
    """
    made: dict[str, Kernel] = {FULL: Causal()}
    if window is not None:
        made[SLIDING] = Window(window)
    if chunk is not None:
        made[CHUNKED] = Chunk(chunk)
    for index, kind in enumerate(kinds):
        if kind not in (FULL, SLIDING, CHUNKED):
            raise refused_layer(fields, index, kind)
        if kind not in made:
            name = "sliding_window" if kind == SLIDING else "attention_chunk_size"
            raise InvalidInput(f"{name} is missing, but layer_types[{index}] of {fields.family} is {kind!r}; give it")
    return tuple(made[kind] for kind in kinds)


def refused_layer(fields: Fields, index: int, kind: str) -> NotApplicable:
    """The refusal of layer ``index`` (from 0) of the given kind by name."""
    return NotApplicable(
        f"{fields.family} with layer_types[{index}]={kind[:60]!a}: only {FULL!r}, {SLIDING!r} and {CHUNKED!r} layers "
        "are described for this family"
    )
