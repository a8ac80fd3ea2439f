"""The operator of every mean attention kernel: where the words of an architecture become scans."""

from __future__ import annotations

from catenary.architecture import Alibi, Causal, Chunk, Kernel, Prefix, Window
from catenary.errors import NotApplicable
from catenary.theory.positions.decay import Decaying
from catenary.theory.positions.scan import Operator
from catenary.theory.positions.uniform import Chunked, Prefixed, Uniform, Windowed

__all__ = ["Chunked", "Decaying", "Operator", "Prefixed", "Uniform", "Windowed", "operator"]


def operator(kernel: Kernel, length: int) -> Operator:
    """The operator of a head group's kernel at ``length`` positions; raises ``NotApplicable`` for an unknown one."""
    match kernel:
        case Causal():
            return Uniform(length)
        case Window(width):
            return Windowed(length, width)
        case Chunk(width):
            return Chunked(length, width)
        case Alibi(slope):
            return Decaying(length, slope)
        case Prefix(inside):
            return Prefixed(length, inside)
    raise NotApplicable(
        f"no scan is known for the attention kernel {type(kernel).__name__}; "
        "known: Causal, Window, Chunk, Alibi, Prefix"
    )
