"""Chunks beside the whole past at any length: known positions of known chunks, against the exact recursion."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from builders import qwen2_like, qwen3_like, smollm2_like
from catenary.architecture import Architecture, Causal, Chunk, Kernel, Prefix, Window
from catenary.configs.presets import load_preset
from catenary.configs.read import read_config
from catenary.errors import NotApplicable
from catenary.theory import strengths
from catenary.theory.birth import exact_energies
from catenary.theory.chunks import chunked_energies, told_chunk
from catenary.theory.coarse import carried_by_windows, coarse_energies, kernels
from catenary.theory.embedding import embedded
from catenary.theory.positions.chunk_nodes import ChunkNodes
from catenary.theory.positions.chunk_sums import AcrossChunks, KnownSums, WithinChunks
from catenary.theory.positions.kernels import operator
from catenary.theory.positions.line import Line, graded
from catenary.theory.positions.places import make_grid
from catenary.theory.strengths import predicted_strengths
from test_coarse import equal, with_kernels

Pattern = tuple[tuple[Kernel, ...], ...]


def llama4(width: int) -> Pattern:
    """Three layers in chunks, one that sees the whole past."""
    return (*[(Chunk(width),)] * 3, (Causal(),))


def compared(architecture: Architecture, length: int, probability: float = 0.0, **options: object) -> np.ndarray:
    """Relative errors of the norm at every position."""
    start = embedded(architecture, equal(length, probability))
    exact = exact_energies(architecture, start, **options)  # type: ignore[arg-type]
    coarse = coarse_energies(architecture, length, probability, **options)  # type: ignore[arg-type]
    return np.abs(np.sqrt(coarse / exact) - 1)


@pytest.mark.parametrize(("width", "length"), [(8, 41), (10, 50), (9, 37), (1, 5), (3, 4), (10, 51), (6, 25)])
def test_few_short_chunks_are_exact(width: int, length: int) -> None:
    """Where every position is known the sums are those of the exact recursion."""
    architecture = with_kernels(qwen2_like(depth=4), (Chunk(width),), (Causal(),), (Chunk(width), Causal()))
    assert ChunkNodes.over(length, width).place.size == length
    assert compared(architecture, length, 0.02).max() < 1e-11


CASES: dict[str, tuple[Callable[[], Architecture], Pattern, int]] = {
    "Llama 4's pattern, last chunk incomplete": (lambda: qwen2_like(depth=8), llama4(64), 900),
    "QK-norm, 24 short chunks": (lambda: qwen3_like(depth=8), llama4(32), 768),
    "v = 1, one position in the last chunk": (lambda: smollm2_like(depth=4), llama4(128), 769),
    "47 chunks, in turn": (lambda: qwen2_like(depth=4), ((Chunk(16),), (Causal(),)), 750),
    "global first, in turn": (lambda: qwen2_like(depth=4), ((Causal(),), (Chunk(50),)), 820),
    "both in one layer": (lambda: qwen2_like(depth=4), ((Chunk(50), Causal(), Causal()),), 820),
    "windows as long as the sequence": (lambda: qwen2_like(depth=4), ((Chunk(70),), (Window(700),)), 700),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_within_half_a_percent(name: str) -> None:
    make, pattern, length = CASES[name]
    errors = compared(with_kernels(make(), *pattern), length)
    assert errors.max() < 0.005
    assert np.median(errors) < 0.001


def test_within_half_a_percent_with_repeats_and_other_couplings() -> None:
    architecture = with_kernels(qwen2_like(depth=4), *llama4(60))
    for coupling in ("first-order", "uniform"):
        assert compared(architecture, 600, 0.01, coupling=coupling).max() < 0.005


@pytest.mark.slow
def test_hundreds_of_chunks() -> None:
    """1800 positions in 113 chunks, of which a dozen is known."""
    errors = compared(with_kernels(qwen2_like(depth=4), *llama4(16)), 1800)
    assert errors.max() < 0.005
    assert np.median(errors) < 0.0005


def test_the_same_chunk_is_kept_apart() -> None:
    """The tests above can tell: sums that do not know that a row jumps at its token and chunk are off by per cents."""
    architecture = with_kernels(qwen2_like(depth=4), *llama4(64))
    exact = exact_energies(architecture, embedded(architecture, equal(700)))
    nodes = ChunkNodes.over(700, 64)

    class Blind(Line):  # type: ignore[misc]
        def _side(self, k: int, pivot: int | None) -> tuple[int, int]:
            return Line._side(self, k, None)

    blind = ChunkNodes(
        64, Blind(nodes.chunks.nodes, 0.5), Blind(nodes.places.nodes), Blind(nodes.last.nodes, alone=True)
    )
    told, untold = (np.abs(np.sqrt(chunked_energies(architecture, n) / exact) - 1).max() for n in (nodes, blind))
    assert told < 0.004
    assert untold > 5 * told


def test_finer_nodes_come_closer() -> None:
    """Known positions half as far apart: of fourth order where it is clean, by 8 at least."""
    architecture, length = with_kernels(qwen2_like(depth=4), *llama4(100)), 950
    exact = exact_energies(architecture, embedded(architecture, equal(length)))
    coarse, fine = (
        np.abs(np.sqrt(chunked_energies(architecture, ChunkNodes.over(length, 100, finer)) / exact) - 1).max()
        for finer in (1.0, 2.0)
    )
    assert fine < coarse / 8


def test_a_million_tokens_against_finer_nodes() -> None:
    """122 chunks of 8192: twice as many known positions move no norm by .3 %."""
    architecture, length = with_kernels(qwen2_like(depth=4), *llama4(8192)), 1_000_000
    nodes = ChunkNodes.over(length, 8192)
    assert nodes.place.size < 600
    value = coarse_energies(architecture, length)
    finer = chunked_energies(architecture, ChunkNodes.over(length, 8192, 1.5))
    assert value.shape == (length,)
    assert (value > 0).all()
    assert np.abs(np.sqrt(value / finer) - 1).max() < 0.003


def test_llama_4_scout_at_a_million_tokens() -> None:
    """The published config, cut to its first four layers: chunks of 8192, experts weighed on their inputs."""
    config = dict(load_preset("llama-4-scout").config)
    config |= {"num_hidden_layers": 4, "no_rope_layers": None, "layer_types": None, "moe_layers": None}
    architecture = read_config({key: value for key, value in config.items() if value is not None})
    architecture = getattr(architecture, "architecture", architecture)
    assert {type(kernel) for kernel in kernels(architecture)} == {Chunk, Causal}
    energies = coarse_energies(architecture, 1_000_000)
    assert energies.shape == (1_000_000,)
    assert (energies > 0).all()
    # The last chunk, which every layer sees, has more than those before it.
    assert energies[-100] > 10 * energies[-1000]


def test_chunks_alone_are_the_last_one() -> None:
    architecture = with_kernels(qwen2_like(depth=4), (Chunk(100),))
    energies = coarse_energies(architecture, 1_000_070)
    exact = exact_energies(architecture, embedded(architecture, equal(70)))
    assert np.flatnonzero(energies)[0] == 1_000_000
    np.testing.assert_allclose(energies[-70:], exact, rtol=1e-9)


@pytest.mark.parametrize(("kernel", "axis"), [(Causal(), 0), (Causal(), 1), (Chunk(20), 0), (Chunk(20), 1)])
def test_sums_of_functions_of_two_positions(kernel: Kernel, axis: int) -> None:
    """A function that jumps at the token and at its chunk, as covariances do, against the operator on all positions."""
    length, width = 234, 20
    i = np.arange(1.0, length + 1)
    later, chunk = np.maximum(i[:, None], i), np.arange(length) // width
    x = 1 / later + (chunk[:, None] == chunk) / (1 + (later - 1) % width) + np.eye(length) * np.sqrt(i)
    x += (i[:, None] < i) / i
    nodes = ChunkNodes.over(length, width)
    at = nodes.position.astype(int) - 1
    assert at.size < length
    sums = KnownSums(nodes)
    known = WithinChunks(sums) if isinstance(kernel, Chunk) else AcrossChunks(sums)
    exact = operator(kernel, length)
    for found, expected in (
        (known.average(x[np.ix_(at, at)], axis), exact.average(x, axis)),
        (known.adjoint(x[np.ix_(at, at)], axis), exact.adjoint(x, axis)),
    ):
        error = np.abs(found / expected[np.ix_(at, at)] - 1)
        assert error.max() < 0.006
        assert error.mean() < 2e-4


def test_sums_on_a_line_are_those_of_polynomials() -> None:
    """Polynomials of the logarithm on either side of a jump are summed exactly, and none is drawn across it."""
    line = Line(graded(60, 8, 0.3, 0.02))
    pivot, y = 12, np.arange(60)
    at = line.nodes[pivot]
    values = np.where(y < at, 1 + np.log(y + 1), np.where(y > at, 50 - np.log(y + 1) ** 3, -7.0))
    cut = Line(np.arange(60))
    for weight in (np.ones_like, lambda z: 1 / (z + 1)):
        for name in ("up_to", "onward"):
            some, every = getattr(line, name)(weight)[pivot], getattr(cut, name)(weight)[-1]
            np.testing.assert_allclose(some @ values[line.nodes], (every @ values)[line.nodes], rtol=1e-9)
    np.testing.assert_allclose(line.spread(np.log(line.nodes + 1.0)[:, None])[:, 0], np.log(y + 1.0), atol=1e-12)
    assert line.represented.sum() == pytest.approx(60)


@pytest.mark.parametrize(("length", "width"), [(2, 1), (1_000_000, 8192), (16_385, 8192), (1_000_000, 32), (500, 499)])
def test_known_positions(length: int, width: int) -> None:
    nodes = ChunkNodes.over(length, width)
    assert nodes.length == length
    assert (np.diff(nodes.position) > 0).all()
    assert nodes.represented.sum() == pytest.approx(length)
    assert nodes.place.size < 800


def test_strengths_of_long_sequences_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means over all positions, from known ones by their weights: those over every position by itself."""
    architecture = with_kernels(qwen2_like(depth=4), *llama4(40))
    found = predicted_strengths(architecture, 330)
    monkeypatch.setattr(strengths, "EXACT_UP_TO", 330)
    exact = predicted_strengths(architecture, 330)
    got, wanted = ([(row.strength, row.energy) for row in both.rows] for both in (found, exact))
    np.testing.assert_allclose(got, wanted, rtol=1e-3)
    assert len(predicted_strengths(architecture, 1_000_000).rows) == len(exact.rows)


