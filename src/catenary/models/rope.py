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


def switch_rotary_off(module: torch.nn.Module, anatomy: Anatomy) -> None:
    """Set every rotary frequency to 0, so that cos = 1 and sin = 0 at every position, and check that it worked.

    Raises:
        NotApplicable: when the network has no rotary frequencies (learned positions and ALiBi are parts of the
            network, not a switch), or its output still depends on the position ids; it is then left unchanged.
    """
    buffers = rotary_buffers(module)
    if not buffers:
        raise NotApplicable(
            f"rope=False does not apply to {type(module).__name__}: it has no rotary frequencies (inv_freq); "
            f"{_other_coding(anatomy)}. Use rope=True"
        )
    saved = {name: buffer.clone() for name, buffer in buffers.items()}
    with torch.no_grad():
        for buffer in buffers.values():
            buffer.zero_()
    left = position_dependence(module, anatomy)
    if not left <= FREE:
        _restore(module, saved)
        raise NotApplicable(
            f"rope=False does not work for {type(module).__name__}: with all rotary frequencies at 0 its output still "
            f"changes by {left:.2g} (relative) with the position ids. Use rope=True"
        )


@contextmanager
def rotary_off(module: torch.nn.Module) -> Iterator[None]:
    """Within the context the network has no rotary position coding; on exit its output is bit-identical again.

    Raises:
        NotApplicable: as ``switch_rotary_off``.
    """
    saved = {name: buffer.clone() for name, buffer in rotary_buffers(module).items()}
    try:
        switch_rotary_off(module, dissect(module))
        yield
    finally:
        _restore(module, saved)


def is_rotary_off(module: torch.nn.Module) -> bool:
    """Whether every rotary frequency is 0; types that rescale frequencies with the length may set them again."""
    buffers = rotary_buffers(module)
    return bool(buffers) and not any(bool(buffer.any()) for buffer in buffers.values())


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


def _restore(module: torch.nn.Module, saved: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, buffer in rotary_buffers(module).items():
            buffer.copy_(saved[name])


def _other_coding(anatomy: Anatomy) -> str:
    for name, part in anatomy.backbone.named_modules():
        if isinstance(part, torch.nn.Embedding) and part is not anatomy.embedding:
            return f"its positions are learned vectors ({name}) that are added to the tokens"
    if any("rotary" in name for name, _ in anatomy.backbone.named_buffers()):
        return "its rotary angles are tables made once, which this switch does not reach"
    return "its position coding, if any, is not rotary"
