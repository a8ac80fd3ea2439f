"""Loops as machine code: compiled when first used, and kept on disk for the next process where the disk takes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


def run_compiled(loop: Callable[..., None], *arguments: Any, reorder: bool = False) -> None:
    """Call ``loop`` as machine code.

    ``reorder`` lets the compiler change the order of a sum's terms and fuse a product with the sum that takes it, which
    moves results by rounding errors only and lets it add several terms at once.
    """
    try:
        _compiled(loop, reorder, True)(*arguments)
    except (OSError, RuntimeError):  # no folder that can be written, as numba says it; a full disk
        _compiled(loop, reorder, False)(*arguments)


@cache
def _compiled(loop: Callable[..., None], reorder: bool, keep: bool) -> Callable[..., None]:
    import numba

    compiled: Callable[..., None] = numba.njit(
        loop, cache=keep, fastmath={"reassoc", "contract"} if reorder else False
    )
    return compiled