OTHERS: dict[str, Pattern] = {
    "windows": ((Chunk(64),), (Window(200),)),
    "another width": ((Chunk(64),), (Chunk(100),), (Causal(),)),
    "prefix": ((Chunk(64),), (Prefix(300),)),
}


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_chunks_beside_other_kernels_are_refused_with_a_length_that_fits(name: str) -> None:
    architecture = with_kernels(qwen2_like(depth=2), *OTHERS[name])
    assert told_chunk(architecture, kernels(architecture), 1_000_000) is None
    with pytest.raises(NotApplicable, match="one width and all other layers see the whole past") as refusal:
        coarse_energies(architecture, 1_000_000)
    named = [int(number) for number in re.findall(r"use length=(\d+) or shorter", str(refusal.value))]
    assert len(named) == 1
    carried = carried_by_windows(architecture) or None
    assert make_grid(kernels(architecture), named[0], carried).length == named[0]
    with pytest.raises(NotApplicable, match=f"use length={named[0]} or shorter"):
        make_grid(kernels(architecture), named[0] + 1, carried)


def test_layers_without_chunks_are_none_of_this() -> None:
    architecture = with_kernels(qwen2_like(depth=2), (Chunk(64),), (Causal(),))
    assert told_chunk(architecture, kernels(architecture), 64) is None
    assert told_chunk(architecture, kernels(architecture), 65) == 64
