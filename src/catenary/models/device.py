"""A torch device by name, refused in words where it is not there."""

from __future__ import annotations

from catenary.errors import MissingResource
from catenary.models.extra import torch


def find_device(device: str) -> torch.device:
    """The device, after putting one number on it; raises ``MissingResource`` where that fails."""
    try:
        target = torch.device(device)
        torch.empty(1, device=target)
    except (RuntimeError, AssertionError) as error:
        raise MissingResource(f"device {device!r} is not available here: {str(error).splitlines()[0]}") from error
    return target
