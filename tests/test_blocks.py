"""Blocks and regions: every position once, none too small, the same as plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catenary.blocks import Blocks, regions
from catenary.errors import InvalidInput
from oracles.comparison import block_log_means, region_of


@given(st.integers(5, 5000))
def test_blocks_tile_the_body(length: int) -> None:
    spans = Blocks(length).spans
    assert [p for s in spans for p in range(s.start, s.stop)] == list(range(1, length - 1))
    sizes = [s.size for s in spans]
    assert max(sizes) - min(sizes) <= 1
    assert len(spans) >= 3
    if len(spans) > 3:
        assert min(sizes) >= max(16, length // 16)
    if length >= 256:
        assert len(spans) == 15


@given(st.integers(2, 5000))
def test_regions_tile_every_position(length: int) -> None:
    spans = regions(length)
    assert [p for s in spans for p in range(s.start, s.stop)] == list(range(length))
    assert spans[0].name == "first"
    assert spans[-1].name == "last"
    assert all(s.size >= 1 for s in spans)


@pytest.mark.parametrize("length", [128, 512, 2048])
def test_regions_are_those_of_the_definition(length: int) -> None:
    named = {p + 1: s.name for s in regions(length) for p in range(s.start, s.stop)}
    assert named == {p: region_of(p, length) for p in range(1, length + 1)}
    assert len(regions(length)) == 12


def test_short_profiles_keep_the_regions_they_reach() -> None:
    assert [s.name for s in regions(2)] == ["first", "last"]
    assert [s.name for s in regions(6)] == ["first", "2-5", "last"]
    assert [s.name for s in regions(32)] == ["first", "2-8", "9-31", "last"]
    assert [s.name for s in regions(66)] == ["first", "2-8", "9-64", "65", "last"]


@pytest.mark.parametrize(("length", "size"), [(512, 32.0), (300, 18.75), (100, 16.0)])
def test_block_means_equal_loops(length: int, size: float) -> None:
    rho = np.random.default_rng(0).lognormal(size=length)
    np.testing.assert_allclose(Blocks(length).log_means(rho), block_log_means(rho.tolist(), size), rtol=1e-13)


def test_centres_are_mean_positions() -> None:
    blocks = Blocks(100)
    x = (np.arange(100) + 0.5) / 100
    np.testing.assert_allclose(blocks.centres, [x[s.start : s.stop].mean() for s in blocks.spans], rtol=1e-14)


def test_too_short_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"length must be >= 5 to have a shape, got 4"):
        Blocks(4)
