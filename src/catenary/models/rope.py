"""Switch rotary position coding off, and check on the network that positions no longer matter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy, dissect, pilot_vectors
from catenary.models.extra import torch
from catenary.models.stream import accepts
from catenary.models.undisturbed import undisturbed

FREE = 1e-5
"""Largest change of the stream, relative to its size, when position ids are scrambled, that counts as none.

Rounding in float32 gives 1e-7; model types that keep some position coding show 5e-4 and more.
"""


def rotary_buffers(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The frequency buffers that rotary embeddings read: names ending in ``inv_freq``, without the saved originals."""
    return {
        name: buffer
        for name, buffer in module.named_buffers()
        if name.endswith("inv_freq") and not name.endswith("original_inv_freq")
    }


def rotary_tables(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Tables of rotary angles made once, a row (sin, cos) per position: ``embed_positions`` of GPT-J and CodeGen.

    Told from other tables of that name by position 0, whose sines are all 0 and cosines all 1.
    """
    return {
        name: buffer for name, buffer in module.named_buffers() if name.endswith("embed_positions") and _at_rest(buffer)
    }


def _at_rest(table: torch.Tensor) -> bool:
    """Whether the first row turns nothing."""
    half = table.shape[-1] // 2
    return table.ndim == 2 and not bool(table[0, :half].any()) and bool((table[0, half:] == 1).all())


def switch_rotary_off(module: torch.nn.Module, anatomy: Anatomy) -> None:
    """Set every rotary angle to 0, so that cos = 1 and sin = 0 at every position, and check that it worked.

    Frequencies are set to 0; where angles are in a table, every position gets the row of position 0.

    Raises:
        NotApplicable: when the network has no rotary frequencies or tables (learned positions and ALiBi are parts of
            the network, not a switch), or its output still depends on the position ids; it is then left unchanged.
    """
    saved = _saved(module)
    if not saved:
        raise NotApplicable(
            f"rope=False does not apply to {type(module).__name__}: it has no rotary frequencies (inv_freq); "
            f"{_other_coding(anatomy)}. Use rope=True"
        )
    with torch.no_grad():
        for buffer in rotary_buffers(module).values():
            buffer.zero_()
        for table in rotary_tables(module).values():
            table.copy_(table[:1].clone().expand_as(table))
    left = position_dependence(module, anatomy)
    if not left <= FREE:
        _restore(module, saved)
        raise NotApplicable(
            f"rope=False does not work for {type(module).__name__}: with all rotary angles at 0 its output still "
            f"changes by {left:.2g} (relative) with the position ids. Use rope=True"
        )


@contextmanager
def rotary_off(module: torch.nn.Module) -> Iterator[None]:
    """Within the context the network has no rotary position coding; on exit its output is bit-identical again.

    Raises:
        NotApplicable: as ``switch_rotary_off``.
    """
    saved = _saved(module)
    try:
        switch_rotary_off(module, dissect(module))
        yield
    finally:
        _restore(module, saved)


def is_rotary_off(module: torch.nn.Module) -> bool:
    """Whether every rotary angle is 0; types that rescale frequencies with the length may set them again."""
    buffers, tables = rotary_buffers(module), rotary_tables(module)
    if not buffers and not tables:
        return False
    turning = any(bool(buffer.any()) for buffer in buffers.values())
    return not turning and all(bool((table == table[:1]).all()) for table in tables.values())


def position_dependence(module: torch.nn.Module, anatomy: Anatomy) -> float:
    """Largest change of the stream when position ids are scrambled, relative to its largest entry."""
    if not accepts(anatomy.backbone, "position_ids"):
        return float("inf")
    vectors = pilot_vectors(anatomy.embedding)
    mask = torch.ones(vectors.shape[:2], dtype=torch.long, device=vectors.device)
    plain = torch.arange(vectors.shape[1], device=vectors.device)[None]
    with undisturbed(module), torch.no_grad():
        streams = [anatomy.stream(vectors, mask, positions) for positions in (plain, 7 * plain + 3)]
    return float((streams[0] - streams[1]).abs().max() / streams[0].abs().max())


def _saved(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: buffer.clone() for name, buffer in {**rotary_buffers(module), **rotary_tables(module)}.items()}


def _restore(module: torch.nn.Module, saved: dict[str, torch.Tensor]) -> None:
    buffers = dict(module.named_buffers())
    with torch.no_grad():
        for name, values in saved.items():
            buffers[name].copy_(values)


def _other_coding(anatomy: Anatomy) -> str:
    for name, part in anatomy.backbone.named_modules():
        if isinstance(part, torch.nn.Embedding) and part is not anatomy.embedding:
            return f"its positions are learned vectors ({name}) that are added to the tokens"
    if any("rotary" in name for name, _ in anatomy.backbone.named_buffers()):
        return "its rotary angles are tables made once, which this switch does not reach"
    return "its position coding, if any, is not rotary"


def changes_with_length(module: torch.nn.Module) -> bool:
    """Whether a rotary embedding takes other frequencies for every token once a sequence is longer than some length.

    That is type longrope: keys computed before are then those of another network.
    """
    kinds = [getattr(part, "rope_type", None) for part in module.modules()]
    return any("longrope" in (kind.values() if isinstance(kind, dict) else (kind,)) for kind in kinds)
