"""The birth law where layers see chunks beside layers that see the whole past: a few chunks stand for all."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from jaxtyping import Float64

from catenary.architecture import Architecture, Causal, Chunk, Kernel, Window
from catenary.theory.attention.mixer import PositionsOf
from catenary.theory.birth import birth_energies, mixers
from catenary.theory.cost import check_coarse_cost
from catenary.theory.embedding import Start, embedded
from catenary.theory.positions.chunk_nodes import ChunkNodes
from catenary.theory.positions.chunk_sums import AcrossChunks, KnownSums, WithinChunks
from catenary.theory.positions.pairs import Singles


def told_chunk(architecture: Architecture, kernels: Collection[Kernel], length: int) -> int | None:
    """The width w < L of the chunks that stand for each other, None where the network has other needs.

    Others are chunks of two widths, windows shorter than the sequence, slopes, prefixes, layers without a softmax, and
    sinusoids, which no known positions hold between them.
    """
    widths = {kernel.width for kernel in kernels if isinstance(kernel, Chunk) and kernel.width < length}
    whole = [k for k in kernels if isinstance(k, Causal) or (isinstance(k, Chunk | Window) and k.width >= length)]
    alike = len(widths) == 1 and len(whole) + 1 == len(kernels)
    plain = architecture.embedding.sinusoid is None and not any(layer.recurrences for layer in architecture.layers)
    return widths.pop() if alike and plain else None


def chunked_energies(
    architecture: Architecture,
    nodes: ChunkNodes,
    repeat_probability: float = 0.0,
    coupling: str = "strong",
    finite_width: bool = True,
) -> Float64[np.ndarray, " L"]:
    """``birth_energies`` on known positions, spread to every position.

    Exact where all positions are known, else an interpolation of fourth order. Derived here: docs, "Mean attention
    kernels".

    Args:
        architecture: with chunks of the nodes' width, and kernels that see the whole past.
        nodes: the known positions.
        repeat_probability: p2, the probability that two different positions hold the same id.
        coupling: a name in ``COUPLINGS``.
        finite_width: include the 1/d overlap of unrelated tokens.

    Raises:
        NotApplicable: a prediction that would take too long.
    """
    check_coarse_cost(architecture, nodes.place.size, nodes.length)
    start = chunked_start(architecture, nodes, repeat_probability)
    made = mixers(architecture, chunked_positions(nodes), coupling, finite_width)
    return nodes.spread(birth_energies(architecture, start, made))


def chunked_start(architecture: Architecture, nodes: ChunkNodes, repeat_probability: float = 0.0) -> Start:
    """The embedded tokens at the known positions."""
    equal = np.full((nodes.place.size,) * 2, repeat_probability)
    np.fill_diagonal(equal, 1.0)
    return embedded(architecture, equal)


def chunked_positions(nodes: ChunkNodes) -> PositionsOf:
    """The averages of chunks of the nodes' width, and of kernels that see the whole past."""
    sums = KnownSums(nodes)
    within, across = Singles(WithinChunks(sums)), Singles(AcrossChunks(sums))

    def positions_of(kernel: Kernel) -> Singles:
        return within if kernel == Chunk(nodes.width) else across

    return positions_of
