"""Whether padding in front of a text changes what the network makes of it."""

from __future__ import annotations

from catenary.errors import NotApplicable
from catenary.models.anatomy import Anatomy, pilot_vectors
from catenary.models.extra import torch
from catenary.models.undisturbed import undisturbed

PADS = 3
"""Vectors in front of the pilot's tokens; types that see them change by 1 % and more."""

INVISIBLE = 1e-3
"""Largest change of the stream, relative to its size, that counts as rounding in float32 (measured: below 1e-5)."""


def padding_dependence(module: torch.nn.Module, anatomy: Anatomy) -> float:
    """Largest change of the stream at real tokens, relative to its largest entry, when masked vectors stand in front.

    Position ids count the real tokens from 0 where there is padding, and are the network's own where there is none:
    types that count from elsewhere change too.
    """
    tokens = pilot_vectors(anatomy.embedding).repeat(2, 1, 1)
    pads = tokens[:, :PADS].flip(-1)
    count = tokens.shape[1]
    mask = torch.ones((2, PADS + count), dtype=torch.long, device=tokens.device)
    mask[:, :PADS] = 0
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with undisturbed(module), torch.no_grad():
        alone = anatomy.stream(tokens, mask[:, PADS:])
        behind = anatomy.stream(torch.cat([pads, tokens], 1), mask, positions)[:, PADS:]
    return float((behind - alone).float().abs().max() / alone.float().abs().max())


def check_padding(module: torch.nn.Module, anatomy: Anatomy) -> None:
    """Refuse a network that sees padding, so that a padded profile would not be the text's own.

    Raises:
        NotApplicable: its mask does not reach a recurrence, or its positions count the padding or do not start at 0.
    """
    try:
        seen = padding_dependence(module, anatomy)
    except (RuntimeError, TypeError, ValueError) as error:
        raise NotApplicable(
            f"{type(module).__name__} cannot be run on padded windows ({' '.join(str(error).split())[:120]}); measure "
            "windows of one length, without padding"
        ) from error
    limit = max(INVISIBLE, 8 * torch.finfo(next(module.parameters()).dtype).eps)
    if not seen <= limit:
        raise NotApplicable(
            f"{type(module).__name__} sees padding in front of a text: its stream changes by {seen:.2g} (relative); "
            "measure windows of one length, without padding"
        )
