"""Have the C library give freed tensors back to the system at once, so that resident memory is what is in use.

glibc raises the size from which it maps a block of its own to that of the largest block ever freed (mallopt(3)).
Smaller blocks then come from a heap that only shrinks at its end, and one layer's leftovers keep the rest resident.
"""

from __future__ import annotations

import ctypes
import sys

_MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of malloc.h."""

BLOCK = 128 * 1024
"""Bytes from which a block is mapped on its own: glibc's own starting value, here kept from growing."""


def release_freed_blocks() -> bool:
    """Fix the mapping threshold of this process at ``BLOCK``; False where the C library is not glibc."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL("libc.so.6").mallopt(_MMAP_THRESHOLD, BLOCK))
    except (OSError, AttributeError):
        return False
